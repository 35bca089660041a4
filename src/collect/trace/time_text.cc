#include "collect/trace/time_text.h"

#include <charconv>

namespace flopledger {
namespace {

bool IsDigit(char letter) { return letter >= '0' && letter <= '9'; }

struct Decimal {
  bool negative = false;
  std::string_view whole;
  std::string_view fraction;
  int exponent = 0;
};

std::optional<Decimal> Split(std::string_view text) {
  Decimal number;
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) {
    number.negative = text.front() == '-';
    text.remove_prefix(1);
  }
  std::size_t end = 0;
  while (end < text.size() && IsDigit(text[end])) ++end;
  number.whole = text.substr(0, end);
  text.remove_prefix(end);
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    end = 0;
    while (end < text.size() && IsDigit(text[end])) ++end;
    number.fraction = text.substr(0, end);
    text.remove_prefix(end);
  }
  if (number.whole.empty() && number.fraction.empty()) return std::nullopt;
  if (!text.empty() && (text.front() == 'e' || text.front() == 'E')) {
    text.remove_prefix(1);
    if (!text.empty() && text.front() == '+') text.remove_prefix(1);
    const auto [rest, error] =
        std::from_chars(text.data(), text.data() + text.size(), number.exponent);
    if (error != std::errc() || number.exponent > 64 || number.exponent < -64) return std::nullopt;
    text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  }
  if (!text.empty()) return std::nullopt;
  return number;
}

/// Digit `i` of the number without its point; zeros beyond both ends.
int DigitAt(const Decimal& number, std::int64_t i) {
  const auto whole = static_cast<std::int64_t>(number.whole.size());
  if (i < 0) return 0;
  if (i < whole) return number.whole[static_cast<std::size_t>(i)] - '0';
  const auto fraction = static_cast<std::size_t>(i - whole);
  return fraction < number.fraction.size() ? number.fraction[fraction] - '0' : 0;
}

/// What nearly every trace has: at most 15 digits, then at most three.
bool ParsePlain(std::string_view text, std::int64_t* ns) {
  std::int64_t value = 0;
  std::size_t i = 0;
  for (; i < text.size() && IsDigit(text[i]); ++i) {
    if (i >= 15) return false;
    value = value * 10 + (text[i] - '0');
  }
  if (i == 0) return false;
  int places = 0;
  if (i < text.size() && text[i] == '.') {
    for (++i; i < text.size() && IsDigit(text[i]); ++i) {
      if (++places > 3) return false;
      value = value * 10 + (text[i] - '0');
    }
  }
  if (i != text.size()) return false;
  for (; places < 3; ++places) value *= 10;
  *ns = value;
  return true;
}

}  // namespace

std::optional<std::int64_t> MicrosecondsToNs(std::string_view text) {
  if (std::int64_t plain = 0; ParsePlain(text, &plain)) return plain;
  const std::optional<Decimal> number = Split(text);
  if (!number) return std::nullopt;
  // The point moves three places to the right, and by the exponent.
  const std::int64_t kept = static_cast<std::int64_t>(number->whole.size()) + number->exponent + 3;
  std::uint64_t value = 0;
  for (std::int64_t i = 0; i < kept; ++i) {
    if (__builtin_mul_overflow(value, std::uint64_t{10}, &value) ||
        __builtin_add_overflow(value, static_cast<std::uint64_t>(DigitAt(*number, i)), &value)) {
      return std::nullopt;
    }
  }
  const int next = DigitAt(*number, kept);
  bool beyond = false;
  const auto digits = static_cast<std::int64_t>(number->whole.size() + number->fraction.size());
  for (std::int64_t i = kept < 0 ? 0 : kept + 1; i < digits; ++i) {
    beyond = beyond || DigitAt(*number, i) != 0;
  }
  if (next > 5 || (next == 5 && (beyond || value % 2 == 1))) ++value;
  if (value > static_cast<std::uint64_t>(INT64_MAX)) return std::nullopt;
  const auto magnitude = static_cast<std::int64_t>(value);
  return number->negative ? -magnitude : magnitude;
}

std::optional<std::uint64_t> ParseId(std::string_view text) {
  if (!text.empty() && text.front() == '-') {
    const std::optional<std::int64_t> negative = ParseInteger(text);
    if (!negative) return std::nullopt;
    return static_cast<std::uint64_t>(*negative);
  }
  std::uint64_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  const std::string_view tail(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  if (tail.empty() || (tail.front() == '.' && tail.find_first_not_of('0', 1) == tail.npos)) {
    return value;
  }
  return std::nullopt;
}

std::optional<std::int64_t> ParseInteger(std::string_view text) {
  std::int64_t value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc()) return std::nullopt;
  const std::string_view tail(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  if (tail.empty() || (tail.front() == '.' && tail.find_first_not_of('0', 1) == tail.npos)) {
    return value;
  }
  return std::nullopt;
}

}  // namespace flopledger
