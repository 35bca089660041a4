#include "cli/trace_logs.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "export/gap_totals.h"
#include "flopledger/version.h"

namespace flopledger::cli {
namespace {

constexpr std::size_t kGapNames = 1000;

/// Ranks as recorded; by place where two traces say the same or one says nothing.
std::vector<int> RanksOf(const ReplayResult& replayed) {
  std::vector<int> ranks;
  std::set<int> seen;
  for (const ReplayTrace& trace : replayed.traces) {
    ranks.push_back(trace.description.rank.value_or(-1));
    seen.insert(ranks.back());
  }
  if (seen.size() == ranks.size() && seen.count(-1) == 0) return ranks;
  for (std::size_t i = 0; i < ranks.size(); ++i) ranks[i] = static_cast<int>(i);
  return ranks;
}

RankLog LogOf(const ReplayTrace& trace, int rank, int world_size, const std::string& run_id,
              const FlopConvention& convention, const RunLogOptions& options) {
  RankLog log;
  log.paths = {trace.description.name.empty() ? trace.file
                                              : trace.file + ":" + trace.description.name};
  log.run.identity = {.run_id = run_id,
                      .rank = rank,
                      .local_rank = rank,
                      .world_size = world_size,
                      .rank_source = "trace"};
  log.run.convention = IdentifyConvention(convention);
  log.run.peaks = trace.peaks;
  log.run.version = FLOPLEDGER_VERSION;
  if (!trace.reports.empty()) log.run.peak_dtype = trace.reports.front().peak_dtype;
  log.has_summary = true;
  if (!trace.peak_refusal.empty()) {
    const bool said = trace.peak_refusal.starts_with("no peak");
    log.notes.push_back((said ? "" : "no peak: ") + trace.peak_refusal);
  }
  if (trace.reports.empty()) {
    log.notes.emplace_back("no range is known as a step; --step-name names the ranges that are");
  }
  for (const TraceWarning& warning : trace.description.warnings) {
    log.notes.push_back(warning.text);
  }
  GapTotals gaps;
  for (StepReport step : trace.reports) {
    if (step.step < options.first_step || step.step > options.last_step) continue;
    gaps.Add(step);
    step.gaps = {};
    const std::int64_t start_ns = step.start_ns;
    const std::int64_t end_ns = step.end_ns;
    log.steps.push_back({std::move(step), start_ns, end_ns});
  }
  log.gaps = gaps.Largest(kGapNames);
  return log;
}

}  // namespace

std::vector<RankLog> LogsOfTraces(const ReplayResult& replayed, const FlopConvention& convention,
                                  const RunLogOptions& options) {
  std::vector<RankLog> logs;
  if (replayed.traces.empty()) return logs;
  const std::string run_id =
      std::filesystem::path(replayed.traces.front().file).filename().string();
  const std::vector<int> ranks = RanksOf(replayed);
  int world_size = static_cast<int>(ranks.size());
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    world_size = std::max(world_size, ranks[i] + 1);
    world_size = std::max(world_size, replayed.traces[i].description.world_size.value_or(1));
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    logs.push_back(LogOf(replayed.traces[i], ranks[i], world_size, run_id, convention, options));
  }
  return logs;
}

}  // namespace flopledger::cli
