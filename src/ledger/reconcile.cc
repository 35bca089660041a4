#include "ledger/reconcile.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace flopledger {
namespace {

constexpr std::size_t kGapsInReport = 50;

// A section whose whole time is its own lost cause, whatever ran in it.
bool IsOwnCause(Phase phase) {
  return phase == Phase::kData || phase == Phase::kCheckpoint || phase == Phase::kEval;
}

bool IsModelWork(Phase phase) { return phase == Phase::kForward || phase == Phase::kBackward; }

Flops Total(const std::vector<ExcessPart>& parts) {
  Flops sum;
  for (const ExcessPart& part : parts) sum += part.flops;
  return sum;
}

/// Time and launches of one kind of work, an op's or a kernel's.
struct Timed {
  std::string_view name;
  OpClass op_class = OpClass::kUnknown;
  CoverageKind coverage = CoverageKind::kUnknown;
  GapReason reason = GapReason::kNoRule;
  std::int64_t launches = 0;
  DurationNs time;
};

/// Sums over the work of a step; what `Reconcile` then writes into the report.
struct Sums {
  std::map<std::pair<DType, FlopSource>, Flops> by_dtype;
  std::map<std::string, Flops> excess;
  std::map<std::pair<OpClass, CoverageKind>, KernelTime> kernels;
  std::map<std::pair<std::string, GapReason>, CoverageGap> gaps;
  ExecutedFlops executed;
  SectionWork sections;
  DurationNs unknown_time;     // no count
  DurationNs unmeasured_time;  // counted, but no peak for the dtype
  DurationNs kernel_time;
  std::int64_t launches = 0;
  std::int64_t unknown_launches = 0;

  void AddTime(const ResolvedOp& op, StepReport& report);
  void AddTime(const ResolvedKernel& kernel, StepReport& report);
  void AddTime(const Timed& timed);
  void AddWork(const ResolvedOp& op);
};

void Sums::AddTime(const Timed& timed) {
  KernelTime& kernel = kernels[{timed.op_class, timed.coverage}];
  kernel.op_class = timed.op_class;
  kernel.coverage = timed.coverage;
  kernel.launches += timed.launches;
  kernel.time += timed.time;
  kernel_time += timed.time;
  launches += timed.launches;
  if (timed.coverage != CoverageKind::kUnknown) return;
  unknown_time += timed.time;
  unknown_launches += timed.launches;
  CoverageGap& gap = gaps[{std::string(timed.name), timed.reason}];
  gap.name = timed.name;
  gap.reason = timed.reason;
  gap.launches += timed.launches;
  gap.time += timed.time;
}

void Sums::AddTime(const ResolvedOp& op, StepReport& report) {
  report.op_time_by_phase[static_cast<std::size_t>(op.sum.phase)] += op.sum.self_time;
  if (ActivityOf(op.cost.op_class) == ActivityClass::kNone) return;
  AddTime({.name = op.name,
           .op_class = op.cost.op_class,
           .coverage = op.cost.coverage,
           .reason = op.cost.reason,
           .launches = op.sum.launches,
           .time = op.sum.self_time});
}

void Sums::AddTime(const ResolvedKernel& kernel, StepReport& report) {
  report.op_time_by_phase[static_cast<std::size_t>(kernel.sum.phase)] += kernel.sum.time;
  AddTime({.name = kernel.name,
           .op_class = kernel.op_class,
           .coverage = kernel.coverage,
           .reason = kernel.reason,
           .launches = kernel.sum.launches,
           .time = kernel.sum.time});
}

void Sums::AddWork(const ResolvedOp& op) {
  if (op.cost.coverage != CoverageKind::kCounted) return;
  const Flops executed_here = op.cost.executed * op.sum.launches;
  const Flops excess_here = Total(op.cost.excess) * op.sum.launches;
  executed.total += executed_here;
  executed.excess += excess_here;
  by_dtype[{op.cost.dtype, op.source}] += executed_here;
  for (const ExcessPart& part : op.cost.excess) excess[part.cause] += part.flops * op.sum.launches;
  if (op.sum.phase == Phase::kRecompute) {
    executed.recomputed += executed_here - excess_here;
  } else if (!IsModelWork(op.sum.phase)) {
    executed.auxiliary += executed_here - excess_here;
  }
  if (IsOwnCause(op.sum.phase)) {
    sections.auxiliary += executed_here - excess_here;
    sections.excess += excess_here;
  }
}

Sums SumUp(std::span<const ResolvedOp> ops, std::span<const ResolvedKernel> kernels,
           const EligiblePeak& peak, StepReport& report) {
  Sums sums;
  for (const ResolvedOp& op : ops) {
    sums.AddWork(op);
    if (!kernels.empty()) continue;  // on a CPU the ops are the kernels
    sums.AddTime(op, report);
    if (op.cost.coverage == CoverageKind::kCounted && peak.Find(op.cost.dtype) == nullptr) {
      sums.unmeasured_time += op.sum.self_time;
    }
  }
  for (const ResolvedKernel& kernel : kernels) {
    sums.AddTime(kernel, report);
    if (kernel.dtype && peak.Find(*kernel.dtype) == nullptr) {
      sums.unmeasured_time += kernel.sum.time;
    }
  }
  return sums;
}

void WriteExecuted(Sums& sums, const EligiblePeak& peak, StepReport& report) {
  report.executed = std::move(sums.executed);
  for (const auto& [key, flops] : sums.by_dtype) {
    report.executed.parts.push_back({.dtype = key.first, .source = key.second, .flops = flops});
  }
  for (const auto& [cause, flops] : sums.excess) {
    report.executed.excess_parts.push_back({.cause = cause, .flops = flops});
  }
  const PeakRate* own = peak.Find(peak.dtype);
  if (own == nullptr) return;
  for (const ExecutedPart& part : report.executed.parts) {
    const PeakRate* rate = peak.Find(part.dtype);
    if (rate == nullptr) continue;
    const double scale = own->rate.value() / rate->rate.value();
    report.executed_equivalent +=
        rate == own
            ? part.flops
            : Flops::FromInteger(static_cast<Int128>(std::round(part.flops.ToDouble() * scale)));
  }
}

void WriteCoverage(const Sums& sums, std::int64_t lost, StepReport& report) {
  for (const auto& [key, kernel] : sums.kernels) report.kernels.push_back(kernel);
  for (const auto& [key, gap] : sums.gaps) report.gaps.push_back(gap);
  if (lost > 0) {
    report.gaps.push_back({.name = "(lost records)",
                           .reason = GapReason::kRecordLost,
                           .launches = lost,
                           .time = DurationNs()});
  }
  std::sort(report.gaps.begin(), report.gaps.end(), [](const CoverageGap& a, const CoverageGap& b) {
    return a.time != b.time ? a.time > b.time : a.name < b.name;
  });
  if (report.gaps.size() > kGapsInReport) {
    // The tail is summed up, not dropped.
    CoverageGap rest = report.gaps[kGapsInReport];
    rest.name = "(other)";
    for (std::size_t i = kGapsInReport + 1; i < report.gaps.size(); ++i) {
      rest.launches += report.gaps[i].launches;
      rest.time += report.gaps[i].time;
    }
    report.gaps.resize(kGapsInReport);
    report.gaps.push_back(rest);
  }
  if (sums.kernel_time.ns() > 0) {
    report.coverage.time_ratio = 1.0 - sums.unknown_time.seconds() / sums.kernel_time.seconds();
  }
  if (sums.launches + lost > 0) {
    report.coverage.launch_ratio = 1.0 - static_cast<double>(sums.unknown_launches + lost) /
                                             static_cast<double>(sums.launches + lost);
  }
}

void WriteUtilization(const Sums& sums, const StepDeclaration& declaration, bool evidence,
                      std::int64_t lost, int device_count, StepReport& report) {
  Utilization& use = report.utilization;
  const double capacity = report.peak_flops.ToDouble();
  RefusalReason common = RefusalReason::kNone;
  if (report.wall.ns() <= 0) {
    common = RefusalReason::kNoWall;
  } else if (capacity <= 0) {
    common = RefusalReason::kNoPeak;
  }
  use.mfu_refusal = declaration.flops ? common : declaration.refusal;
  use.hfu_refusal = evidence ? common : RefusalReason::kNoEvidence;
  if (use.mfu_refusal == RefusalReason::kNone) {
    use.mfu_ratio = declaration.flops->useful().ToDouble() / capacity;
  }
  if (use.hfu_refusal != RefusalReason::kNone) return;
  use.hfu_low_ratio = report.executed_equivalent.ToDouble() / capacity;
  DurationNs uncertain = sums.unknown_time + sums.unmeasured_time;
  // Records that were lost may have filled whatever looks idle.
  if (lost > 0) {
    for (const DeviceTime& device : report.devices) uncertain += device.InState(DeviceState::kIdle);
  }
  use.hfu_high_ratio =
      *use.hfu_low_ratio + uncertain.seconds() / (report.wall.seconds() * device_count);
}

}  // namespace

const PeakRate* EligiblePeak::Find(DType wanted) const {
  for (const PeakRate& rate : rates) {
    if (rate.dtype == wanted && !rate.sparse && rate.rate.value() > 0) return &rate;
  }
  return nullptr;
}

Flops PeakFlops(FlopsPerSecond rate, DurationNs time) {
  // A rate is at most 1e17, so the product of integers stays far inside of 128 bits.
  const Int128 per_second = static_cast<Int128>(std::llround(rate.value()));
  return Flops::FromInteger(per_second * time.ns() / 1'000'000'000);
}

StepReport Reconcile(const StepTimeline& timeline, std::span<const ResolvedOp> ops,
                     const StepDeclaration& declaration, const ConventionId& convention,
                     const EligiblePeak& peak, std::span<const ResolvedKernel> kernels) {
  StepReport report;
  report.step = timeline.step;
  report.result = timeline.complete ? StepResult::kComplete : StepResult::kIncomplete;
  report.closed_by = timeline.closed_by;
  report.boundary = timeline.boundary;
  report.start_ns = timeline.start_ns;
  report.end_ns = timeline.end_ns;
  report.wall = timeline.wall();
  report.excluded_before = timeline.excluded_before;
  report.devices = timeline.devices;
  report.losses = timeline.losses;
  report.late_records = timeline.late_records;
  report.unlaunched_kernels = timeline.unlaunched_kernels;
  report.collector_overhead = timeline.collector_overhead;
  report.convention = convention;
  report.tokens = declaration.tokens;
  report.declared = declaration.flops;
  report.peak_dtype = peak.dtype;

  std::int64_t lost = 0;
  for (const LossRecord& loss : timeline.losses) {
    if (loss.where == LossRecord::Where::kHostRing || loss.where == LossRecord::Where::kDevice ||
        loss.where == LossRecord::Where::kTimeline) {
      lost += loss.count;
    }
  }
  if (const PeakRate* rate = peak.Find(peak.dtype)) {
    report.peak_flops = PeakFlops(rate->rate, report.wall) * peak.device_count;
  }
  Sums sums = SumUp(ops, kernels, peak, report);
  WriteExecuted(sums, peak, report);
  WriteCoverage(sums, lost, report);
  const bool evidence = !ops.empty();
  if (report.declared && evidence) {
    report.unexplained = report.executed.total - report.declared->useful() -
                         report.executed.recomputed - report.executed.auxiliary -
                         report.declared->padding - report.executed.excess;
  }
  WriteUtilization(sums, declaration, evidence, lost, peak.device_count, report);
  report.waterfall = BuildWaterfall(report, peak, sums.sections);
  report.findings = FindContradictions(report, peak);
  AddTimingFindings(timeline, report.findings);
  return report;
}

}  // namespace flopledger
