#include "export/metric_catalogue.h"

#include <array>

#include "flopledger/causes.h"
#include "flopledger/dtype.h"
#include "flopledger/records.h"
#include "flopledger/step_report.h"

namespace flopledger {
namespace {

template <typename Enum, std::size_t kCount>
std::vector<std::string_view> NamesOf() {
  std::vector<std::string_view> names;
  names.reserve(kCount);
  for (std::size_t i = 0; i < kCount; ++i) names.push_back(ToString(static_cast<Enum>(i)));
  return names;
}

std::vector<std::string_view> LostCauses() {
  std::vector<std::string_view> ids;
  for (const LostCause& cause : kLostCauses) {
    if (cause.id != "useful") ids.push_back(cause.id);  // not lost
  }
  ids.push_back(kAbovePeakCause);
  return ids;
}

MetricLabel DTypeLabel() {
  return {"dtype", NamesOf<DType, kAllDTypes.size()>(), "element type of the arithmetic"};
}

MetricLabel SignLabel() { return {"sign", {"positive", "negative"}, "each sign has its own sum"}; }

std::vector<MetricEntry> FlopEntries() {
  constexpr auto kCounter = MetricType::kCounter;
  return {
      {Metric::kUsefulFlops,
       kCounter,
       "flopledger_useful_flops_total",
       "FLOPs",
       "FLOPs that the model needed by the declared formula, on real tokens.",
       "no formula was declared",
       {{"pass", {"forward", "backward"}, "pass of the model"}},
       2},
      {Metric::kExecutedFlops,
       kCounter,
       "flopledger_executed_flops_total",
       "FLOPs",
       "FLOPs that ran, from evidence; what nobody could count is not in it.",
       "nothing observes operations",
       {DTypeLabel(), {"source", NamesOf<FlopSource, 5>(), "where the count came from"}},
       16},
      {Metric::kRecomputedFlops,
       kCounter,
       "flopledger_recomputed_flops_total",
       "FLOPs",
       "Executed FLOPs that were forward work run again (activation checkpointing).",
       "nothing observes operations",
       {{"source", {"phase"}, "how the repetition was recognised; phase: autograd context"}},
       1},
      {Metric::kAuxiliaryFlops,
       kCounter,
       "flopledger_auxiliary_flops_total",
       "FLOPs",
       "Executed FLOPs outside of forward and backward: optimizer, evaluation, clipping.",
       "nothing observes operations",
       {},
       1},
      {Metric::kPaddingFlops,
       kCounter,
       "flopledger_padding_flops_total",
       "FLOPs",
       "FLOPs that the declared formula gives for padding tokens.",
       "no formula was declared",
       {},
       1},
      {Metric::kExcessFlops,
       kCounter,
       "flopledger_excess_flops_total",
       "FLOPs",
       "Executed FLOPs of the implementation that the mathematics does not need.",
       "nothing observes operations",
       {SignLabel()},
       2},
  };
}

std::vector<MetricEntry> PeakEntries() {
  constexpr auto kCounter = MetricType::kCounter;
  return {
      {Metric::kUnexplainedFlops,
       kCounter,
       "flopledger_unexplained_flops_total",
       "FLOPs",
       "Executed FLOPs that no term of the identity explains, by sign of the step's rest.",
       "no formula was declared, or nothing observes operations",
       {SignLabel()},
       2},
      {Metric::kEligiblePeakFlops,
       kCounter,
       "flopledger_eligible_peak_flops_total",
       "FLOPs",
       "Peak FLOP/s of the devices that take part times wall time: the denominator of MFU and HFU.",
       "no peak is known",
       {DTypeLabel()},
       4},
      {Metric::kLostPeakFlops,
       kCounter,
       "flopledger_lost_peak_flops_total",
       "FLOPs",
       "Part of the eligible peak that did not become useful work, by cause; useful FLOPs and all "
       "causes, cause above_peak taken off, sum to the eligible peak.",
       "no peak is known",
       {{"cause", LostCauses(), "line of the waterfall"}},
       17},
  };
}

std::vector<MetricEntry> TimeEntries() {
  constexpr auto kCounter = MetricType::kCounter;
  return {
      {Metric::kStepWallSeconds,
       kCounter,
       "flopledger_step_wall_seconds_total",
       "seconds",
       "Wall time of complete steps, boundary to boundary; with device records from the end of one "
       "step's last kernel to that of the next one's.",
       "",
       {},
       1},
      {Metric::kExcludedSeconds,
       kCounter,
       "flopledger_excluded_seconds_total",
       "seconds",
       "Wall time that is in no complete step, by reason.",
       "",
       {{"reason", {kExclusionReasons.begin(), kExclusionReasons.end()}, "why"}},
       6},
      {Metric::kDeviceSeconds,
       kCounter,
       "flopledger_device_seconds_total",
       "seconds",
       "Time of the devices by exclusive state; the states sum to wall time x devices.",
       "",
       {{"state", NamesOf<DeviceState, kDeviceStateCount>(), "exclusive state"}},
       5},
      {Metric::kKernelSeconds,
       kCounter,
       "flopledger_kernel_seconds_total",
       "seconds",
       "Sum of kernel durations; coverage = 1 - unknown / all.",
       "nothing observes operations",
       {{"op_class", NamesOf<OpClass, kOpClassCount>(), "kind of work"},
        {"coverage", NamesOf<CoverageKind, kCoverageKindCount>(), "is its work known"}},
       26},
  };
}

std::vector<MetricEntry> KernelEntries() {
  constexpr auto kCounter = MetricType::kCounter;
  return {
      {Metric::kKernels,
       kCounter,
       "flopledger_kernels_total",
       "launches",
       "Kernels (on a CPU: operations) that ran.",
       "nothing observes operations",
       {{"coverage", NamesOf<CoverageKind, kCoverageKindCount>(), "is its work known"}},
       3},
      {Metric::kTokens,
       kCounter,
       "flopledger_tokens_total",
       "tokens",
       "Tokens of complete steps.",
       "",
       {{"kind", {"useful", "padding"}, "padding was computed but carries no text"}},
       2},
      {Metric::kSteps,
       kCounter,
       "flopledger_steps_total",
       "steps",
       "Steps that closed.",
       "",
       {{"result", NamesOf<StepResult, 3>(),
         "only complete steps enter the FLOP and time counters"}},
       3},
      {Metric::kDroppedRecords,
       kCounter,
       "flopledger_dropped_records_total",
       "records",
       "Records that did not reach the books, counted where they were lost.",
       "",
       {{"where", NamesOf<LossRecord::Where, kLossWhereCount>(), "place of the loss"},
        {"reason", NamesOf<LossRecord::Reason, kLossReasonCount>(), "why"}},
       12},
      {Metric::kLateRecords,
       kCounter,
       "flopledger_late_records_total",
       "records",
       "Records that came after their step had closed.",
       "",
       {},
       1},
  };
}

std::vector<MetricEntry> OverheadEntries() {
  constexpr auto kCounter = MetricType::kCounter;
  return {
      {Metric::kOverheadSeconds,
       kCounter,
       "flopledger_overhead_seconds_total",
       "seconds",
       "flopledger's own time, beside the training thread; cupti_*: what the device collector's "
       "library says that it cost the process.",
       "",
       {{"stage",
         {"worker", "publish", "render", "cupti_buffer_flush", "cupti_instrumentation",
          "cupti_resource", "cupti_compiler", "cupti_other"},
         "worker: building the books; publish: the snapshot of this page; render: its text"}},
       8},
      {Metric::kStepDurationSeconds,
       MetricType::kHistogram,
       "flopledger_step_duration_seconds",
       "seconds",
       "Durations of complete steps.",
       "",
       {},
       15},
  };
}

std::vector<MetricEntry> WindowEntries() {
  constexpr auto kGauge = MetricType::kGauge;
  return {
      {Metric::kWindowMfuRatio,
       kGauge,
       "flopledger_window_mfu_ratio",
       "ratio",
       "MFU over the last steps, for the eye; aggregate with the counters.",
       "before the first complete step, without a formula, without a peak, after a fault",
       {},
       1},
      {Metric::kWindowHfuRatio,
       kGauge,
       "flopledger_window_hfu_ratio",
       "ratio",
       "Lower bound of HFU over the last steps; a point only at full coverage.",
       "before the first complete step, without evidence, without a peak, after a fault",
       {},
       1},
      {Metric::kWindowCoverageRatio,
       kGauge,
       "flopledger_window_coverage_ratio",
       "ratio",
       "Share of kernel time over the last steps whose work is known or left out by rule.",
       "before the first complete step, without evidence, after a fault",
       {},
       1},
      {Metric::kLastStep,
       kGauge,
       "flopledger_last_step",
       "step number",
       "Number of the last step that closed.",
       "before the first step",
       {},
       1},
      {Metric::kLastStepEndTimestampSeconds,
       kGauge,
       "flopledger_last_step_end_timestamp_seconds",
       "seconds",
       "Wall-clock time at which the last step ended; its age shows a stall.",
       "before the first step",
       {},
       1},
  };
}

std::vector<MetricEntry> StateEntries() {
  constexpr auto kGauge = MetricType::kGauge;
  return {
      {Metric::kRunFinished,
       kGauge,
       "flopledger_run_finished",
       "0 or 1",
       "1 once the run has ended in good order.",
       "",
       {},
       1},
      {Metric::kWorldSize,
       kGauge,
       "flopledger_world_size",
       "ranks",
       "Ranks that the run was started with.",
       "",
       {},
       1},
      {Metric::kEligiblePeakFlopsPerSecond,
       kGauge,
       "flopledger_eligible_peak_flops_per_second",
       "FLOP/s",
       "Peak rate of one device for a dtype, dense.",
       "no peak is known",
       {{"device_model", {}, "as the driver or the user names it"}, DTypeLabel()},
       6},
      {Metric::kCollectorState,
       kGauge,
       "flopledger_collector_state",
       "0 or 1",
       "1 for the state that the collector is in.",
       "",
       {{"state",
         {"counting", "timing_only", "steps_only", "disabled"},
         "disabled: a fault stopped the books, the training goes on; timing_only: kernels are "
         "timed, executed FLOPs are not known"},
        {"rung",
         {"0", "1", "2", "3", "4", "5"},
         "of the ladder of evidence: 0 steps, 1 NVTX ranges, 2 kernels, 4 op shapes"}},
       4},
      {Metric::kCapability,
       kGauge,
       "flopledger_capability",
       "0 or 1",
       "1 if a source of evidence is there.",
       "",
       {{"name", {}, "the probe"}, {"reason", {}, "ok, or why it is not there"}},
       12},
      {Metric::kFinding,
       kGauge,
       "flopledger_finding",
       "0 or 1",
       "1 if the last step has the finding.",
       "",
       {{"id", {kFindingIds.begin(), kFindingIds.end()}, "what was found"}},
       12},
  };
}

std::vector<MetricEntry> InfoEntries() {
  constexpr auto kGauge = MetricType::kGauge;
  return {
      {Metric::kTrainingValue,
       kGauge,
       "flopledger_training_value",
       "as given",
       "A number that the training program gave: loss, learning rate.",
       "until it is given, and while it is not finite",
       {{"name", {}, "as the program names it, cleaned"}},
       16},
      {Metric::kConventionInfo,
       kGauge,
       "flopledger_convention_info",
       "1",
       "How FLOPs are counted in this run; join on (run_id, rank).",
       "",
       {{"convention", {}, "name"},
        {"convention_hash", {}, "hash over every switch"},
        {"dtype", NamesOf<DType, kAllDTypes.size()>(), "of the peak"},
        {"peak_evidence", {}, "how far the peak can be believed, or unknown"},
        {"formula", {}, "the declared model, or empty"}},
       1},
      {Metric::kDeviceInfo,
       kGauge,
       "flopledger_device_info",
       "1",
       "The device whose peak is used, and where the peak comes from.",
       "no peak is known",
       {{"device_model", {}, "as the driver or the user names it"},
        {"peak_source", {}, "title of the sheet, or how it was measured"}},
       1},
      {Metric::kBuildInfo,
       kGauge,
       "flopledger_build_info",
       "1",
       "Version of flopledger.",
       "",
       {{"version", {}, "semantic version"}},
       1},
  };
}

}  // namespace

std::string_view ToString(MetricType type) {
  constexpr std::array<std::string_view, 3> kNames = {"counter", "gauge", "histogram"};
  return kNames[static_cast<std::size_t>(type)];
}

const std::vector<MetricEntry>& MetricCatalogue() {
  static const std::vector<MetricEntry> catalogue = [] {
    std::vector<MetricEntry> entries = FlopEntries();
    for (const auto& part : {PeakEntries(), TimeEntries(), KernelEntries(), OverheadEntries(),
                             WindowEntries(), StateEntries(), InfoEntries()}) {
      entries.insert(entries.end(), part.begin(), part.end());
    }
    return entries;
  }();
  return catalogue;
}

const MetricEntry& EntryOf(Metric metric) {
  return MetricCatalogue()[static_cast<std::size_t>(metric)];
}

std::span<const double> DefaultDurationBounds() {
  static constexpr std::array<double, 12> kBounds = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25,
                                                     0.5,   1,    2.5,   5,    15,  60};
  return kBounds;
}

}  // namespace flopledger
