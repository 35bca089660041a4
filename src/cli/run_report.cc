#include "cli/run_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "cli/global_steps.h"

namespace flopledger::cli {
namespace {

/// `value * times / over` without leaving 128 bits, rounded down.
Int128 Scale(Int128 value, std::int64_t times, std::int64_t over) {
  if (over <= 0) return 0;
  return value / over * times + value % over * times / over;
}

void AddTotals(const RunTotals& more, RunTotals* sum) {
  sum->useful_forward += more.useful_forward;
  sum->useful_backward += more.useful_backward;
  for (const auto& [key, flops] : more.executed) sum->executed[key] += flops;
  sum->executed_equivalent += more.executed_equivalent;
  sum->recomputed += more.recomputed;
  sum->auxiliary += more.auxiliary;
  sum->padding += more.padding;
  sum->excess_positive += more.excess_positive;
  sum->excess_negative += more.excess_negative;
  sum->unexplained_positive += more.unexplained_positive;
  sum->unexplained_negative += more.unexplained_negative;
  for (const auto& [dtype, flops] : more.eligible_peak) sum->eligible_peak[dtype] += flops;
  for (const auto& [cause, flops] : more.lost_peak) sum->lost_peak[cause] += flops;
  sum->wall += more.wall;
  for (std::size_t i = 0; i < kDeviceStateCount; ++i) sum->device_time[i] += more.device_time[i];
  for (std::size_t i = 0; i < kOpClassCount; ++i) {
    for (std::size_t j = 0; j < kCoverageKindCount; ++j) {
      sum->kernel_time[i][j] += more.kernel_time[i][j];
    }
  }
  for (std::size_t i = 0; i < kCoverageKindCount; ++i) sum->kernels[i] += more.kernels[i];
  sum->useful_tokens += more.useful_tokens;
  sum->padding_tokens += more.padding_tokens;
  for (std::size_t i = 0; i < sum->steps.size(); ++i) sum->steps[i] += more.steps[i];
  for (const auto& [key, count] : more.dropped) sum->dropped[key] += count;
  sum->late_records += more.late_records;
  sum->overhead += more.overhead;
}

void AddWaterfall(RunReport* report) {
  Int128 rest = report->peak.count();
  const auto add = [&](std::string cause, Int128 flops, bool physics) {
    rest -= flops;
    report->waterfall.push_back({std::move(cause), Flops::FromInteger(flops), physics});
  };
  // In the order of the steps' own lines, negative ones taken off where they stand.
  std::vector<std::string> order;
  std::map<std::string, std::pair<Int128, bool>> sums;
  for (const RankLog& log : report->logs.ranks) {
    for (const PlacedStep& step : log.steps) {
      if (!IsComplete(*report, step.report.step)) continue;
      for (const WaterfallLine& line : step.report.waterfall) {
        const auto [at, is_new] = sums.try_emplace(line.cause, 0, line.physics);
        if (is_new) order.push_back(line.cause);
        at->second.first += line.flops.count();
      }
    }
  }
  if (order.empty() || report->peak.count() <= 0) return;
  Int128 skew = rest;
  for (const auto& [cause, sum] : sums) skew -= sum.first;
  if (report->ranks.size() > 1 || skew != 0) add(std::string(kRankSkew), skew, false);
  for (const std::string& cause : order) add(cause, sums[cause].first, sums[cause].second);
}

void AddFindings(RunReport* report) {
  std::map<std::string, FindingCount> counts;
  for (const RankLog& log : report->logs.ranks) {
    for (const PlacedStep& step : log.steps) {
      if (step.report.result == StepResult::kWarmup) continue;
      for (const Finding& finding : step.report.findings) {
        FindingCount& count = counts[finding.id];
        if (count.steps++ == 0 || std::abs(finding.ratio - 1) > std::abs(count.worst_ratio - 1)) {
          count.worst_ratio = finding.ratio;
          count.suspect = finding.suspect;
        }
        count.id = finding.id;
      }
    }
  }
  for (auto& [id, count] : counts) report->findings.push_back(std::move(count));
  std::stable_sort(report->findings.begin(), report->findings.end(),
                   [](const auto& a, const auto& b) { return a.steps > b.steps; });
}

void AddGaps(RunReport* report) {
  std::map<std::pair<std::string, GapReason>, CoverageGap> gaps;
  for (const RankLog& log : report->logs.ranks) {
    for (const CoverageGap& gap : log.gaps) {
      CoverageGap& sum = gaps.try_emplace({gap.name, gap.reason}).first->second;
      sum.name = gap.name;
      sum.reason = gap.reason;
      sum.launches += gap.launches;
      sum.time += gap.time;
    }
  }
  for (auto& [key, gap] : gaps) report->gaps.push_back(std::move(gap));
  std::stable_sort(report->gaps.begin(), report->gaps.end(),
                   [](const CoverageGap& a, const CoverageGap& b) { return a.time > b.time; });
}

void AddRank(const RankLog& log, RunReport* report) {
  RankFigures figures;
  figures.rank = log.run.identity.rank;
  for (const PeakRate& peak : log.run.peaks) {
    if (peak.dtype == log.run.peak_dtype && !peak.sparse) figures.device_model = peak.device_model;
  }
  for (const PlacedStep& step : log.steps) {
    if (!IsComplete(*report, step.report.step)) continue;
    figures.totals.Add(step.report);
    figures.own_time += OwnTime(step.report);
  }
  const double wall = figures.totals.wall.seconds();
  const double peak = figures.totals.PeakTotal().ToDouble();
  figures.peak_per_second = wall > 0 ? peak / wall : 0;
  if (figures.totals.useful_forward.count() + figures.totals.useful_backward.count() > 0) {
    figures.ratios.mfu = figures.totals.MfuRatio();
  }
  if (!figures.totals.executed.empty()) figures.ratios.hfu_low = figures.totals.HfuLowRatio();
  figures.ratios.coverage_time = figures.totals.CoverageTimeRatio();
  figures.ratios.recompute = figures.totals.RecomputeRatio();
  for (const GlobalStep& step : report->steps) {
    figures.times_slowest += step.result == StepResult::kComplete &&
                             step.slowest_rank == figures.rank &&
                             step.slowest_over_ratio >= kStragglerRatio;
    figures.missing_steps +=
        std::count(step.missing_ranks.begin(), step.missing_ranks.end(), figures.rank);
  }
  report->ranks.push_back(std::move(figures));
}

bool Same(const std::optional<PeakRate>& a, const std::optional<PeakRate>& b) {
  if (!a || !b) return a.has_value() == b.has_value();
  return a->device_model == b->device_model && a->rate == b->rate && a->source == b->source &&
         a->evidence == b->evidence;
}

void AddPeaks(RunReport* report) {
  for (const RankLog& log : report->logs.ranks) {
    SharedPeak own{.peak = std::nullopt, .dtype = log.run.peak_dtype, .ranks = 1};
    for (const PeakRate& peak : log.run.peaks) {
      if (peak.dtype == own.dtype && !peak.sparse) own.peak = peak;
    }
    const auto known =
        std::find_if(report->peaks.begin(), report->peaks.end(), [&](const SharedPeak& other) {
          return other.dtype == own.dtype && Same(other.peak, own.peak);
        });
    if (known == report->peaks.end()) {
      report->peaks.push_back(std::move(own));
    } else {
      ++known->ranks;
    }
  }
}

void CompareRanks(RunReport* report) {
  for (RankFigures& figures : report->ranks) {
    std::vector<double> others;
    for (const RankFigures& other : report->ranks) {
      if (&other != &figures) others.push_back(other.own_time.seconds());
    }
    const double middle = Middle(std::move(others));
    figures.own_over_ratio = middle > 0 ? figures.own_time.seconds() / middle - 1 : 0;
  }
}

void AddRunSums(RunReport* report) {
  for (const RankFigures& rank : report->ranks) {
    AddTotals(rank.totals, &report->totals);
    report->peak += Flops::FromInteger(
        Scale(rank.totals.PeakTotal().count(), report->window.ns(), rank.totals.wall.ns()));
  }
  report->useful = report->totals.useful_forward + report->totals.useful_backward;
}

}  // namespace

RunReport BuildRunReport(RunLogs logs) {
  RunReport report;
  report.logs = std::move(logs);
  if (report.logs.ranks.empty()) return report;
  report.run = report.logs.ranks.front().run;
  std::set<int> given;
  for (const RankLog& log : report.logs.ranks) given.insert(log.run.identity.rank);
  for (int rank = 0; rank < report.run.identity.world_size; ++rank) {
    if (given.count(rank) == 0) report.missing_ranks.push_back(rank);
  }
  AddPeaks(&report);
  AddGlobalSteps(&report);
  for (const RankLog& log : report.logs.ranks) AddRank(log, &report);
  CompareRanks(&report);
  AddRunSums(&report);
  AddRunRatios(&report);
  AddWaterfall(&report);
  AddFindings(&report);
  AddGaps(&report);
  AddWarnings(&report);
  return report;
}

std::vector<const RankFigures*> Stragglers(const RunReport& report) {
  std::vector<const RankFigures*> slow;
  for (const RankFigures& rank : report.ranks) {
    if (rank.own_over_ratio >= kStragglerRatio) slow.push_back(&rank);
  }
  std::stable_sort(slow.begin(), slow.end(), [](const RankFigures* a, const RankFigures* b) {
    return a->own_over_ratio > b->own_over_ratio;
  });
  return slow;
}

}  // namespace flopledger::cli
