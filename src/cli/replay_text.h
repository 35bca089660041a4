#pragma once

#include <string>

#include "cli/ink.h"
#include "session/replay.h"

namespace flopledger::cli {

/// The replay for a terminal or a file.
std::string WriteText(const ReplayResult& result, const Ink& ink);

}  // namespace flopledger::cli
