#pragma once

#include <span>
#include <string_view>

namespace flopledger::flops {

/// The known word with the fewest edits to `word`, upper and lower case alike: for "did you mean".
/// Empty if nothing is known.
std::string_view Nearest(std::string_view word, std::span<const std::string_view> known);

}  // namespace flopledger::flops
