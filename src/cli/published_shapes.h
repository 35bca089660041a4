#pragma once

#include <optional>
#include <string_view>

#include "flopledger/transformer.h"

namespace flopledger::cli {

/// Public model shapes by the short name that formula ids use (`llama3_70b`, `dsv3`, ...).
std::optional<TransformerDescription> FindPublicShape(std::string_view name);

}  // namespace flopledger::cli
