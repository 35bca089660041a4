#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/rank_logs.h"
#include "flopledger/run_totals.h"
#include "flopledger/step_report.h"
#include "flopledger/units.h"

namespace flopledger::cli {

/// Ratios over ranks, steps or both: sums over sums. Absent, with `refusal`, where a sum is not
/// known.
struct RunRatios {
  std::optional<double> mfu;
  std::optional<double> hfu_low;
  std::optional<double> hfu_high;
  std::optional<double> coverage_time;
  std::optional<double> recompute;
  std::string refusal;  ///< why there is no MFU
};

/// A step over the ranks that were given: from the first one's start to the last one's end.
struct GlobalStep {
  std::int64_t step = 0;
  StepResult result = StepResult::kComplete;  ///< complete: every given rank closed it so
  std::int64_t start_ns = 0;                  ///< after the first start of the run
  std::int64_t end_ns = 0;
  RunRatios ratios;                ///< over this window
  std::vector<int> missing_ranks;  ///< given ranks that did not close it
  int slowest_rank = -1;           ///< most time that was not spent waiting for others
  double slowest_over_ratio = 0;   ///< that time over the middle one of the others, minus 1
  std::int64_t useful_tokens = 0;

  DurationNs wall() const { return DurationNs(end_ns - start_ns); }
};

/// One rank over the complete steps of the run.
struct RankFigures {
  int rank = 0;
  RunTotals totals;
  RunRatios ratios;            ///< over its own steps
  double peak_per_second = 0;  ///< of its devices; 0: unknown
  std::string device_model;
  DurationNs own_time;        ///< wall minus exposed communication: not waiting for other ranks
  double own_over_ratio = 0;  ///< that over the middle one of the other ranks, minus 1
  std::int64_t times_slowest = 0;
  std::int64_t missing_steps = 0;  ///< that other ranks closed
};

/// A peak that ratios stand on, and how many ranks share it.
struct SharedPeak {
  std::optional<PeakRate> peak;
  DType dtype = DType::kFloat32;
  int ranks = 0;
};

/// How steps scatter: what a difference between two runs has to be set against.
struct StepSpread {
  std::int64_t steps = 0;
  double mean_seconds = 0;
  double deviation_seconds = 0;
  double median_seconds = 0;
  double low_seconds = 0;   ///< 5 % are shorter
  double high_seconds = 0;  ///< 5 % are longer
};

/// A finding over the run.
struct FindingCount {
  std::string id;
  std::int64_t steps = 0;  ///< of all ranks
  double worst_ratio = 0;  ///< farthest from 1
  std::string suspect;
};

/// The books of a run over its ranks: a value, what every text, page and comparison is made from.
///
/// Its ratios are over `window`: the union of the complete steps' windows, times the peaks of all
/// ranks. Time in which a rank was in no step of its own is the waterfall's line `rank_skew`.
struct RunReport {
  RunLogs logs;
  RunDescription run;  ///< of the lowest rank
  std::vector<RankFigures> ranks;
  std::vector<SharedPeak> peaks;
  std::vector<int> missing_ranks;  ///< of the world, not among the files
  std::vector<GlobalStep> steps;   ///< by number
  DurationNs window;
  RunTotals totals;  ///< sums over ranks and complete steps
  Flops peak;        ///< of all ranks over `window`
  Flops useful;
  RunRatios ratios;
  RunRatios given_ratios;  ///< of the ranks that were given, where some are missing
  std::vector<WaterfallLine> waterfall;
  std::vector<FindingCount> findings;
  std::vector<CoverageGap> gaps;
  StepSpread spread;
  std::vector<std::string> warnings;
};

/// Cause of the waterfall line for time in which a rank was in no step while others were.
inline constexpr std::string_view kRankSkew = "rank_skew";
/// A rank that is this much slower than the others is named.
inline constexpr double kStragglerRatio = 0.05;

/// Pure. Thread: any. Fails: never; what cannot be said is absent, with a reason.
RunReport BuildRunReport(RunLogs logs);

/// Ranks that are slower than the others by `kStragglerRatio`, the slowest first.
std::vector<const RankFigures*> Stragglers(const RunReport& report);

}  // namespace flopledger::cli
