#include "flopledger/units.h"

#include <algorithm>

namespace flopledger {

std::string ToString(Int128 value) {
  if (value == 0) return "0";
  // The smallest value has no positive counterpart, so digits are taken from the negative side.
  const bool negative = value < 0;
  std::string digits;
  while (value != 0) {
    int digit = static_cast<int>(value % 10);
    digits.push_back(static_cast<char>('0' + (digit < 0 ? -digit : digit)));
    value /= 10;
  }
  if (negative) digits.push_back('-');
  std::reverse(digits.begin(), digits.end());
  return digits;
}

Result<Int128> ParseInt128(std::string_view text) {
  std::string_view rest = text;
  const bool negative = !rest.empty() && rest.front() == '-';
  if (negative) rest.remove_prefix(1);
  if (rest.empty()) return InvalidArgument("'" + std::string(text) + "' is not an integer");
  Int128 value = 0;
  for (char c : rest) {
    if (c < '0' || c > '9') return InvalidArgument("'" + std::string(text) + "' is not an integer");
    const int digit = c - '0';
    if (!CheckedMultiply(value, 10, &value) ||
        !CheckedAdd(value, negative ? -digit : digit, &value)) {
      return Fail(StatusCode::kOverflow, "'" + std::string(text) + "' leaves 128 bits");
    }
  }
  return value;
}

}  // namespace flopledger
