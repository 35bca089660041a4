#include "flopledger/peak.h"

#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

namespace flopledger {
namespace {

constexpr double kSmallestRate = 1e9;
constexpr double kLargestRate = 1e17;

constexpr std::array<std::pair<std::string_view, double>, 6> kUnits = {{{"", 1},
                                                                        {"FLOP/s", 1},
                                                                        {"MFLOP/s", 1e6},
                                                                        {"GFLOP/s", 1e9},
                                                                        {"TFLOP/s", 1e12},
                                                                        {"PFLOP/s", 1e15}}};

std::string_view Trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

tl::unexpected<Status> Refuse(std::string_view text, std::string_view why) {
  return InvalidArgument("peak '" + std::string(text) + "' " + std::string(why) +
                         "; accepted: 1e9 to 1e17 FLOP/s, as in '312 TFLOP/s' or '3.12e14'");
}

}  // namespace

Result<FlopsPerSecond> ParsePeakRate(std::string_view text) {
  const std::string_view trimmed = Trim(text);
  double number = 0;
  const auto [end, error] =
      std::from_chars(trimmed.data(), trimmed.data() + trimmed.size(), number);
  if (error == std::errc::invalid_argument) return Refuse(text, "does not begin with a number");
  if (error == std::errc::result_out_of_range || !std::isfinite(number)) {
    return Refuse(text, "is not a finite number");
  }
  const std::string_view unit =
      Trim(trimmed.substr(static_cast<std::size_t>(end - trimmed.data())));
  for (const auto& [name, factor] : kUnits) {
    if (name != unit) continue;
    const double rate = number * factor;
    if (rate < kSmallestRate || rate > kLargestRate) {
      return Refuse(text, unit.empty() ? "is out of range without a unit" : "is out of range");
    }
    return FlopsPerSecond(rate);
  }
  return Refuse(text, "has a unit that is not known (FLOP/s, MFLOP/s, GFLOP/s, TFLOP/s, PFLOP/s)");
}

}  // namespace flopledger
