#pragma once

#include <span>
#include <vector>

#include "flopledger/convention.h"
#include "flopledger/peak.h"
#include "flopledger/step_report.h"
#include "ledger/declaration.h"
#include "ledger/flop_resolver.h"
#include "timeline/step_timeline.h"

namespace flopledger {

/// The rates that a step is measured against: one device's by dtype, and how many devices took
/// part.
struct EligiblePeak {
  std::vector<PeakRate> rates;
  DType dtype = DType::kFloat32;  ///< of the declared matmuls: the denominator of MFU
  int device_count = 1;

  const PeakRate* Find(DType wanted) const;
};

/// Executed work of the sections whose whole time is a line of its own in the waterfall: data,
/// checkpoint, evaluation. Part of A and of X.
struct SectionWork {
  Flops auxiliary;
  Flops excess;
};

/// Balances one step's books. Pure arithmetic: no clock, thread, log or file; the same values in,
/// the same report out.
///
/// `E = U + R + A + P + X + e` holds by construction: e is what is left, with its sign. An op in
/// the recompute phase is R, one in the optimizer, evaluation or any other named section is A; the
/// named excess of an op is X wherever it ran. FLOPs come from ops alone; where a device's kernels
/// were seen, times and coverage are the kernels'.
StepReport Reconcile(const StepTimeline& timeline, std::span<const ResolvedOp> ops,
                     const StepDeclaration& declaration, const ConventionId& convention,
                     const EligiblePeak& peak, std::span<const ResolvedKernel> kernels = {});

/// Things that a person should look at in this report; appended by `Reconcile`.
std::vector<Finding> FindContradictions(const StepReport& report, const EligiblePeak& peak);

/// Times of this step that are not what they seem: a clock that was set, a boundary that had to be
/// estimated.
void AddTimingFindings(const StepTimeline& timeline, std::vector<Finding>& findings);

/// The way from peak x wall down to useful work; its lines sum to `report.peak_flops` exactly.
/// Empty without a peak or a declaration.
std::vector<WaterfallLine> BuildWaterfall(const StepReport& report, const EligiblePeak& peak,
                                          const SectionWork& sections);

/// `rate` FLOP/s for `time`, in whole FLOPs, rounded down; exact integer arithmetic.
Flops PeakFlops(FlopsPerSecond rate, DurationNs time);

}  // namespace flopledger
