#pragma once

#include <string>

#include "session/replay.h"

namespace flopledger::cli {

/// One object for programs; docs/replay.schema.json is its schema. Whole numbers are integers of
/// any size, what is not known is null.
std::string WriteJson(const ReplayResult& result);

}  // namespace flopledger::cli
