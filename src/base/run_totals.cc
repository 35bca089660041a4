#include "flopledger/run_totals.h"

#include "flopledger/causes.h"
#include "flopledger/step_report.h"

namespace flopledger {
namespace {

std::optional<double> Ratio(double numerator, double denominator) {
  if (denominator <= 0) return std::nullopt;
  return numerator / denominator;
}

}  // namespace

DurationNs DeviceTime::InState(DeviceState state) const {
  DurationNs sum;
  for (DurationNs time : by_state_and_section[static_cast<std::size_t>(state)]) sum += time;
  return sum;
}

DurationNs DeviceTime::InSection(Phase section) const {
  DurationNs sum;
  for (const auto& by_section : by_state_and_section) {
    sum += by_section[static_cast<std::size_t>(section)];
  }
  return sum;
}

std::optional<double> StepReport::RecomputeRatio() const {
  return Ratio(executed.recomputed.ToDouble(), executed.total.ToDouble());
}

void RunTotals::Exclude(const std::string& reason, DurationNs time) { excluded[reason] += time; }

void RunTotals::Add(const StepReport& report) {
  ++steps[static_cast<std::size_t>(report.result)];
  late_records += report.late_records;
  unlaunched_kernels += report.unlaunched_kernels;
  overhead += report.overhead;
  for (std::size_t i = 0; i < kOverheadKindCount; ++i) {
    collector_overhead[i] += report.collector_overhead[i];
  }
  for (const LossRecord& loss : report.losses) dropped[{loss.where, loss.reason}] += loss.count;
  if (report.excluded_before.ns() > 0) Exclude("before_first_step", report.excluded_before);
  if (report.result != StepResult::kComplete) {
    Exclude(std::string(ToString(report.result)), report.wall);
    if (report.result == StepResult::kWarmup && report.declared) {
      useful_in_warmup += report.declared->useful();
    }
    return;
  }

  wall += report.wall;
  if (report.declared) {
    useful_forward += report.declared->useful_forward;
    useful_backward += report.declared->useful_backward;
    padding += report.declared->padding;
  }
  for (const ExecutedPart& part : report.executed.parts) {
    executed[{part.dtype, part.source}] += part.flops;
  }
  executed_equivalent += report.executed_equivalent;
  recomputed += report.executed.recomputed;
  auxiliary += report.executed.auxiliary;
  (report.executed.excess.count() < 0 ? excess_negative : excess_positive) +=
      report.executed.excess.count() < 0 ? -report.executed.excess : report.executed.excess;
  if (report.unexplained) {
    const Flops rest = *report.unexplained;
    (rest.count() < 0 ? unexplained_negative : unexplained_positive) +=
        rest.count() < 0 ? -rest : rest;
  }
  if (report.peak_flops.count() > 0) eligible_peak[report.peak_dtype] += report.peak_flops;
  for (const WaterfallLine& line : report.waterfall) {
    if (line.flops.count() < 0) {
      lost_peak[std::string(kAbovePeakCause)] += -line.flops;
    } else {
      lost_peak[line.cause] += line.flops;
    }
  }
  for (const DeviceTime& device : report.devices) {
    for (std::size_t i = 0; i < kDeviceStateCount; ++i) {
      device_time[i] += device.InState(static_cast<DeviceState>(i));
    }
  }
  for (const KernelTime& kernel : report.kernels) {
    kernel_time[static_cast<std::size_t>(kernel.op_class)]
               [static_cast<std::size_t>(kernel.coverage)] += kernel.time;
    kernels[static_cast<std::size_t>(kernel.coverage)] += kernel.launches;
  }
  useful_tokens += report.tokens.useful;
  padding_tokens += report.tokens.padded - report.tokens.useful;
}

Flops RunTotals::ExecutedTotal() const {
  Flops sum;
  for (const auto& [key, flops] : executed) sum += flops;
  return sum;
}

Flops RunTotals::PeakTotal() const {
  Flops sum;
  for (const auto& [dtype, flops] : eligible_peak) sum += flops;
  return sum;
}

std::optional<double> RunTotals::MfuRatio() const {
  return Ratio((useful_forward + useful_backward).ToDouble(), PeakTotal().ToDouble());
}

std::optional<double> RunTotals::HfuLowRatio() const {
  return Ratio(executed_equivalent.ToDouble(), PeakTotal().ToDouble());
}

std::optional<double> RunTotals::CoverageTimeRatio() const {
  DurationNs known;
  DurationNs all;
  for (const auto& by_coverage : kernel_time) {
    for (std::size_t i = 0; i < kCoverageKindCount; ++i) {
      all += by_coverage[i];
      if (i != static_cast<std::size_t>(CoverageKind::kUnknown)) known += by_coverage[i];
    }
  }
  return Ratio(known.seconds(), all.seconds());
}

std::optional<double> RunTotals::RecomputeRatio() const {
  return Ratio(recomputed.ToDouble(), ExecutedTotal().ToDouble());
}

std::optional<double> RunTotals::GoodputRatio() const {
  const double peak = PeakTotal().ToDouble();
  if (wall.ns() <= 0 || peak <= 0) return std::nullopt;
  double everything = wall.seconds();
  for (const auto& [reason, time] : excluded) everything += time.seconds();
  return (useful_forward + useful_backward + useful_in_warmup).ToDouble() /
         (peak / wall.seconds() * everything);
}

}  // namespace flopledger
