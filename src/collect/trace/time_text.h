#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace flopledger {

/// Microseconds as decimal text to whole nanoseconds, exactly: the digits are read, never a binary
/// fraction; what is below a nanosecond is rounded half to even.
///
///     *MicrosecondsToNs("4203669604595.407");   // 4203669604595407
///     *MicrosecondsToNs("0.0005");              // 0 (a tie, to even)
///
/// Thread: pure. Fails: absent if it is no decimal number (an exponent is one) or leaves 64 bits.
std::optional<std::int64_t> MicrosecondsToNs(std::string_view text);

/// A whole number of 64 bits, signed or unsigned: ids above 2^63 keep their bits. A fraction of
/// zeros is allowed (`7.0`).
std::optional<std::uint64_t> ParseId(std::string_view text);
std::optional<std::int64_t> ParseInteger(std::string_view text);

}  // namespace flopledger
