#include "number_text.h"

#include <array>
#include <charconv>
#include <string_view>

namespace flopledger::flops {

std::string FixedText(double value, int decimals, bool sign) {
  // The longest double has 309 digits before its point.
  std::array<char, 352> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value,
                                          std::chars_format::fixed, decimals);
  if (error != std::errc()) return "?";
  const std::string digits(text.data(), end);
  return sign && value >= 0 ? "+" + digits : digits;
}

std::string ShortestText(double value) {
  std::array<char, 64> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? std::string(text.data(), end) : "?";
}

std::string HexText(std::uint64_t value, std::size_t digits) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text(digits, '0');
  for (std::size_t i = digits; i > 0 && value > 0; --i, value /= 16) {
    text[i - 1] = kDigits[value % 16];
  }
  return text;
}

}  // namespace flopledger::flops
