#include "cli/run_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "export/report_text.h"

namespace flopledger::cli {
namespace {

/// Token counts that differ by less are the same: lengths vary from batch to batch.
constexpr double kSameTokens = 1e-3;

double Units(const RunReport& report, DiffUnit unit) {
  return unit == DiffUnit::kToken ? static_cast<double>(report.totals.useful_tokens)
                                  : static_cast<double>(report.spread.steps);
}

double TokensPerStep(const RunReport& report) {
  return report.spread.steps > 0 ? static_cast<double>(report.totals.useful_tokens) /
                                       static_cast<double>(report.spread.steps)
                                 : 0;
}

/// Of all ranks; 0: unknown.
double PeakPerSecond(const RunReport& report) {
  double sum = 0;
  for (const RankFigures& rank : report.ranks) {
    if (rank.peak_per_second <= 0) return 0;
    sum += rank.peak_per_second;
  }
  return sum;
}

std::string PeakText(const RunReport& report) {
  std::string text;
  for (const SharedPeak& shared : report.peaks) {
    if (!text.empty()) text += ", ";
    text += shared.peak ? fmt::format("{} x {} {} ({}: {})", shared.ranks,
                                      RateText(shared.peak->rate.value()), ToString(shared.dtype),
                                      ToString(shared.peak->evidence), shared.peak->source)
                        : fmt::format("{} x unknown", shared.ranks);
  }
  return text;
}

std::string DevicesText(const RunReport& report) {
  std::map<std::string, int> counts;
  for (const RankFigures& rank : report.ranks) {
    ++counts[rank.device_model.empty() ? "unknown" : rank.device_model];
  }
  std::string text;
  for (const auto& [name, count] : counts) {
    text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", count, name);
  }
  return text;
}

void CompareTerms(const RunReport& before, const RunReport& after, RunDiff* diff) {
  const auto compare = [diff](const char* what, const std::string& a, const std::string& b) {
    if (a != b) diff->terms.push_back({what, a, b});
  };
  compare("ranks", std::to_string(before.ranks.size()), std::to_string(after.ranks.size()));
  compare("device", DevicesText(before), DevicesText(after));
  compare("peak_dtype", std::string(ToString(before.run.peak_dtype)),
          std::string(ToString(after.run.peak_dtype)));
  compare("peak", PeakText(before), PeakText(after));
  const auto convention = [](const RunReport& report) {
    return fmt::format("{} ({:016x})", report.run.convention.name, report.run.convention.hash);
  };
  compare("convention", convention(before), convention(after));
  const auto formula = [](const RunReport& report) {
    return report.run.model.empty() ? std::string("none") : report.run.model;
  };
  compare("formula", formula(before), formula(after));
  const double tokens = TokensPerStep(before);
  if (std::abs(TokensPerStep(after) - tokens) > kSameTokens * std::max(tokens, 1.0)) {
    compare("tokens", fmt::format("{:.0f} a step", tokens),
            fmt::format("{:.0f} a step", TokensPerStep(after)));
  }
}

double StandardErrorRatio(const StepSpread& spread) {
  if (spread.steps < 2 || spread.mean_seconds <= 0) return 0;
  return spread.deviation_seconds / spread.mean_seconds /
         std::sqrt(static_cast<double>(spread.steps));
}

void CompareSpeed(const RunReport& before, const RunReport& after, RunDiff* diff) {
  const auto scatter = [](const StepSpread& spread) {
    return spread.mean_seconds > 0 ? spread.deviation_seconds / spread.mean_seconds : 0;
  };
  diff->before_step_deviation_ratio = scatter(before.spread);
  diff->after_step_deviation_ratio = scatter(after.spread);
  if (before.spread.steps == 0 || after.spread.steps == 0) return;
  diff->before_seconds = before.window.seconds() / Units(before, diff->unit);
  diff->after_seconds = after.window.seconds() / Units(after, diff->unit);
  if (before.spread.steps < 2 || after.spread.steps < 2) return;  // one step says nothing of noise
  const double a = StandardErrorRatio(before.spread);
  const double b = StandardErrorRatio(after.spread) * (1 + diff->change_ratio());
  diff->noise_ratio = 2 * std::sqrt(a * a + b * b);
  const double change = diff->change_ratio();
  // Below a thousandth nothing is worth a word, however quiet the steps are.
  if (std::abs(change) <= std::max(diff->noise_ratio, 1e-3)) {
    diff->verdict = SpeedVerdict::kWithinNoise;
  } else {
    diff->verdict = change < 0 ? SpeedVerdict::kFaster : SpeedVerdict::kSlower;
  }
}

void CompareRatios(const RunReport& before, const RunReport& after, RunDiff* diff) {
  if (diff->before_seconds > 0 && diff->after_seconds > 0) {
    diff->speed_factor = diff->before_seconds / diff->after_seconds;
  }
  const double work_before = before.useful.ToDouble() / Units(before, diff->unit);
  const double work_after = after.useful.ToDouble() / Units(after, diff->unit);
  if (work_before > 0 && work_after > 0) diff->work_factor = work_after / work_before;
  const double peak_before = PeakPerSecond(before);
  const double peak_after = PeakPerSecond(after);
  if (peak_before > 0 && peak_after > 0) diff->peak_factor = peak_before / peak_after;
  const std::optional<double>& mfu_before = before.given_ratios.mfu;
  const std::optional<double>& mfu_after = after.given_ratios.mfu;
  if (mfu_before && mfu_after && *mfu_before > 0) diff->mfu_factor = *mfu_after / *mfu_before;
}

/// Lines whose share of the time depends on the peak; their sum, the time of matmuls, does not.
bool IsMatmulWork(std::string_view cause) {
  constexpr std::array<std::string_view, 7> kLines = {
      "matmul_below_peak", "padding", "auxiliary", "excess", "recompute", "unexplained", "useful"};
  return std::find(kLines.begin(), kLines.end(), cause) != kLines.end();
}

/// Causes with their part of the window, in seconds.
std::vector<std::pair<std::string, double>> CauseSeconds(const RunReport& report, bool by_waterfall,
                                                         bool merge_work) {
  std::vector<std::pair<std::string, double>> causes;
  const double window = report.window.seconds();
  if (by_waterfall) {
    for (const WaterfallLine& line : report.waterfall) {
      causes.emplace_back(merge_work && IsMatmulWork(line.cause) ? kMatmulWork : line.cause,
                          line.flops.ToDouble() / report.peak.ToDouble() * window);
    }
    return causes;
  }
  double all = 0;
  for (const DurationNs time : report.totals.device_time) all += time.seconds();
  for (std::size_t i = 0; i < kDeviceStateCount && all > 0; ++i) {
    causes.emplace_back(ToString(static_cast<DeviceState>(i)),
                        report.totals.device_time[i].seconds() / all * window);
  }
  return causes;
}

void CompareCauses(const RunReport& before, const RunReport& after, RunDiff* diff) {
  diff->by_waterfall = !before.waterfall.empty() && !after.waterfall.empty();
  const bool merge_work = std::any_of(diff->terms.begin(), diff->terms.end(),
                                      [](const auto& term) { return term.what == "peak"; });
  const auto change_of = [diff](const std::string& cause) -> CauseChange& {
    for (CauseChange& change : diff->causes) {
      if (change.cause == cause) return change;
    }
    return diff->causes.emplace_back(CauseChange{.cause = cause});
  };
  for (const auto& [cause, seconds] : CauseSeconds(before, diff->by_waterfall, merge_work)) {
    change_of(cause).before_seconds += seconds / Units(before, diff->unit);
  }
  for (const auto& [cause, seconds] : CauseSeconds(after, diff->by_waterfall, merge_work)) {
    change_of(cause).after_seconds += seconds / Units(after, diff->unit);
  }
  std::stable_sort(diff->causes.begin(), diff->causes.end(), [](const auto& a, const auto& b) {
    return std::abs(a.change_seconds()) > std::abs(b.change_seconds());
  });
}

void CompareKernels(const RunReport& before, const RunReport& after, RunDiff* diff) {
  // Of one rank: all ranks run at the same time.
  const auto seconds = [&](const RunReport& report, std::size_t op_class) {
    double sum = 0;
    for (const DurationNs time : report.totals.kernel_time[op_class]) sum += time.seconds();
    return sum / Units(report, diff->unit) / static_cast<double>(report.ranks.size());
  };
  for (std::size_t i = 0; i < kOpClassCount; ++i) {
    const ClassChange change{static_cast<OpClass>(i), seconds(before, i), seconds(after, i)};
    if (change.before_seconds > 0 || change.after_seconds > 0) diff->classes.push_back(change);
  }
  std::stable_sort(diff->classes.begin(), diff->classes.end(), [](const auto& a, const auto& b) {
    return std::abs(a.after_seconds - a.before_seconds) >
           std::abs(b.after_seconds - b.before_seconds);
  });
  std::set<std::string> old_names;
  std::set<std::string> new_names;
  for (const CoverageGap& gap : before.gaps) old_names.insert(gap.name);
  for (const CoverageGap& gap : after.gaps) new_names.insert(gap.name);
  std::set_difference(new_names.begin(), new_names.end(), old_names.begin(), old_names.end(),
                      std::back_inserter(diff->new_gaps));
  std::set_difference(old_names.begin(), old_names.end(), new_names.begin(), new_names.end(),
                      std::back_inserter(diff->gone_gaps));
}

}  // namespace

RunDiff CompareRuns(const RunReport& before, const RunReport& after) {
  RunDiff diff;
  if (before.totals.useful_tokens > 0 && after.totals.useful_tokens > 0) {
    diff.unit = DiffUnit::kToken;
  }
  CompareTerms(before, after, &diff);
  CompareSpeed(before, after, &diff);
  if (before.spread.steps > 0 && after.spread.steps > 0) {
    CompareRatios(before, after, &diff);
    CompareCauses(before, after, &diff);
    CompareKernels(before, after, &diff);
  }
  return diff;
}

}  // namespace flopledger::cli
