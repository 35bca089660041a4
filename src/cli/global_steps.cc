#include "cli/global_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "export/report_text.h"

namespace flopledger::cli {
namespace {

using RankStep = std::pair<int, const PlacedStep*>;

/// Sums of a window; each stays absent once a rank cannot give its part.
struct WindowSums {
  double peak_per_second = 0;
  std::optional<double> useful = 0.0;
  std::optional<double> executed = 0.0;
  double uncertain = 0;
  double known_seconds = 0;
  double observed_seconds = 0;
  double recomputed = 0;
  double executed_total = 0;
  RefusalReason refusal = RefusalReason::kNone;
  int refusing_rank = -1;
};

void Add(const StepReport& step, int rank, WindowSums* sums) {
  const double peak = step.peak_flops.ToDouble();
  const double wall = step.wall.seconds();
  const auto refuse = [&](RefusalReason reason) {
    sums->useful.reset();
    if (sums->refusal != RefusalReason::kNone) return;
    sums->refusal = reason;
    sums->refusing_rank = rank;
  };
  if (peak <= 0 || wall <= 0) {
    refuse(wall <= 0 ? RefusalReason::kNoWall : RefusalReason::kNoPeak);
    sums->executed.reset();
  } else {
    sums->peak_per_second += peak / wall;
  }
  if (!step.declared) {
    refuse(step.utilization.mfu_refusal == RefusalReason::kNone ? RefusalReason::kNoDeclaration
                                                                : step.utilization.mfu_refusal);
  } else if (sums->useful) {
    *sums->useful += step.declared->useful().ToDouble();
  }
  if (!step.utilization.hfu_low_ratio) {
    sums->executed.reset();
  } else if (sums->executed) {
    *sums->executed += step.executed_equivalent.ToDouble();
    if (step.utilization.hfu_high_ratio) {
      sums->uncertain +=
          (*step.utilization.hfu_high_ratio - *step.utilization.hfu_low_ratio) * peak;
    }
  }
  for (const KernelTime& kernel : step.kernels) {
    sums->observed_seconds += kernel.time.seconds();
    if (kernel.coverage != CoverageKind::kUnknown) sums->known_seconds += kernel.time.seconds();
  }
  sums->recomputed += step.executed.recomputed.ToDouble();
  sums->executed_total += step.executed.total.ToDouble();
}

RunRatios RatiosOf(const WindowSums& sums, DurationNs window) {
  RunRatios ratios;
  const double peak = sums.peak_per_second * window.seconds();
  if (sums.useful && peak > 0) {
    ratios.mfu = *sums.useful / peak;
  } else {
    ratios.refusal = fmt::format("{} (rank {})", ReasonText(sums.refusal), sums.refusing_rank);
  }
  if (sums.executed && peak > 0) {
    ratios.hfu_low = *sums.executed / peak;
    ratios.hfu_high = *ratios.hfu_low + sums.uncertain / peak;
  }
  if (sums.observed_seconds > 0) ratios.coverage_time = sums.known_seconds / sums.observed_seconds;
  if (sums.executed_total > 0) ratios.recompute = sums.recomputed / sums.executed_total;
  return ratios;
}

void FindSlowest(const std::vector<RankStep>& parts, GlobalStep* step) {
  if (parts.size() < 2) return;
  std::size_t slowest = 0;
  std::vector<double> own;
  for (const auto& [rank, part] : parts) {
    own.push_back(OwnTime(part->report).seconds());
    if (own.back() > own[slowest]) slowest = own.size() - 1;
  }
  step->slowest_rank = parts[slowest].first;
  const double longest = own[slowest];
  own.erase(own.begin() + static_cast<std::ptrdiff_t>(slowest));
  const double middle = Middle(std::move(own));
  step->slowest_over_ratio = middle > 0 ? longest / middle - 1 : 0;
}

GlobalStep Join(std::int64_t number, const std::vector<RankStep>& parts, const RunReport& report,
                std::int64_t origin_ns) {
  GlobalStep step;
  step.step = number;
  step.start_ns = INT64_MAX;
  step.end_ns = INT64_MIN;
  WindowSums sums;
  for (const auto& [rank, part] : parts) {
    step.start_ns = std::min(step.start_ns, part->start_ns - origin_ns);
    step.end_ns = std::max(step.end_ns, part->end_ns - origin_ns);
    step.result = std::max(step.result, part->report.result);
    step.useful_tokens += part->report.tokens.useful;
    Add(part->report, rank, &sums);
  }
  auto part = parts.begin();  // both rise by rank
  for (const RankLog& log : report.logs.ranks) {
    const int rank = log.run.identity.rank;
    if (part != parts.end() && part->first == rank) {
      ++part;
    } else {
      step.missing_ranks.push_back(rank);
    }
  }
  if (!step.missing_ranks.empty()) step.result = StepResult::kIncomplete;
  step.ratios = RatiosOf(sums, step.wall());
  FindSlowest(parts, &step);
  return step;
}

StepSpread SpreadOf(std::vector<double> seconds) {
  StepSpread spread;
  spread.steps = static_cast<std::int64_t>(seconds.size());
  if (seconds.empty()) return spread;
  std::sort(seconds.begin(), seconds.end());
  for (const double each : seconds) spread.mean_seconds += each;
  spread.mean_seconds /= static_cast<double>(seconds.size());
  double squares = 0;
  for (const double each : seconds) {
    squares += (each - spread.mean_seconds) * (each - spread.mean_seconds);
  }
  if (seconds.size() > 1) {
    spread.deviation_seconds = std::sqrt(squares / static_cast<double>(seconds.size() - 1));
  }
  const auto rank = [&](double share) {
    return seconds[static_cast<std::size_t>(share * static_cast<double>(seconds.size() - 1) + 0.5)];
  };
  spread.low_seconds = rank(0.05);
  spread.high_seconds = rank(0.95);
  spread.median_seconds = Middle(std::move(seconds));
  return spread;
}

}  // namespace

double Middle(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

DurationNs OwnTime(const StepReport& step) {
  if (step.devices.empty()) return step.wall;
  std::int64_t waiting = 0;
  for (const DeviceTime& device : step.devices) {
    waiting += device.InState(DeviceState::kExposedCommunication).ns();
  }
  return step.wall - DurationNs(waiting / static_cast<std::int64_t>(step.devices.size()));
}

bool IsComplete(const RunReport& report, std::int64_t step) {
  const auto at = std::lower_bound(
      report.steps.begin(), report.steps.end(), step,
      [](const GlobalStep& each, std::int64_t number) { return each.step < number; });
  return at != report.steps.end() && at->step == step && at->result == StepResult::kComplete;
}

void AddGlobalSteps(RunReport* report) {
  std::map<std::int64_t, std::vector<RankStep>> by_number;
  std::int64_t origin_ns = INT64_MAX;
  for (const RankLog& log : report->logs.ranks) {
    for (const PlacedStep& step : log.steps) {
      by_number[step.report.step].emplace_back(log.run.identity.rank, &step);
      origin_ns = std::min(origin_ns, step.start_ns);
    }
  }
  report->steps.reserve(by_number.size());
  for (const auto& [number, parts] : by_number) {
    report->steps.push_back(Join(number, parts, *report, origin_ns));
  }
  // Windows of neighbours overlap where ranks end at different times: their union is what counts.
  std::vector<std::pair<std::int64_t, std::int64_t>> windows;
  std::vector<double> seconds;
  for (const GlobalStep& step : report->steps) {
    if (step.result != StepResult::kComplete) continue;
    windows.emplace_back(step.start_ns, step.end_ns);
    seconds.push_back(step.wall().seconds());
  }
  std::sort(windows.begin(), windows.end());
  std::int64_t covered = INT64_MIN;
  std::int64_t sum = 0;
  for (const auto& [start, end] : windows) {
    const std::int64_t from = std::max(start, covered);
    if (end > from) sum += end - from;
    covered = std::max(covered, end);
  }
  report->window = DurationNs(sum);
  report->spread = SpreadOf(std::move(seconds));
}

void AddRunRatios(RunReport* report) {
  WindowSums sums;
  for (const RankLog& log : report->logs.ranks) {
    for (const PlacedStep& step : log.steps) {
      if (IsComplete(*report, step.report.step)) {
        Add(step.report, log.run.identity.rank, &sums);
      }
    }
  }
  // One peak for each rank: its mean over its own steps, over the common window.
  sums.peak_per_second = 0;
  for (const RankFigures& rank : report->ranks) sums.peak_per_second += rank.peak_per_second;
  RunRatios ratios = RatiosOf(sums, report->window);
  const auto refuse = [&ratios](std::string reason) {
    ratios.mfu.reset();
    ratios.hfu_low.reset();
    ratios.hfu_high.reset();
    ratios.refusal = std::move(reason);
  };
  if (report->spread.steps == 0) refuse("no step that every rank completed");
  for (const RankLog& log : report->logs.ranks) {
    if (log.run.convention.hash == report->run.convention.hash) continue;
    refuse(fmt::format("ranks count by different conventions: {} (rank {}) and {} (rank {})",
                       report->run.convention.name, report->run.identity.rank,
                       log.run.convention.name, log.run.identity.rank));
    break;
  }
  report->given_ratios = ratios;
  if (!report->missing_ranks.empty()) {
    refuse(fmt::format("{} of {} ranks are missing", report->missing_ranks.size(),
                       report->run.identity.world_size));
  }
  report->ratios = std::move(ratios);
}

}  // namespace flopledger::cli
