#pragma once

#include <cstdint>
#include <string>

namespace flopledger::flops {

/// `12.52` with two decimals; with `sign`, a plus in front of what is not negative.
std::string FixedText(double value, int decimals, bool sign = false);
/// The shortest text that reads back as the same number: `989.4`.
std::string ShortestText(double value);
/// Hexadecimal with leading zeros, lower case.
std::string HexText(std::uint64_t value, std::size_t digits);

}  // namespace flopledger::flops
