#include "timeline/activity_summary.h"

#include <algorithm>
#include <limits>

namespace flopledger {
namespace {

constexpr std::int64_t kStillOpen = std::numeric_limits<std::int64_t>::max();

bool IsUntimed(const KernelRecord& kernel) {
  return kernel.end_ns < kernel.start_ns || (kernel.start_ns == 0 && kernel.end_ns == 0);
}

}  // namespace

void ActivitySummary::AddMarker(const MarkerRecord& marker) {
  last_marker_ns_ = std::max(last_marker_ns_, marker.time_ns);
  if (marker.kind == MarkerRecord::Kind::kStepBegin) {
    // A step without an end of its own ends where the next one begins.
    if (!steps_.empty() && steps_.back().host.end_ns == kStillOpen) {
      steps_.back().host.end_ns = marker.time_ns;
    }
    steps_.push_back({.step = marker.step, .host = {marker.time_ns, kStillOpen}, .ops = {}});
  } else if (marker.kind == MarkerRecord::Kind::kStepEnd ||
             marker.kind == MarkerRecord::Kind::kStepFailed) {
    for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
      if (step->step != marker.step) continue;
      if (step->host.end_ns == kStillOpen) step->host.end_ns = marker.time_ns;
      break;
    }
  }
}

ActivitySummary::Step* ActivitySummary::HostStepAt(std::int64_t time_ns) {
  auto after = std::upper_bound(
      steps_.begin(), steps_.end(), time_ns,
      [](std::int64_t time, const Step& step) { return time < step.host.start_ns; });
  if (after == steps_.begin()) return nullptr;
  --after;
  return time_ns < after->host.end_ns ? &*after : nullptr;
}

ActivitySummary::StepSums* ActivitySummary::StepOf(Device& device, std::int64_t time_ns) {
  const Step* step = HostStepAt(time_ns);
  if (step == nullptr) return nullptr;
  if (device.steps.size() < steps_.size()) device.steps.resize(steps_.size());
  return &device.steps[static_cast<std::size_t>(step - steps_.data())];
}

void ActivitySummary::AddKernel(const KernelRecord& kernel) {
  Device& device = devices_[kernel.device];
  DeviceActivity& sums = device.sums;
  const bool is_kernel = kernel.kind == KernelRecord::Kind::kKernel;
  ++(is_kernel                                    ? sums.kernels
     : kernel.kind == KernelRecord::Kind::kMemcpy ? sums.memcpys
                                                  : sums.memsets);
  const bool untimed = IsUntimed(kernel);
  const std::int64_t duration = untimed ? 0 : kernel.end_ns - kernel.start_ns;
  if (untimed) ++sums.untimed;
  if (!kernel.launch_known) {
    ++sums.unlaunched;
    sums.unlaunched_ns += duration;
  } else if (StepSums* step = StepOf(device, kernel.launch_order)) {
    ++step->launched_work;
    if (is_kernel) {
      ++step->launched_kernels;
      step->launched_kernel_time_sum_ns += duration;
    }
    if (!untimed) {
      step->last_end_ns = std::max(step->last_end_ns.value_or(kernel.end_ns), kernel.end_ns);
    }
  }
  if (untimed) return;
  const TimeSpan span{kernel.start_ns, kernel.end_ns};
  if (!device.any) sums.span = span;
  device.any = true;
  sums.span.start_ns = std::min(sums.span.start_ns, span.start_ns);
  sums.span.end_ns = std::max(sums.span.end_ns, span.end_ns);
  if (!is_kernel) {
    device.copies.Add(span);
    return;
  }
  sums.kernel_time_sum_ns += duration;
  if (!kernel.op_known) {
    ++sums.without_op;
    sums.without_op_ns += duration;
  }
  sums.kernel_ns_by_op[{kernel.op_known ? kernel.op : kOverflowSignature, kernel.op_known}] +=
      duration;
  (kernel.op_class == OpClass::kCommunication ? device.communication : device.compute).Add(span);
  device.pending_starts.push_back(kernel.start_ns);
}

void ActivitySummary::SettleStarts(Device& device) {
  // Beyond the last marker nobody knows yet which step it is.
  const auto later =
      std::partition(device.pending_starts.begin(), device.pending_starts.end(),
                     [this](std::int64_t start) { return start >= last_marker_ns_; });
  for (auto start = later; start != device.pending_starts.end(); ++start) {
    if (StepSums* step = StepOf(device, *start)) ++step->started_kernels;
  }
  device.pending_starts.erase(later, device.pending_starts.end());
}

void ActivitySummary::Add(const RecordBatch& batch) {
  std::vector<MarkerRecord> markers = batch.markers;
  // At one time the end of a step comes before the begin of the next one.
  std::stable_sort(
      markers.begin(), markers.end(),
      [](const MarkerRecord& a, const MarkerRecord& b) { return a.time_ns < b.time_ns; });
  for (const MarkerRecord& marker : markers) AddMarker(marker);
  for (const OpRecord& op : batch.ops) {
    const OpKey key{op.device, op.signature, op.phase};
    ++ops_[key];
    if (Step* step = HostStepAt(op.start_ns)) ++step->ops[key];
  }
  for (const KernelRecord& kernel : batch.kernels) AddKernel(kernel);
  if (markers.empty()) return;
  for (auto& [number, device] : devices_) SettleStarts(device);
}

void ActivitySummary::FinishSteps(Device& device, IntervalSet& all, IntervalSet& exposed) {
  device.steps.resize(steps_.size());
  std::optional<std::int64_t> before;  // end of the step before
  for (std::size_t i = 0; i < steps_.size(); ++i) {
    const StepSums& sums = device.steps[i];
    StepActivity step{.step = steps_[i].step, .host = steps_[i].host};
    step.launched_kernels = sums.launched_kernels;
    step.launched_kernel_time_sum_ns = sums.launched_kernel_time_sum_ns;
    step.launched_work = sums.launched_work;
    step.started_kernels = sums.started_kernels;
    step.last_end_ns = sums.last_end_ns;
    step.busy_clipped_ns = all.MeasureIn(step.host);
    step.exposed_communication_clipped_ns = exposed.MeasureIn(step.host);
    if (i > 0 && before && sums.last_end_ns && *sums.last_end_ns > *before) {
      const TimeSpan window{*before, *sums.last_end_ns};
      step.device_window = window;
      step.device_busy_ns = all.MeasureIn(window);
      step.device_idle_ns = window.end_ns - window.start_ns - step.device_busy_ns;
      step.device_communication_ns = device.communication.MeasureIn(window);
      step.device_exposed_communication_ns = exposed.MeasureIn(window);
    }
    before = sums.last_end_ns;
    device.sums.steps.push_back(step);
  }
}

std::vector<DeviceActivity> ActivitySummary::Finish() {
  std::vector<DeviceActivity> result;
  if (!steps_.empty() && steps_.back().host.end_ns == kStillOpen) {
    // Nobody ended it: it lasts as long as anything is seen.
    std::int64_t end_ns = std::max(last_marker_ns_, steps_.back().host.start_ns);
    for (const auto& [number, device] : devices_) {
      if (device.any) end_ns = std::max(end_ns, device.sums.span.end_ns);
    }
    steps_.back().host.end_ns = end_ns;
  }
  last_marker_ns_ = std::numeric_limits<std::int64_t>::max();
  for (auto& [number, device] : devices_) {
    SettleStarts(device);
    DeviceActivity& sums = device.sums;
    sums.device = number;
    IntervalSet kernels = Union(device.communication, device.compute);
    IntervalSet all = Union(kernels, device.copies);
    IntervalSet exposed = Difference(device.communication, device.compute);
    sums.busy_kernels_ns = kernels.Measure();
    sums.busy_all_ns = all.Measure();
    sums.idle_ns = sums.span.end_ns - sums.span.start_ns - sums.busy_all_ns;
    sums.communication_union_ns = device.communication.Measure();
    sums.compute_union_ns = device.compute.Measure();
    sums.exposed_communication_ns = exposed.Measure();
    FinishSteps(device, all, exposed);
    result.push_back(std::move(sums));
  }
  return result;
}

}  // namespace flopledger
