#include "cli/rank_logs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "cli/log_files.h"
#include "cli/trace_logs.h"
#include "export/gap_totals.h"

namespace flopledger::cli {
namespace {

/// Monotonic clocks of one boot differ by nothing, wall clock readings by how long they take; two
/// hosts do not boot within this time of each other.
constexpr std::int64_t kSameClockNs = 20'000'000;
constexpr std::size_t kGapNames = 1000;

std::int64_t ClockOffset(const std::vector<StepReport>& steps) {
  std::vector<std::int64_t> offsets;
  offsets.reserve(steps.size());
  for (const StepReport& step : steps) {
    if (!std::isfinite(step.end_unix_seconds)) continue;
    offsets.push_back(std::llround(static_cast<long double>(step.end_unix_seconds) * 1e9L) -
                      step.end_ns);
  }
  if (offsets.empty()) return 0;
  // The middle one: a wall clock that was set during the run moves the others.
  const auto middle = offsets.begin() + static_cast<std::ptrdiff_t>(offsets.size() / 2);
  std::nth_element(offsets.begin(), middle, offsets.end());
  return *middle;
}

void Place(RankLog* log) {
  for (PlacedStep& step : log->steps) {
    step.start_ns = step.report.start_ns + log->clock_offset_ns;
    step.end_ns = step.report.end_ns + log->clock_offset_ns;
  }
}

/// Orders steps by number; the last of those with one number stays.
void KeepLast(RankLog* log) {
  std::vector<PlacedStep>& steps = log->steps;
  std::stable_sort(steps.begin(), steps.end(), [](const PlacedStep& a, const PlacedStep& b) {
    return a.report.step < b.report.step;
  });
  std::vector<PlacedStep> kept;
  kept.reserve(steps.size());
  for (PlacedStep& step : steps) {
    if (!kept.empty() && kept.back().report.step == step.report.step) {
      ++log->repeated_steps;
      kept.back() = std::move(step);
    } else {
      kept.push_back(std::move(step));
    }
  }
  steps = std::move(kept);
}

/// `more` is a later part of the same rank.
void Append(RankLog more, RankLog* log) {
  log->paths.insert(log->paths.end(), more.paths.begin(), more.paths.end());
  for (PlacedStep& step : more.steps) log->steps.push_back(std::move(step));
  log->gaps.insert(log->gaps.end(), more.gaps.begin(), more.gaps.end());
  log->repeated_steps += more.repeated_steps;
  log->unreadable_lines += more.unreadable_lines;
  log->has_summary = more.has_summary;
  log->has_cut_line = more.has_cut_line;
  log->notes.insert(log->notes.end(), more.notes.begin(), more.notes.end());
}

tl::unexpected<Status> SeveralRuns(const std::vector<RankLog>& logs) {
  std::map<std::string, std::string> examples;
  for (const RankLog& log : logs) examples.emplace(log.run.identity.run_id, log.paths.front());
  std::string list;
  for (const auto& [run, path] : examples) {
    list += fmt::format("{}'{}' ({})", list.empty() ? "" : ", ", run, path);
  }
  return InvalidArgument(
      fmt::format("the files are of {} runs: {}; choose one with --run ID, or compare two "
                  "with 'flopledger diff'",
                  examples.size(), list));
}

}  // namespace

Result<RankLog> ReadRankLog(const std::string& text, const std::string& path,
                            const RunLogOptions& options) {
  Result<StepLog> read = ReadStepLog(text);
  if (!read.has_value()) return Fail(read.error().code(), path + ": " + read.error().message());
  RankLog log;
  log.paths = {path};
  log.run = std::move(read->run);
  log.has_summary = read->has_summary;
  log.has_cut_line = read->has_cut_line;
  log.unreadable_lines = read->unreadable_lines;
  log.first_unreadable_line = read->first_unreadable_line;
  log.clock_offset_ns = ClockOffset(read->steps);
  GapTotals gaps;
  for (StepReport& step : read->steps) {
    if (step.step < options.first_step || step.step > options.last_step) continue;
    gaps.Add(step);
    step.gaps = {};  // by far the largest part of a step
    log.steps.push_back({std::move(step), 0, 0});
  }
  log.gaps = gaps.Largest(kGapNames);
  Place(&log);
  KeepLast(&log);
  return log;
}

Result<RunLogs> JoinRanks(std::vector<RankLog> logs, const RunLogOptions& options) {
  if (!options.run_id.empty()) {
    std::string seen;
    for (const RankLog& log : logs) {
      seen += fmt::format("{}'{}'", seen.empty() ? "" : ", ", log.run.identity.run_id);
    }
    logs.erase(std::remove_if(
                   logs.begin(), logs.end(),
                   [&](const RankLog& log) { return log.run.identity.run_id != options.run_id; }),
               logs.end());
    if (logs.empty()) {
      return InvalidArgument(
          fmt::format("--run is '{}'; the files are of: {}", options.run_id, seen));
    }
  }
  const bool one_run = std::all_of(logs.begin(), logs.end(), [&](const RankLog& log) {
    return log.run.identity.run_id == logs.front().run.identity.run_id;
  });
  if (!one_run) return SeveralRuns(logs);
  RunLogs run;
  std::int64_t lowest = INT64_MAX;
  std::int64_t highest = INT64_MIN;
  for (const RankLog& log : logs) {
    if (log.steps.empty()) continue;
    lowest = std::min(lowest, log.clock_offset_ns);
    highest = std::max(highest, log.clock_offset_ns);
  }
  run.shared_clock = lowest > highest || highest - lowest <= kSameClockNs;
  if (run.shared_clock && lowest <= highest) {
    for (RankLog& log : logs) {
      log.clock_offset_ns = lowest;
      Place(&log);
    }
  }
  // Parts of a rank in the order in which they were written.
  const auto began = [](const RankLog& log) {
    return log.steps.empty() ? INT64_MAX : log.steps.front().start_ns;
  };
  std::stable_sort(logs.begin(), logs.end(), [&](const RankLog& a, const RankLog& b) {
    if (a.run.identity.rank != b.run.identity.rank) {
      return a.run.identity.rank < b.run.identity.rank;
    }
    return began(a) < began(b);
  });
  for (RankLog& log : logs) {
    if (!run.ranks.empty() && run.ranks.back().run.identity.rank == log.run.identity.rank) {
      Append(std::move(log), &run.ranks.back());
    } else {
      run.ranks.push_back(std::move(log));
    }
  }
  for (RankLog& log : run.ranks) KeepLast(&log);
  return run;
}

Result<RunLogs> ReadRunLogs(const std::vector<std::string>& paths, const RunLogOptions& options) {
  Result<std::vector<LogFile>> files = FindLogFiles(paths);
  if (!files.has_value()) return Fail(files.error().code(), files.error().message());
  std::vector<RankLog> logs;
  std::vector<std::string> traces;
  for (const LogFile& file : *files) {
    Result<std::string> beginning = ReadBeginning(file.parts.front());
    if (!beginning.has_value()) return Fail(beginning.error().code(), beginning.error().message());
    if (!LooksLikeStepLog(*beginning) && !IsLogName(file.path)) {
      traces.push_back(file.path);
      continue;
    }
    Result<std::string> text = ReadLogFile(file);
    if (!text.has_value()) return Fail(text.error().code(), text.error().message());
    Result<RankLog> log = ReadRankLog(*text, file.path, options);
    if (!log.has_value()) return Fail(log.error().code(), log.error().message());
    logs.push_back(*std::move(log));
  }
  if (!traces.empty()) {
    Result<ReplayResult> replayed = Replay(traces, {.step_names = options.step_names});
    if (!replayed.has_value()) return Fail(replayed.error().code(), replayed.error().message());
    for (RankLog& log : LogsOfTraces(*replayed, {}, options)) logs.push_back(std::move(log));
  }
  return JoinRanks(std::move(logs), options);
}

bool LooksLikeStepLog(std::string_view beginning) {
  return beginning.substr(0, 18) == "{\"schema_version\":" ||
         beginning.substr(0, 19) == "{\"schema_version\": ";
}

}  // namespace flopledger::cli
