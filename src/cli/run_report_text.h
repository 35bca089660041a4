#pragma once

#include <string>

#include "cli/ink.h"
#include "cli/run_report.h"

namespace flopledger::cli {

/// The report for a terminal or a file.
std::string WriteText(const RunReport& report, const Ink& ink);

/// What a waterfall cause means, `rank_skew` included.
std::string CauseMeaning(std::string_view cause);

/// One object for programs; keys in docs/cli.md. Per-step lines are left out without `with_steps`.
std::string WriteJson(const RunReport& report, bool with_steps);

}  // namespace flopledger::cli
