#pragma once

#include <string>
#include <vector>

#include "flopledger/report_sink.h"
#include "flopledger/run_totals.h"
#include "flopledger/step_report.h"

namespace flopledger {

/// The table at the end of a run: steps, time and what was left out of it, the ratios, the identity
/// in FLOPs, the waterfall, the largest gaps (see `GapTotals::Largest`), the peak and where it
/// comes from, the convention, losses and flopledger's own time. Plain text, lines without an end
/// space.
///
/// Thread: any. Fails: never; what is not known says so.
std::string RenderSummary(const RunDescription& run, const RunTotals& totals,
                          const std::vector<CoverageGap>& gaps = {});

}  // namespace flopledger
