// RunTotals to counters: which series exist, and when they begin to.
#include "export/prometheus_sink.h"
#include "flopledger/causes.h"

namespace flopledger {
namespace {

template <typename Enum>
std::string Name(Enum value) {
  return std::string(ToString(value));
}

// Combinations of class and coverage that the rules can give, so that they start at 0.
bool IsExpected(OpClass op_class, CoverageKind coverage) {
  const bool has_flops = op_class == OpClass::kMatmul || op_class == OpClass::kAttention ||
                         op_class == OpClass::kConvolution;
  switch (coverage) {
    case CoverageKind::kCounted:
      return has_flops;
    case CoverageKind::kOutside:
      return !has_flops && op_class != OpClass::kUnknown;
    case CoverageKind::kUnknown:
      return true;
  }
  return false;
}

// Losses that can happen, so that they start at 0.
constexpr std::pair<LossRecord::Where, LossRecord::Reason> kLosses[] = {
    {LossRecord::Where::kHostRing, LossRecord::Reason::kFull},
    {LossRecord::Where::kMarkerRing, LossRecord::Reason::kFull},
    {LossRecord::Where::kSignatureTable, LossRecord::Reason::kFull},
    {LossRecord::Where::kTimeline, LossRecord::Reason::kFull},
    {LossRecord::Where::kTimeline, LossRecord::Reason::kLate},
    {LossRecord::Where::kTimeline, LossRecord::Reason::kInvalidTime},
    {LossRecord::Where::kDevice, LossRecord::Reason::kFull},
    {LossRecord::Where::kDevice, LossRecord::Reason::kInvalidTime},
    {LossRecord::Where::kDevice, LossRecord::Reason::kUnknownCount},
};

}  // namespace

void PrometheusSink::SetTotals(const RunTotals& totals) {
  SetFlopTotals(totals);
  if (has_evidence_) SetExecutedTotals(totals);
  SetTimeTotals(totals);
}

void PrometheusSink::SetFlopTotals(const RunTotals& totals) {
  if (has_declaration_) {
    table_.SetCounters(Metric::kUsefulFlops, {{{"forward"}, totals.useful_forward.ToDouble()},
                                              {{"backward"}, totals.useful_backward.ToDouble()}});
    table_.SetCounter(Metric::kPaddingFlops, totals.padding.ToDouble());
  }
  if (!has_peak_) return;
  std::vector<MetricSample> peaks;
  if (totals.eligible_peak.count(run_.peak_dtype) == 0) {
    peaks.push_back({{Name(run_.peak_dtype)}, 0});
  }
  for (const auto& [dtype, flops] : totals.eligible_peak) {
    peaks.push_back({{Name(dtype)}, flops.ToDouble()});
  }
  table_.SetCounters(Metric::kEligiblePeakFlops, peaks);
  std::vector<MetricSample> lost;
  for (std::string_view cause : EntryOf(Metric::kLostPeakFlops).labels.front().values) {
    if (totals.lost_peak.count(std::string(cause)) == 0) lost.push_back({{std::string(cause)}, 0});
  }
  for (const auto& [cause, flops] : totals.lost_peak) {
    if (cause != "useful") lost.push_back({{CleanLabelValue(cause)}, flops.ToDouble()});
  }
  table_.SetCounters(Metric::kLostPeakFlops, lost);
}

void PrometheusSink::SetExecutedTotals(const RunTotals& totals) {
  std::vector<MetricSample> executed;
  for (FlopSource source : {FlopSource::kCounter, FlopSource::kOpShapes, FlopSource::kCompiler,
                            FlopSource::kLearned, FlopSource::kDeclared}) {
    if (totals.executed.count({run_.peak_dtype, source}) == 0) {
      executed.push_back({{Name(run_.peak_dtype), Name(source)}, 0});
    }
  }
  for (const auto& [key, flops] : totals.executed) {
    executed.push_back({{Name(key.first), Name(key.second)}, flops.ToDouble()});
  }
  table_.SetCounters(Metric::kExecutedFlops, executed);
  table_.SetCounters(Metric::kRecomputedFlops, {{{"phase"}, totals.recomputed.ToDouble()}});
  table_.SetCounter(Metric::kAuxiliaryFlops, totals.auxiliary.ToDouble());
  table_.SetCounters(Metric::kExcessFlops, {{{"positive"}, totals.excess_positive.ToDouble()},
                                            {{"negative"}, totals.excess_negative.ToDouble()}});
  if (has_declaration_) {
    table_.SetCounters(Metric::kUnexplainedFlops,
                       {{{"positive"}, totals.unexplained_positive.ToDouble()},
                        {{"negative"}, totals.unexplained_negative.ToDouble()}});
  }
  std::vector<MetricSample> seconds;
  std::vector<MetricSample> launches;
  for (std::size_t c = 0; c < kCoverageKindCount; ++c) {
    const auto coverage = static_cast<CoverageKind>(c);
    for (std::size_t o = 0; o < kOpClassCount; ++o) {
      const auto op_class = static_cast<OpClass>(o);
      const double value = totals.kernel_time[o][c].seconds();
      if (value > 0 || IsExpected(op_class, coverage)) {
        seconds.push_back({{Name(op_class), Name(coverage)}, value});
      }
    }
    launches.push_back({{Name(coverage)}, static_cast<double>(totals.kernels[c])});
  }
  table_.SetCounters(Metric::kKernelSeconds, seconds);
  table_.SetCounters(Metric::kKernels, launches);
}

void PrometheusSink::SetTimeTotals(const RunTotals& totals) {
  table_.SetCounter(Metric::kStepWallSeconds, totals.wall.seconds());
  std::vector<MetricSample> excluded;
  for (std::string_view reason : kExclusionReasons) {
    if (totals.excluded.count(std::string(reason)) == 0) {
      excluded.push_back({{std::string(reason)}, 0});
    }
  }
  for (const auto& [reason, time] : totals.excluded) {
    excluded.push_back({{CleanLabelValue(reason)}, time.seconds()});
  }
  table_.SetCounters(Metric::kExcludedSeconds, excluded);
  std::vector<MetricSample> states;
  states.reserve(kDeviceStateCount);
  for (std::size_t i = 0; i < kDeviceStateCount; ++i) {
    states.push_back({{Name(static_cast<DeviceState>(i))}, totals.device_time[i].seconds()});
  }
  table_.SetCounters(Metric::kDeviceSeconds, states);
  table_.SetCounters(Metric::kTokens, {{{"useful"}, static_cast<double>(totals.useful_tokens)},
                                       {{"padding"}, static_cast<double>(totals.padding_tokens)}});
  std::vector<MetricSample> steps;
  steps.reserve(totals.steps.size());
  for (std::size_t i = 0; i < totals.steps.size(); ++i) {
    steps.push_back({{Name(static_cast<StepResult>(i))}, static_cast<double>(totals.steps[i])});
  }
  table_.SetCounters(Metric::kSteps, steps);
  std::vector<MetricSample> dropped;
  for (const auto& [where, reason] : kLosses) {
    if (totals.dropped.count({where, reason}) == 0) {
      dropped.push_back({{Name(where), Name(reason)}, 0});
    }
  }
  for (const auto& [key, count] : totals.dropped) {
    dropped.push_back({{Name(key.first), Name(key.second)}, static_cast<double>(count)});
  }
  table_.SetCounters(Metric::kDroppedRecords, dropped);
  table_.SetCounter(Metric::kLateRecords, static_cast<double>(totals.late_records));
}

}  // namespace flopledger
