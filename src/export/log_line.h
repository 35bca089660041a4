#pragma once

#include <string>

#include "export/step_window.h"
#include "flopledger/step_report.h"

namespace flopledger {

/// One line of a step for people:
///
///     step 1200 | 0.512 s | MFU 41.8 % | HFU 55.6 % | recompute 24.9 % | coverage 98.1 % |
///     7.90k tok/s | loss 2.31
///
/// What is not known is `N/A` with the reason, never 0. HFU is `>= 55.6 %` while some work is
/// uncounted. Values that the program gave come last, in their order. With `window`, the ratios
/// and the rate are those of the last steps. Thread: any. Fails: never.
std::string RenderLogLine(const StepReport& report);
std::string RenderLogLine(const StepReport& report, const WindowRatios& window);

}  // namespace flopledger
