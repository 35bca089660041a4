#pragma once

#include <span>
#include <string_view>

#include "export/live_assets.h"

namespace flopledger::cli {

/// Files that the program prints or puts into its reports, compiled in: the rules and dashboards of
/// `docs/`, and `src/cli/assets`.
std::span<const LiveAsset> ShippedFiles();

/// Content of one of them; empty if there is none of this name.
std::string_view ShippedFile(std::string_view name);

}  // namespace flopledger::cli
