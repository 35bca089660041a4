#include "timeline/step_builder.h"

#include <algorithm>

namespace flopledger {
namespace {

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

StepBuilder::OpenStep* StepBuilder::StepAt(std::int64_t time_ns) {
  for (auto step = steps_.rbegin(); step != steps_.rend(); ++step) {
    if (step->timeline.start_ns <= time_ns) return &*step;
  }
  return nullptr;
}

void StepBuilder::CountLate() {
  if (steps_.empty()) {
    ++pending_late_;
  } else {
    ++steps_.front().timeline.late_records;
  }
}

void StepBuilder::BeginStep(const MarkerRecord& marker) {
  OpenStep next;
  next.timeline.step = marker.step;
  next.timeline.start_ns = marker.time_ns;
  next.merge_at = options_.interval_limit;
  next.section_depth = section_stack_.size();
  if (!section_stack_.empty()) {
    next.sections.push_back({.time_ns = marker.time_ns, .section = section_stack_.back()});
  }
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
    if (last.timeline.closed_by.empty()) last.timeline.closed_by = "next_boundary";
    last.closed_in = generation_;
  }
  steps_.push_back(std::move(next));
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
  if (steps_.empty()) return;
  const Phase section = section_stack_.empty() ? Phase::kOther : section_stack_.back();
  steps_.back().sections.push_back({.time_ns = marker.time_ns, .section = section});
}

void StepBuilder::CloseSectionsOf(OpenStep& step, std::int64_t time_ns) {
  // An exception may have jumped over the end marks of sections that began in the step.
  if (section_stack_.size() <= step.section_depth) return;
  section_stack_.resize(step.section_depth);
  const Phase section = section_stack_.empty() ? Phase::kOther : section_stack_.back();
  step.sections.push_back({.time_ns = time_ns, .section = section});
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

void StepBuilder::AddInterval(OpenStep& step, const ActivityInterval& interval) {
  if (step.intervals.size() >= step.merge_at) {
    MergeIntervals(step.intervals);
    if (step.intervals.size() > options_.interval_limit / 2) {
      step.dropped_interval_time += DurationNs(interval.end_ns - interval.start_ns);
      step.merge_at = step.intervals.size();
      return;
    }
  }
  step.intervals.push_back(interval);
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
    const Phase section = SectionAt(step->sections, op.start_ns);
    if (section != Phase::kOther) phase = section;
  }
  OpSum& sum = step->ops[{op.signature, phase}];
  sum.signature = op.signature;
  sum.phase = phase;
  sum.op_class = op.op_class;
  ++sum.launches;
  sum.self_time += DurationNs(op.self_ns);
  const ActivityClass activity = ActivityOf(op.op_class);
  if (activity != ActivityClass::kNone) {
    // An op that runs on over a boundary occupies the device in both steps.
    for (OpenStep& each : steps_) {
      if (&each == step ||
          (each.timeline.start_ns >= op.start_ns && each.timeline.start_ns < op.end_ns)) {
        AddInterval(each, {.start_ns = op.start_ns, .end_ns = op.end_ns, .activity = activity});
      }
    }
  }
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
  std::vector<MarkerRecord> markers = batch.markers;
  std::stable_sort(
      markers.begin(), markers.end(),
      [](const MarkerRecord& a, const MarkerRecord& b) { return a.time_ns < b.time_ns; });
  for (const MarkerRecord& marker : markers) AddMarker(marker);
  for (const OpRecord& op : batch.ops) AddOp(op);
  for (const LossRecord& loss : batch.losses) AddLoss(loss);
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

StepTimeline StepBuilder::Close(OpenStep& step) const {
  StepTimeline result = std::move(step.timeline);
  MergeIntervals(step.intervals);
  DeviceTime device = PartitionTime(result.start_ns, result.end_ns, step.intervals, step.sections);
  // What is known to be lost cannot be called idle.
  auto& idle = device.by_state_and_section[static_cast<std::size_t>(DeviceState::kIdle)];
  auto& untracked = device.by_state_and_section[static_cast<std::size_t>(DeviceState::kUntracked)];
  // A step without a single op was not watched, whatever was promised.
  const bool watched = options_.observed && !step.ops.empty();
  std::int64_t to_move = watched ? step.dropped_interval_time.ns() : result.wall().ns();
  for (std::size_t i = 0; i < kPhaseCount; ++i) {
    const DurationNs moved(std::min(to_move, idle[i].ns()));
    idle[i] -= moved;
    untracked[i] += moved;
    to_move -= moved.ns();
  }
  for (const auto& [key, sum] : step.ops) {
    if (ActivityOf(sum.op_class) != ActivityClass::kNone) device.kernel_time_sum += sum.self_time;
    result.ops.push_back(sum);
  }
  result.devices.push_back(device);
  for (const auto& [key, token] : step.tokens) result.tokens.push_back(token);
  for (const auto& [key, value] : step.values) result.values.push_back(value);
  return result;
}

std::optional<StepTimeline> StepBuilder::Take() {
  if (steps_.empty()) return std::nullopt;
  OpenStep& first = steps_.front();
  if (!first.closed_in || (!finished_ && *first.closed_in == generation_)) return std::nullopt;
  StepTimeline result = Close(first);
  steps_.pop_front();
  return result;
}

DurationNs StepBuilder::Finish(std::int64_t now_ns) {
  finished_ = true;
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
  return DurationNs(std::max<std::int64_t>(0, now_ns - last.timeline.end_ns));
}

}  // namespace flopledger
