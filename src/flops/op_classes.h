#pragma once

#include <optional>
#include <string_view>

#include "flopledger/records.h"

namespace flopledger {

/// Class of an op that the convention leaves out, by its name: from a table of base names, with
/// in-place (`add_`), backward (`gelu_backward`), list (`_foreach_add_`) and other regular forms
/// derived from the base. Nothing if no rule knows the name.
///
///     ClassifyName("aten::native_layer_norm_backward");  // kNormalization
///
/// Thread: any. Fails: never.
std::optional<OpClass> ClassifyName(std::string_view qualified_name);

}  // namespace flopledger
