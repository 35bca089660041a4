#include "export/report_text.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>

#include "flopledger/causes.h"

namespace flopledger {
std::string PercentText(double ratio) {
  const double percent = ratio * 100;
  if (percent != 0 && std::abs(percent) < 0.05) return fmt::format("{:.3f} %", percent);
  return fmt::format("{:.1f} %", percent);
}

std::string IntervalText(double low_ratio, const std::optional<double>& high_ratio) {
  const std::string low = PercentText(low_ratio);
  if (!high_ratio || PercentText(*high_ratio) == low) return low;
  return fmt::format("{} - {}", low.substr(0, low.size() - 2), PercentText(*high_ratio));
}

std::string CountText(double count) {
  constexpr std::array<const char*, 5> kUnits = {"", "k", "M", "G", "T"};
  std::size_t unit = 0;
  while (std::abs(count) >= 999.5 && unit + 1 < kUnits.size()) {
    count /= 1000;
    ++unit;
  }
  if (unit == 0) return fmt::format("{:.0f}", count);
  return fmt::format("{:.{}f}{}", count, std::abs(count) < 9.95 ? 2 : 1, kUnits[unit]);
}

std::string TimeText(DurationNs time) {
  const double seconds = time.seconds();
  if (std::abs(seconds) < 1e-3) return fmt::format("{:.1f} us", seconds * 1e6);
  if (std::abs(seconds) < 0.1) return fmt::format("{:.1f} ms", seconds * 1e3);
  if (seconds < 10) return fmt::format("{:.3f} s", seconds);
  if (seconds < 600) return fmt::format("{:.1f} s", seconds);
  const auto minutes = static_cast<std::int64_t>(seconds / 60);
  return fmt::format("{} h {:02} min", minutes / 60, minutes % 60);
}

std::string RateText(double flops_per_second) {
  constexpr std::array<const char*, 6> kUnits = {"", "k", "M", "G", "T", "P"};
  std::size_t unit = 0;
  while (std::abs(flops_per_second) >= 1000 && unit + 1 < kUnits.size()) {
    flops_per_second /= 1000;
    ++unit;
  }
  return fmt::format("{:.4g} {}FLOP/s", flops_per_second, kUnits[unit]);
}

std::string KernelText(const std::string& name) {
  constexpr std::size_t kLongest = 72;
  std::string text = name;
  if (name.starts_with("_Z")) {
    int status = 0;
    const std::unique_ptr<char, decltype(&std::free)> demangled(
        abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
    if (status == 0) {
      text = demangled.get();
      if (text.starts_with("void ")) text.erase(0, 5);
      // The argument list is the last pair of brackets outside of template arguments.
      int depth = 0;
      for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '<') ++depth;
        if (text[i] == '>') --depth;
        if (text[i] == '(' && depth == 0 && text.compare(i, 21, "(anonymous namespace)") != 0) {
          text.resize(i);
          break;
        }
      }
    }
  }
  if (text.size() > kLongest) text = text.substr(0, kLongest - 3) + "...";
  return text;
}

std::string_view ReasonText(RefusalReason reason) {
  switch (reason) {
    case RefusalReason::kNone:
      return "unknown";
    case RefusalReason::kNoDeclaration:
      return "no model formula";
    case RefusalReason::kNoTokens:
      return "no tokens declared";
    case RefusalReason::kNoSequenceLength:
      return "no sequence length";
    case RefusalReason::kDeclarationLost:
      return "tokens lost";
    case RefusalReason::kEvaluationFailed:
      return "formula failed";
    case RefusalReason::kNoPeak:
      return "no peak for the dtype";
    case RefusalReason::kNoEvidence:
      return "nothing observed";
    case RefusalReason::kNoWall:
      return "no wall time";
  }
  return "unknown";
}

std::string CauseText(std::string_view cause) {
  if (const LostCause* known = FindLostCause(cause)) return std::string(known->text);
  if (cause == kAbovePeakCause) return "more than the peak allows: the peak or a count is wrong";
  std::string spaced(cause);
  std::replace(spaced.begin(), spaced.end(), '_', ' ');
  return spaced;
}

}  // namespace flopledger
