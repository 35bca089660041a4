#include "timeline/device_steps.h"

#include <algorithm>
#include <utility>

namespace flopledger {
namespace {

// Device stamps are fitted to the host's clock; what is further off than this is no time.
constexpr std::int64_t kClockSlackNs = 1'000'000'000;
constexpr std::size_t kPendingFences = 4096;
constexpr std::size_t kSpareSums = 8;

void Raise(std::optional<std::int64_t>& end_ns, std::int64_t time_ns) {
  if (!end_ns || *end_ns < time_ns) end_ns = time_ns;
}

}  // namespace

void DeviceSteps::BeginStep(std::int64_t start_ns) {
  if (!steps_.empty()) {
    // The step goes on to here, so what followed its exit is its own.
    Step& last = steps_.back();
    Join(last.work, last.after_exit);
  }
  Step next;
  next.start_ns = start_ns;
  next.expected = counting_;
  if (!spare_sums_.empty()) {
    next.work.sums = std::move(spare_sums_.back());
    spare_sums_.pop_back();
  }
  steps_.push_back(std::move(next));
  ++unknown_fences_;
  range_ = {};
  ApplyPendingFences();
  SettleHeld();
}

void DeviceSteps::ExitStep(std::int64_t exit_ns) {
  if (steps_.empty()) return;
  steps_.back().exit_ns = exit_ns;
  range_ = {};
  ApplyPendingFences();
}

void DeviceSteps::ApplyFence(const FenceRecord& fence, bool& used) {
  for (std::size_t i = steps_.size(); i-- > 0;) {
    Step& step = steps_[i];
    if (step.exit_ns == fence.boundary_ns && !step.exit_fence) {
      step.exit_fence = fence.launch_order;
      used = true;
    }
    if (step.start_ns > fence.boundary_ns) continue;
    if (step.start_ns < fence.boundary_ns) return;
    if (step.fence) continue;
    used = true;
    step.fence = fence.launch_order;
    step.expected = true;
    if (i > 0) steps_[i - 1].expected = true;
    --unknown_fences_;
    if (!closed_fence_ && i == 0 && !run_fence_) run_fence_ = fence.launch_order;
  }
}

void DeviceSteps::AddFence(const FenceRecord& fence) {
  bool used = false;
  ApplyFence(fence, used);
  if (!used) {
    if (!steps_.empty() && fence.boundary_ns < steps_.front().start_ns) return;
    if (pending_fences_.size() >= kPendingFences) pending_fences_.erase(pending_fences_.begin());
    pending_fences_.push_back(fence);
    return;
  }
  range_ = {};
  SettleHeld();
}

void DeviceSteps::ApplyPendingFences() {
  if (pending_fences_.empty()) return;
  std::erase_if(pending_fences_, [this](const FenceRecord& fence) {
    bool used = fence.boundary_ns < steps_.front().start_ns;
    ApplyFence(fence, used);
    return used;
  });
}

DeviceSteps::Place DeviceSteps::Find(LaunchOrder order) {
  // `next`: the first step behind the launch, as far as fences are known.
  std::size_t next = steps_.size();
  if (unknown_fences_ == 0) {
    next = static_cast<std::size_t>(
        std::partition_point(steps_.begin(), steps_.end(),
                             [order](const Step& step) { return *step.fence <= order; }) -
        steps_.begin());
  } else {
    while (next > 0 && !(steps_[next - 1].fence && *steps_[next - 1].fence <= order)) --next;
  }
  if (next == 0) {
    if (steps_.empty() || !steps_.front().fence) return Place::kUndecided;
    return run_fence_ && order < *run_fence_ ? Place::kBeforeRun : Place::kPast;
  }
  Step& step = steps_[next - 1];
  range_ = {.step = &step, .part = &step.work, .from = *step.fence, .to = kLast};
  if (next < steps_.size()) {
    if (!steps_[next].fence) {
      range_ = {};
      return Place::kUndecided;
    }
    range_.to = *steps_[next].fence;
    return Place::kFound;
  }
  if (!step.exit_ns || (finished_ && !step.exit_fence)) return Place::kFound;
  if (!step.exit_fence) {
    range_ = {};
    return Place::kUndecided;
  }
  if (order < *step.exit_fence) {
    range_.to = *step.exit_fence;
  } else {
    range_.from = *step.exit_fence;
    range_.part = &step.after_exit;
  }
  return Place::kFound;
}

void DeviceSteps::Fold(const KernelRecord& kernel, Phase phase, std::size_t lane, Part& part) {
  part.sums.Add(kernel, phase);
  Raise(kernel.kind == KernelRecord::Kind::kKernel ? part.kernel_end_ns : part.copy_end_ns,
        kernel.end_ns);
  if (kernel.launch_known && kernel.launch_order > part.last_order) {
    part.last_order = kernel.launch_order;
  }
  if (part.time_by_lane.size() <= lane) part.time_by_lane.resize(lane + 1);
  part.time_by_lane[lane] += DurationNs(kernel.end_ns - kernel.start_ns);
}

void DeviceSteps::Add(const KernelRecord& kernel, Phase phase) {
  if (kernel.end_ns < kernel.start_ns || (now_ns_ && kernel.end_ns > *now_ns_ + kClockSlackNs))
      [[unlikely]] {
    ++invalid_;
    return;
  }
  LaunchStreams::Stream* stream = streams_.Find(kernel.device, kernel.stream);
  if (stream == nullptr) [[unlikely]] {
    const auto lane = static_cast<std::uint16_t>(LaneOf(kernel.device));
    stream = &streams_.Insert(kernel.device, kernel.stream, lane, closed_fence_.value_or(kFirst));
  }
  const std::size_t lane = stream->lane;
  quiet_ = false;
  if (now_ns_) progress_ns_ = *now_ns_;
  if (!kernel.launch_known) [[unlikely]] {
    AddUnlaunched(kernel, phase, lane);
    return;
  }
  streams_.See(*stream, kernel.launch_order, kernel.end_ns);
  if (kernel.launch_order >= range_.from && kernel.launch_order < range_.to &&
      kernel.start_ns >= range_.step->start_ns - kClockSlackNs) [[likely]] {
    lanes_[lane].busy.Add({.start_ns = kernel.start_ns,
                           .end_ns = kernel.end_ns,
                           .activity = ActivityOf(kernel.op_class)});
    Fold(kernel, phase, lane, *range_.part);
    return;
  }
  KernelRecord settled = kernel;
  settled.phase = phase;
  Settle(settled, lane);
}

void DeviceSteps::Settle(const KernelRecord& kernel, std::size_t lane) {
  // Nothing is in the books before the first step; its marker comes before its launches do.
  if (steps_.empty()) return;
  const auto occupy = [&] {
    lanes_[lane].busy.Add({.start_ns = kernel.start_ns,
                           .end_ns = kernel.end_ns,
                           .activity = ActivityOf(kernel.op_class)});
  };
  switch (Find(kernel.launch_order)) {
    case Place::kBeforeRun:
      occupy();
      return;
    case Place::kPast:
      occupy();
      ++late_;
      return;
    case Place::kUndecided:
      if (held_.size() >= options_.held_limit && GiveUpFences()) {
        Settle(kernel, lane);
        return;
      }
      occupy();
      held_.push_back(kernel);
      return;
    case Place::kFound:
      // A kernel cannot start before the step that launched it.
      if (kernel.start_ns < range_.step->start_ns - kClockSlackNs) {
        ++invalid_;
        return;
      }
      occupy();
      Fold(kernel, kernel.phase, lane, *range_.part);
      return;
  }
}

bool DeviceSteps::GiveUpFences() {
  // They do not come: boundaries by times are worth more than records that are lost.
  bool any = false;
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (steps_[i].fence) continue;
    EstimateFence(i);
    any = true;
  }
  if (!steps_.empty() && steps_.back().exit_ns && !steps_.back().exit_fence) {
    steps_.back().exit_fence = kLast;
    any = true;
  }
  range_ = {};
  SettleHeld();
  return any;
}

void DeviceSteps::SettleHeld() {
  if (held_.empty()) return;
  std::size_t kept = 0;
  for (const KernelRecord& kernel : held_) {
    switch (Find(kernel.launch_order)) {
      case Place::kUndecided:
        held_[kept++] = kernel;
        break;
      case Place::kBeforeRun:
        break;
      case Place::kPast:
        ++late_;
        break;
      case Place::kFound: {
        if (kernel.start_ns < range_.step->start_ns - kClockSlackNs) {
          ++invalid_;
          break;
        }
        Fold(kernel, kernel.phase, LaneOf(kernel.device), *range_.part);
        break;
      }
    }
  }
  held_.resize(kept);
}

void DeviceSteps::AddUnlaunched(const KernelRecord& kernel, Phase phase, std::size_t lane) {
  if (steps_.empty()) return;
  lanes_[lane].busy.Add({.start_ns = kernel.start_ns,
                         .end_ns = kernel.end_ns,
                         .activity = ActivityOf(kernel.op_class)});
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
    if (step->start_ns > kernel.start_ns) continue;
    const bool behind =
        &*step == &steps_.back() && step->exit_ns && *step->exit_ns <= kernel.start_ns;
    Fold(kernel, phase, lane, behind ? step->after_exit : step->work);
    ++step->unlaunched;
    step->expected = true;
    return;
  }
  if (closed_fence_ || any_taken_) ++late_;
}

std::size_t DeviceSteps::LaneOf(std::uint16_t device) {
  const auto found = std::find_if(lanes_.begin(), lanes_.end(),
                                  [device](const Lane& lane) { return lane.device == device; });
  if (found != lanes_.end()) return static_cast<std::size_t>(found - lanes_.begin());
  lanes_.push_back({.device = device, .busy = BusyTime(options_.interval_limit)});
  lanes_.back().busy.ForgetBefore(closed_until_ns_);
  return lanes_.size() - 1;
}

void DeviceSteps::Join(Part& into, Part& from) {
  for (const KernelSum& sum : from.sums.sums()) into.sums.Add(sum);
  if (from.kernel_end_ns) Raise(into.kernel_end_ns, *from.kernel_end_ns);
  if (from.copy_end_ns) Raise(into.copy_end_ns, *from.copy_end_ns);
  into.last_order = std::max(into.last_order, from.last_order);
  if (into.time_by_lane.size() < from.time_by_lane.size()) {
    into.time_by_lane.resize(from.time_by_lane.size());
  }
  for (std::size_t i = 0; i < from.time_by_lane.size(); ++i) {
    into.time_by_lane[i] += from.time_by_lane[i];
  }
  from = Part();
}

void DeviceSteps::EstimateFence(std::size_t index) {
  // Behind the last launch whose work started before the boundary: those were launched before it.
  Step& step = steps_[index];
  LaunchOrder from = kFirst;
  if (index > 0) {
    const Step& before = steps_[index - 1];
    from = before.fence.value_or(kFirst);
    if (before.work.last_order != kFirst) from = std::max(from, before.work.last_order + 1);
  }
  LaunchOrder to = kLast;
  for (std::size_t i = index + 1; i < steps_.size(); ++i) {
    if (!steps_[i].fence) continue;
    to = *steps_[i].fence;
    break;
  }
  for (const KernelRecord& kernel : held_) {
    if (kernel.launch_order >= from && kernel.launch_order < to &&
        kernel.start_ns < step.start_ns) {
      from = kernel.launch_order + 1;
    }
  }
  step.fence = from;
  step.estimated = true;
  --unknown_fences_;
  range_ = {};
}

DeviceSteps::Streams DeviceSteps::StreamsBehind(const Step& front, LaunchOrder fence) const {
  Streams behind{.passed = true, .done = true, .silent = true};
  const LaunchOrder recent = closed_fence_.value_or(kFirst);
  const std::int64_t end_ns = front.work.kernel_end_ns.value_or(kFirst);
  const std::int64_t since_ns = std::max(front.start_ns, closed_until_ns_);
  const std::int64_t silence_ns = std::max(
      {options_.least_silence.ns(), static_cast<std::int64_t>(options_.lag_steps) * step_ns_,
       (streams_.latest_end_ns() - since_ns) / 2});
  for (const LaunchStreams::Stream& stream : streams_.all()) {
    if (stream.last_order < recent) continue;  // it has not worked for two steps
    const bool passed = stream.last_order >= fence;
    if (passed && stream.last_end_ns >= end_ns) continue;
    behind.passed = behind.passed && passed;
    behind.done = false;
    // A stream that is behind others goes on; one that is silent does not, while they do.
    if (streams_.latest_end_ns() - stream.last_end_ns < silence_ns) behind.silent = false;
  }
  return behind;
}

std::optional<LaunchOrder> DeviceSteps::FenceAfter() const {
  // How long a step takes is not known before the first one.
  const std::size_t lag = any_taken_ ? options_.lag_steps : 4 * options_.lag_steps;
  for (std::size_t i = 1 + lag; i < steps_.size(); ++i) {
    if (steps_[i].fence) return steps_[i].fence;
  }
  return std::nullopt;
}

bool DeviceSteps::SeesStepsAfter() const {
  const std::optional<LaunchOrder> fence = FenceAfter();
  return fence && streams_.latest() >= *fence;
}

DeviceSteps::Closing DeviceSteps::FrontClosing() {
  if (steps_.size() < 2) return Closing::kWait;
  Step& front = steps_[0];
  const Step& next = steps_[1];
  const bool worked = !front.work.sums.empty();
  if (!worked && held_.empty() && (!front.expected || quiet_)) return Closing::kHost;
  if (finished_) {
    if (!worked) return Closing::kHost;
    return next.estimated ? Closing::kLag : Closing::kFence;
  }
  if (front.fence && next.fence && !next.estimated && streams_.latest() >= *next.fence) {
    const Streams behind = StreamsBehind(front, *next.fence);
    if (behind.done) return Closing::kFence;
    if (behind.silent && SeesStepsAfter()) {
      return behind.passed ? Closing::kFence : Closing::kLag;
    }
  } else if (const std::optional<LaunchOrder> later = FenceAfter()) {
    const Streams behind = StreamsBehind(front, *later);
    if (streams_.latest() >= *later && behind.silent) return Closing::kLag;
  }
  if (steps_.size() > options_.open_steps) return Closing::kLag;
  if (!now_ns_) return Closing::kWait;
  // With a device far behind the host, waiting is right for as long as records come.
  const std::int64_t since = next.fence ? std::max(next.start_ns, progress_ns_) : next.start_ns;
  if (*now_ns_ - since < options_.timeout.ns()) return Closing::kWait;
  if (!worked) quiet_ = true;
  return Closing::kTimeout;
}

void DeviceSteps::Finish() {
  finished_ = true;
  range_ = {};
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    if (!steps_[i].fence) EstimateFence(i);
  }
  SettleHeld();
}

DeviceSteps::Work DeviceSteps::TakeFront() {
  bool settle = false;
  for (std::size_t i = 0; i < std::min<std::size_t>(2, steps_.size()); ++i) {
    if (steps_[i].fence || !steps_[i].expected) continue;
    EstimateFence(i);
    settle = true;
  }
  if (settle) SettleHeld();
  const bool estimated = steps_[0].estimated || (steps_.size() > 1 && steps_[1].estimated);
  Step front = std::move(steps_.front());
  if (!front.fence) --unknown_fences_;
  steps_.pop_front();
  range_ = {};
  if (front.fence) closed_fence_ = front.fence;
  any_taken_ = true;

  Work work;
  work.kernels = front.work.sums.Sorted();
  work.end_ns = EndOf(front.work);
  work.time_by_device = std::move(front.work.time_by_lane);
  work.unlaunched = front.unlaunched;
  work.estimated = estimated && !work.kernels.empty();
  if (spare_sums_.size() < kSpareSums) {
    front.work.sums.Clear();
    spare_sums_.push_back(std::move(front.work.sums));
  }
  return work;
}

std::vector<DeviceTime> DeviceSteps::TakeTime(std::int64_t start_ns, std::int64_t end_ns,
                                              std::span<const SectionChange> sections) {
  std::vector<DeviceTime> devices;
  for (Lane& lane : lanes_) {
    devices.push_back(lane.busy.Partition(start_ns, end_ns, sections));
    devices.back().device = lane.device;
    lane.busy.ForgetBefore(end_ns);
    MoveIdleToUntracked(devices.back(), lane.busy.TakeDropped());
  }
  closed_until_ns_ = std::max(closed_until_ns_, end_ns);
  step_ns_ = std::max(end_ns - start_ns, step_ns_ - step_ns_ / 8);
  return devices;
}

std::size_t DeviceSteps::retained_bytes() const {
  std::size_t bytes = held_.capacity() * sizeof(KernelRecord);
  for (const Step& step : steps_) {
    bytes += sizeof(Step) + step.work.sums.retained_bytes() + step.after_exit.sums.retained_bytes();
  }
  for (const KernelSums& sums : spare_sums_) bytes += sums.retained_bytes();
  for (const Lane& lane : lanes_) bytes += lane.busy.retained_bytes();
  return bytes;
}

}  // namespace flopledger
