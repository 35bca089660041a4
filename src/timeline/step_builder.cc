#include "timeline/step_builder.h"

#include <algorithm>
#include <string_view>

namespace flopledger {
namespace {

std::string_view NameOf(DeviceSteps::Closing closing) {
  switch (closing) {
    case DeviceSteps::Closing::kFence:
      return "fence";
    case DeviceSteps::Closing::kLag:
      return "lag";
    case DeviceSteps::Closing::kTimeout:
      return "timeout";
    default:
      return "next_boundary";
  }
}

Phase SectionAt(const std::vector<SectionChange>& sections, std::int64_t time_ns) {
  auto after = std::upper_bound(
      sections.begin(), sections.end(), time_ns,
      [](std::int64_t time, const SectionChange& change) { return time < change.time_ns; });
  return after == sections.begin() ? Phase::kOther : std::prev(after)->section;
}

// One entry for each place and reason, however often a source reports.
void Count(std::vector<LossRecord>& losses, const LossRecord& loss) {
  for (LossRecord& known : losses) {
    if (known.where != loss.where || known.reason != loss.reason) continue;
    known.count += loss.count;
    return;
  }
  losses.push_back(loss);
}

}  // namespace

StepBuilder::StepBuilder(const Options& options)
    : options_(options), device_(options.device), host_busy_(options.interval_limit) {}

StepBuilder::OpenStep* StepBuilder::StepAt(std::int64_t time_ns) {
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
    if (step->timeline.start_ns <= time_ns) return &*step;
  }
  return nullptr;
}

void StepBuilder::CountLate(std::int64_t count) {
  (steps_.empty() ? pending_late_ : steps_.front().timeline.late_records) += count;
}

void StepBuilder::BeginStep(const MarkerRecord& marker) {
  OpenStep next;
  next.timeline.step = marker.step;
  next.timeline.start_ns = marker.time_ns;
  next.section_depth = section_stack_.size();
  if (steps_.empty()) {
    if (!first_start_ns_) {
      first_start_ns_ = marker.time_ns;
      next.timeline.excluded_before = DurationNs(marker.time_ns - options_.session_start_ns);
    }
    next.timeline.losses.swap(pending_losses_);
    next.timeline.late_records = std::exchange(pending_late_, 0);
  } else {
    OpenStep& last = steps_.back();
    last.timeline.end_ns = marker.time_ns;
    last.closed_in = generation_;
  }
  steps_.push_back(std::move(next));
  device_.BeginStep(marker.time_ns);
}

void StepBuilder::ChangeSection(const MarkerRecord& marker) {
  if (marker.kind == MarkerRecord::Kind::kSectionBegin) {
    section_stack_.push_back(marker.phase);
  } else {
    // Ends the innermost section of this name; an end without a beginning changes nothing.
    auto found = std::find(section_stack_.rbegin(), section_stack_.rend(), marker.phase);
    if (found == section_stack_.rend()) return;
    section_stack_.erase(std::next(found).base());
  }
  if (steps_.empty()) sections_.clear();  // only the last one matters to the first step
  const Phase section = section_stack_.empty() ? Phase::kOther : section_stack_.back();
  sections_.push_back({.time_ns = marker.time_ns, .section = section});
}

void StepBuilder::CloseSectionsOf(OpenStep& step, std::int64_t time_ns) {
  // An exception may have jumped over the end marks of sections that began in the step.
  if (section_stack_.size() <= step.section_depth) return;
  section_stack_.resize(step.section_depth);
  const Phase section = section_stack_.empty() ? Phase::kOther : section_stack_.back();
  sections_.push_back({.time_ns = time_ns, .section = section});
}

void StepBuilder::ForgetSectionsBefore(std::int64_t time_ns) {
  const auto after = std::partition_point(
      sections_.begin(), sections_.end(),
      [time_ns](const SectionChange& change) { return change.time_ns <= time_ns; });
  if (after != sections_.begin()) sections_.erase(sections_.begin(), std::prev(after));
}

void StepBuilder::AddMarker(const MarkerRecord& marker) {
  switch (marker.kind) {
    case MarkerRecord::Kind::kStepBegin:
      if (!steps_.empty() && marker.time_ns < steps_.back().timeline.start_ns) {
        AddLoss({.time_ns = marker.time_ns,
                 .count = 1,
                 .where = LossRecord::Where::kTimeline,
                 .reason = LossRecord::Reason::kInvalidTime});
        return;
      }
      BeginStep(marker);
      return;
    case MarkerRecord::Kind::kStepEnd:
    case MarkerRecord::Kind::kStepFailed:
      if (OpenStep* step = StepAt(marker.time_ns)) {
        step->exit_ns = marker.time_ns;
        if (step == &steps_.back()) device_.ExitStep(marker.time_ns);
        if (marker.kind == MarkerRecord::Kind::kStepFailed) {
          step->timeline.complete = false;
          step->timeline.closed_by = "exception";
          CloseSectionsOf(*step, marker.time_ns);
        }
      }
      return;
    case MarkerRecord::Kind::kSectionBegin:
    case MarkerRecord::Kind::kSectionEnd:
      ChangeSection(marker);
      return;
    case MarkerRecord::Kind::kDeclarationInvalid:
      if (OpenStep* step = StepAt(marker.time_ns)) step->timeline.declaration_lost = true;
      return;
  }
}

void StepBuilder::AddOp(const OpRecord& op) {
  OpenStep* step = StepAt(op.start_ns);
  if (op.end_ns < op.start_ns || op.self_ns < 0 || op.self_ns > op.end_ns - op.start_ns) {
    AddLoss({.time_ns = op.start_ns,
             .count = 1,
             .where = LossRecord::Where::kTimeline,
             .reason = LossRecord::Reason::kInvalidTime});
    return;
  }
  if (step == nullptr) {
    // Before the first step an op belongs to no books; after it, its step has been closed.
    if (first_start_ns_ && op.start_ns >= *first_start_ns_) CountLate();
    return;
  }
  Phase phase = op.phase;
  if (phase == Phase::kForward) {
    const Phase section = SectionAt(sections_, op.start_ns);
    if (section != Phase::kOther) phase = section;
  }
  OpSum& sum = step->ops[{op.signature, phase}];
  sum.signature = op.signature;
  sum.phase = phase;
  sum.op_class = op.op_class;
  ++sum.launches;
  sum.self_time += DurationNs(op.self_ns);
  // Intervals know no steps: what runs on over a boundary occupies the device in both.
  host_busy_.Add(
      {.start_ns = op.start_ns, .end_ns = op.end_ns, .activity = ActivityOf(op.op_class)});
}

void StepBuilder::AddLoss(const LossRecord& loss) {
  if (steps_.empty()) {
    Count(pending_losses_, loss);
    return;
  }
  // Rings report at the drain, so the newest steps are those that may lack something.
  Count(steps_.back().timeline.losses, loss);
  if (loss.where == LossRecord::Where::kMarkerRing) {
    for (OpenStep& step : steps_) step.timeline.declaration_lost = true;
  }
}

void StepBuilder::Add(const RecordBatch& batch) {
  ++generation_;
  device_.BeginBatch(batch.drained_at_ns);
  std::vector<MarkerRecord> markers = batch.markers;
  std::stable_sort(
      markers.begin(), markers.end(),
      [](const MarkerRecord& a, const MarkerRecord& b) { return a.time_ns < b.time_ns; });
  for (const MarkerRecord& marker : markers) AddMarker(marker);
  for (const OpRecord& op : batch.ops) AddOp(op);
  AddKernels(batch);
  for (const LossRecord& loss : batch.losses) AddLoss(loss);
  AddDeclarations(batch);
  AddCollectorRecords(batch);
}

void StepBuilder::AddKernels(const RecordBatch& batch) {
  for (const FenceRecord& fence : batch.fences) device_.AddFence(fence);
  const bool sections = !sections_.empty();
  for (const KernelRecord& kernel : batch.kernels) {
    Phase phase = kernel.phase;
    if (sections && phase == Phase::kForward) {
      const Phase section = SectionAt(sections_, kernel.start_ns);
      if (section != Phase::kOther) phase = section;
    }
    device_.Add(kernel, phase);
  }
  CountDeviceLosses();
}

void StepBuilder::CountDeviceLosses() {
  if (const std::int64_t late = device_.TakeLate()) CountLate(late);
  if (const std::int64_t invalid = device_.TakeInvalid()) {
    AddLoss({.count = invalid,
             .where = LossRecord::Where::kTimeline,
             .reason = LossRecord::Reason::kInvalidTime});
  }
}

void StepBuilder::AddCollectorRecords(const RecordBatch& batch) {
  if (steps_.empty()) return;
  for (const OverheadRecord& overhead : batch.overheads) {
    if (overhead.end_ns < overhead.start_ns) continue;
    OpenStep* step = StepAt(overhead.start_ns);
    StepTimeline& timeline = step == nullptr ? steps_.front().timeline : step->timeline;
    timeline.collector_overhead[static_cast<std::size_t>(overhead.kind)] +=
        DurationNs(overhead.end_ns - overhead.start_ns);
  }
  for (const ClockStepRecord& clock_step : batch.clock_steps) {
    OpenStep* step = StepAt(clock_step.time_ns);
    (step == nullptr ? steps_.front() : *step).timeline.clock_step = clock_step;
  }
}

void StepBuilder::AddDeclarations(const RecordBatch& batch) {
  for (const TokenRecord& token : batch.tokens) {
    OpenStep* step = StepAt(token.time_ns);
    if (step == nullptr) {
      CountLate();
      continue;
    }
    TokenRecord& sum = step->tokens[{token.length, token.useful_length}];
    sum.length = token.length;
    sum.useful_length = token.useful_length;
    sum.count += token.count;
    sum.even_split = sum.even_split || token.even_split;
    sum.unknown_length = sum.unknown_length || token.unknown_length;
  }
  for (const DeclaredRecord& declared : batch.declared) {
    OpenStep* step = StepAt(declared.time_ns);
    if (step == nullptr) {
      CountLate();
      continue;
    }
    DeclaredSum sum = step->timeline.declared.value_or(DeclaredSum{});
    sum.forward += declared.forward;
    sum.backward += declared.backward;
    sum.tokens += declared.tokens;
    step->timeline.declared = sum;
  }
  for (const ValueRecord& value : batch.values) {
    OpenStep* step = StepAt(value.time_ns);
    if (step == nullptr) continue;  // a value before the first step has no step to be shown with
    ValueRecord& kept = step->values[value.name_id];
    if (value.time_ns >= kept.time_ns) kept = value;
  }
}

DeviceTime StepBuilder::HostDevice(const OpenStep& step, const StepTimeline& result) {
  // The ops are the kernels. A step without a single op was not watched, whatever was promised.
  DeviceTime device = host_busy_.Partition(result.start_ns, result.end_ns, sections_);
  const bool watched = options_.observed && !step.ops.empty();
  const DurationNs dropped = host_busy_.TakeDropped();
  MoveIdleToUntracked(device, watched ? dropped : result.wall());
  for (const OpSum& sum : result.ops) {
    if (ActivityOf(sum.op_class) != ActivityClass::kNone) device.kernel_time_sum += sum.self_time;
  }
  return device;
}

StepTimeline StepBuilder::Close(OpenStep& step) {
  StepTimeline result = std::move(step.timeline);
  const std::int64_t host_end_ns = result.end_ns;
  DeviceSteps::Work work = device_.TakeFront();
  // Device times on both sides of a clock's jump cannot be compared; the host's can.
  if (work.end_ns && !result.clock_step && result.closed_by != "close") {
    result.boundary = StepBoundary::kDevice;
    result.end_ns = *work.end_ns;
  }
  if (last_end_ns_) result.start_ns = *last_end_ns_;
  result.end_ns = std::max(result.start_ns, result.end_ns);
  last_end_ns_ = result.end_ns;

  for (const auto& [key, sum] : step.ops) result.ops.push_back(sum);
  result.kernels = std::move(work.kernels);
  result.unlaunched_kernels = work.unlaunched;
  result.boundary_estimated = work.estimated;
  result.devices = device_.TakeTime(result.start_ns, result.end_ns, sections_);
  for (std::size_t i = 0; i < work.time_by_device.size(); ++i) {
    result.devices[i].kernel_time_sum = work.time_by_device[i];
  }
  if (result.devices.empty()) result.devices.push_back(HostDevice(step, result));
  host_busy_.ForgetBefore(result.end_ns);
  ForgetSectionsBefore(std::min(result.end_ns, host_end_ns));
  for (const auto& [key, token] : step.tokens) result.tokens.push_back(token);
  for (const auto& [key, value] : step.values) result.values.push_back(value);
  return result;
}

std::optional<StepTimeline> StepBuilder::Take() {
  if (steps_.empty()) return std::nullopt;
  OpenStep& first = steps_.front();
  if (!first.closed_in || (!finished_ && *first.closed_in == generation_)) return std::nullopt;
  if (steps_.size() > 1) {
    const DeviceSteps::Closing closing = device_.FrontClosing();
    if (closing == DeviceSteps::Closing::kWait) return std::nullopt;
    if (first.timeline.closed_by.empty()) first.timeline.closed_by = NameOf(closing);
  }
  StepTimeline result = Close(first);
  steps_.pop_front();
  return result;
}

DurationNs StepBuilder::Finish(std::int64_t now_ns) {
  finished_ = true;
  device_.Finish();
  CountDeviceLosses();
  if (steps_.empty() || steps_.back().closed_in) return DurationNs();
  OpenStep& last = steps_.back();
  last.closed_in = generation_;
  if (last.exit_ns) {
    last.timeline.end_ns = *last.exit_ns;
    if (last.timeline.closed_by.empty()) last.timeline.closed_by = "exit";
  } else {
    last.timeline.end_ns = std::max(now_ns, last.timeline.start_ns);
    last.timeline.complete = false;
    last.timeline.closed_by = "close";
  }
  std::int64_t end_ns = last.timeline.end_ns;
  if (last.exit_ns) end_ns = std::max(end_ns, device_.LastEnd().value_or(end_ns));
  return DurationNs(std::max<std::int64_t>(0, now_ns - end_ns));
}

}  // namespace flopledger
