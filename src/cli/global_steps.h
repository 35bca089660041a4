#pragma once

#include <cstdint>
#include <vector>

#include "cli/run_report.h"

namespace flopledger::cli {

/// Parts of `BuildRunReport`, in the order in which they run.

/// Matches the ranks' steps by number; fills `steps`, `window` and `spread`.
void AddGlobalSteps(RunReport* report);
/// Is this a complete step of the run?
bool IsComplete(const RunReport& report, std::int64_t step);
/// Time of a step that its rank did not spend waiting for other ranks.
DurationNs OwnTime(const StepReport& step);
/// Ratios of the whole, or why there are none.
void AddRunRatios(RunReport* report);
/// What a reader should know about the input before believing a figure.
void AddWarnings(RunReport* report);

/// The middle value; the mean of the two middle ones; 0 of none.
double Middle(std::vector<double> values);

}  // namespace flopledger::cli
