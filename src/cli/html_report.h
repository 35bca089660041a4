#pragma once

#include <string>

#include "cli/run_report.h"

namespace flopledger::cli {

/// One page with pictures: the waterfall, the timeline of the devices, utilization by step,
/// coverage by class, how it was counted. Needs no network and no file beside it; names that others
/// chose (kernels, runs) are data in it, never markup.
///
/// Thread: any. Fails: never.
std::string WriteHtml(const RunReport& report);

}  // namespace flopledger::cli
