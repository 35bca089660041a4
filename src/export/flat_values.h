#pragma once

#include <string>
#include <utility>
#include <vector>

#include "flopledger/step_report.h"

namespace flopledger {

/// A step as flat numbers for a user's own logger: `flopledger/mfu`, `flopledger/hfu_low`, ...
/// Ratios are 0 to 1, times in seconds. What is not known is left out. Thread: any.
std::vector<std::pair<std::string, double>> FlatValues(const StepReport& report);

}  // namespace flopledger
