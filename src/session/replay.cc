#include "session/replay.h"

#include <algorithm>
#include <map>
#include <utility>

#include "collect/trace/trace_formats.h"
#include "flopledger/peak_table.h"
#include "flops/kernel_classes.h"
#include "flops/op_rules.h"
#include "ledger/declaration.h"
#include "ledger/flop_resolver.h"
#include "ledger/reconcile.h"
#include "session/replay_settings.h"
#include "session/replay_sums.h"
#include "timeline/step_builder.h"

namespace flopledger {
namespace {

TraceOptions ReaderOptions(const ReplayOptions& options) {
  TraceOptions reader;
  reader.lenient = options.lenient;
  reader.max_inflated_bytes = options.max_inflated_bytes;
  reader.progress = options.progress;
  reader.step_names = options.step_names;
  reader.classify_kernel = ClassifyKernel;
  reader.classify_op = ClassifyOp;
  reader.counted_ops = CountedOpNames();
  reader.countable = [](const OpSignature& op) {
    return CountOp(op).coverage == CoverageKind::kCounted;
  };
  return reader;
}

/// The peak of the device that worked: the user's, or what the table has for a device that says
/// so much of itself. Never by a part of a name.
EligiblePeak PeakOf(const TraceDescription& trace, const ReplayOptions& options,
                    std::string* refusal) {
  EligiblePeak peak{.rates = options.peaks, .dtype = options.dtype, .device_count = 1};
  peak.device_count = static_cast<int>(std::max<std::size_t>(1, trace.devices.size()));
  if (!peak.rates.empty()) return peak;
  if (trace.devices.empty()) {
    *refusal = "no device worked";
    return peak;
  }
  const DeviceDescription& device = trace.devices.front();
  const DeviceIdentity identity{
      .name = device.name,
      .sm_count = device.multiprocessors,
      .compute_capability = device.compute_capability_major * 10 + device.compute_capability_minor};
  for (const DType dtype : kAllDTypes) {
    const Result<PeakAnswer> answer = LookUpPeak(identity, {.dtype = dtype});
    if (answer.has_value()) {
      peak.rates.push_back(answer->peak);
    } else if (dtype == options.dtype) {
      *refusal = answer.error().message();
    }
  }
  return peak;
}

/// Builds the books of one source while it is read.
class TraceReplay {
 public:
  TraceReplay(TraceSource& source, const ReplayOptions& options)
      : source_(source),
        options_(options),
        capture_(dynamic_cast<CaptureSource*>(&source)),
        settings_(ReplaySettings::For(options, capture_)),
        builder_(settings_.builder),
        resolver_({{FlopSource::kOpShapes, CountOp}}) {
    builder_.SetDeviceCounting(true);
  }

  Result<ReplayTrace> Run(const std::string& file) {
    ReplayTrace trace;
    trace.file = file;
    RecordBatch batch;
    while (true) {
      batch.Clear();
      const Result<bool> more = source_.Read(batch);
      if (!more.has_value()) return tl::unexpected<Status>(more.error());
      if (!*more) break;
      // After its last batch a session takes nothing before it finishes.
      CloseSteps(trace);
      summary_.Add(batch);
      Declare(batch);
      if (capture_ != nullptr) builder_.SetDeviceCounting(capture_->device_counting());
      builder_.Add(batch);
    }
    const bool closed = capture_ != nullptr && capture_->end().has_value();
    builder_.Finish(closed ? capture_->end()->close_ns : last_marker_ns_);
    CloseSteps(trace);
    trace.description = source_.description();
    if (!settings_.warning.empty()) {
      trace.description.warnings.push_back(
          {.kind = "settings", .count = 1, .text = settings_.warning});
    }
    const std::vector<DeviceActivity> activities = summary_.Finish();
    trace.devices = SumDevices(trace.description, activities, summary_, source_.signatures());
    trace.total = SumTotal(trace.description, trace.devices, summary_, source_.signatures());
    if (const DeviceActivity& all = trace.total.activity; all.without_op > 0) {
      trace.description.gaps.push_back(
          {.kind = "no_op",
           .count = all.without_op,
           .time = DurationNs(all.without_op_ns),
           .text = "kernels that no recorded op launched (graphs, calls outside of ops, launches "
                   "that are not recorded): their FLOPs are unknown"});
    }
    return trace;
  }

 private:
  void Declare(RecordBatch& batch) {
    for (const MarkerRecord& marker : batch.markers) {
      last_marker_ns_ = std::max(last_marker_ns_, marker.time_ns);
      if (marker.kind != MarkerRecord::Kind::kStepBegin || options_.rows <= 0) continue;
      batch.tokens.push_back({.time_ns = marker.time_ns,
                              .count = options_.rows,
                              .length = options_.row_length,
                              .useful_length = options_.row_length});
    }
  }

  void CloseSteps(ReplayTrace& trace) {
    while (std::optional<StepTimeline> timeline = builder_.Take()) {
      // What is known of the devices is complete once the source hands out records.
      if (!peak_) peak_ = settings_.peak;
      if (!peak_) peak_ = PeakOf(source_.description(), options_, &trace.peak_refusal);
      trace.peaks = peak_->rates;
      const std::vector<ResolvedOp> ops = resolver_.Resolve(timeline->ops, source_.signatures());
      const std::vector<ResolvedKernel> kernels =
          resolver_.ResolveKernels(timeline->kernels, source_.kernels(), source_.signatures());
      const StepDeclaration declaration =
          EvaluateDeclaration(options_.model, settings_.convention, *timeline);
      trace.reports.push_back(Reconcile(*timeline, ops, declaration,
                                        IdentifyConvention(settings_.convention), *peak_, kernels));
      if (capture_ != nullptr) CompleteAsLive(*timeline, trace.reports.back());
    }
  }

  // What the session adds to the books that the ledger balanced.
  void CompleteAsLive(const StepTimeline& timeline, StepReport& report) {
    if (report.result == StepResult::kComplete && complete_steps_++ < settings_.warmup_steps) {
      report.result = StepResult::kWarmup;
    }
    for (const ValueRecord& value : timeline.values) {
      if (value.name_id >= capture_->value_names().size()) continue;
      report.values.push_back(
          {.name = capture_->value_names()[value.name_id], .value = value.value});
    }
  }

  TraceSource& source_;
  const ReplayOptions& options_;
  CaptureSource* const capture_;
  const ReplaySettings settings_;
  ActivitySummary summary_;
  StepBuilder builder_;
  FlopResolver resolver_;
  std::optional<EligiblePeak> peak_;
  std::int64_t last_marker_ns_ = 0;
  int complete_steps_ = 0;
};

std::string NameOf(const ReplayTrace& trace) {
  return trace.description.name.empty() ? trace.file : trace.file + ":" + trace.description.name;
}

std::vector<GlobalStep> FindGlobalSteps(const std::vector<ReplayTrace>& traces) {
  std::vector<GlobalStep> steps;
  if (traces.size() < 2) return steps;
  for (const ReplayTrace& trace : traces) {
    for (const ReplayStep& step : trace.total.steps) {
      auto found = std::find_if(steps.begin(), steps.end(), [&step](const GlobalStep& known) {
        return known.name == step.name;
      });
      if (found == steps.end()) {
        steps.push_back(
            {.name = step.name, .window = step.activity.host, .all_pairs = {}, .ranks = {}});
        found = std::prev(steps.end());
      }
      found->window.start_ns = std::min(found->window.start_ns, step.activity.host.start_ns);
      found->window.end_ns = std::max(found->window.end_ns, step.activity.host.end_ns);
      found->all_pairs += step.flops.all_pairs;
      found->ranks.push_back({.trace = NameOf(trace),
                              .rank = trace.description.rank,
                              .host = step.activity.host,
                              .all_pairs = step.flops.all_pairs});
    }
  }
  // A step that one rank alone has says nothing of the others.
  std::erase_if(steps, [](const GlobalStep& step) { return step.ranks.size() < 2; });
  std::sort(steps.begin(), steps.end(), [](const GlobalStep& a, const GlobalStep& b) {
    return a.window.start_ns < b.window.start_ns;
  });
  return steps;
}

}  // namespace

Result<ReplayResult> Replay(const std::vector<std::string>& files, const ReplayOptions& options) {
  ReplayResult result;
  const TraceOptions reader = ReaderOptions(options);
  for (const std::string& file : files) {
    Result<TraceSources> sources = OpenTrace(file, reader);
    if (!sources.has_value()) return tl::unexpected<Status>(sources.error());
    const auto first = static_cast<std::ptrdiff_t>(result.traces.size());
    for (std::unique_ptr<TraceSource>& source : *sources) {
      Result<ReplayTrace> trace = TraceReplay(*source, options).Run(file);
      if (!trace.has_value()) return tl::unexpected<Status>(trace.error());
      result.traces.push_back(*std::move(trace));
      source.reset();
    }
    // An archive's members come in any order; people look for rank 3 behind rank 2.
    std::stable_sort(result.traces.begin() + first, result.traces.end(),
                     [](const ReplayTrace& a, const ReplayTrace& b) {
                       return a.description.rank && b.description.rank &&
                              *a.description.rank < *b.description.rank;
                     });
  }
  result.global_steps = FindGlobalSteps(result.traces);
  return result;
}

}  // namespace flopledger
