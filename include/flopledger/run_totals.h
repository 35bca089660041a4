#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "flopledger/step_report.h"

namespace flopledger {

/// Sums over the complete steps of a run, and what was left out of them. Every field only grows.
///
///     totals.Add(report);
///     double mfu = *totals.MfuRatio();
///
/// Thread: a value; whoever owns it adds to it. Fails: never; 128-bit sums hold 1e38 FLOPs.
struct FLOPLEDGER_EXPORT RunTotals {
  Flops useful_forward;
  Flops useful_backward;
  Flops useful_in_warmup;  ///< of steps that were left out; counts for goodput alone
  std::map<std::pair<DType, FlopSource>, Flops> executed;
  Flops executed_equivalent;  ///< in FLOPs of the peak's dtype, see `StepReport`
  Flops recomputed;
  Flops auxiliary;
  Flops padding;
  Flops excess_positive;  ///< an excess may be negative in a step; each sign has its own sum
  Flops excess_negative;
  Flops unexplained_positive;
  Flops unexplained_negative;
  std::map<DType, Flops> eligible_peak;
  std::map<std::string, Flops> lost_peak;  ///< by cause; a negative line goes to `above_peak`

  DurationNs wall;
  std::map<std::string, DurationNs> excluded;  ///< by reason
  std::array<DurationNs, kDeviceStateCount> device_time{};
  std::array<std::array<DurationNs, kCoverageKindCount>, kOpClassCount> kernel_time{};
  std::array<std::int64_t, kCoverageKindCount> kernels{};
  std::int64_t useful_tokens = 0;
  std::int64_t padding_tokens = 0;
  std::array<std::int64_t, 3> steps{};  ///< by StepResult
  std::map<std::pair<LossRecord::Where, LossRecord::Reason>, std::int64_t> dropped;
  std::int64_t late_records = 0;
  std::int64_t unlaunched_kernels = 0;
  DurationNs overhead;
  std::array<DurationNs, kOverheadKindCount> collector_overhead{};  ///< by `OverheadRecord::Kind`

  void Add(const StepReport& report);
  /// Time that belongs to no step: before the first boundary, after the last one.
  void Exclude(const std::string& reason, DurationNs time);

  Flops ExecutedTotal() const;
  Flops PeakTotal() const;
  /// Ratios of sums; absent while the denominator is zero.
  std::optional<double> MfuRatio() const;
  std::optional<double> HfuLowRatio() const;
  std::optional<double> CoverageTimeRatio() const;
  std::optional<double> RecomputeRatio() const;
  /// Useful work over everything since start, the excluded time included. Never called MFU.
  std::optional<double> GoodputRatio() const;
};

}  // namespace flopledger
