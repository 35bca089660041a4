#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "export/jsonl_reader.h"
#include "flopledger/status.h"
#include "flopledger/step_report.h"

namespace flopledger::cli {

/// A step of one rank, at its place on the clock that the ranks of a run share.
struct PlacedStep {
  StepReport report;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
};

/// What the logs of one rank hold. Steps rise by number; of a step that is there twice (a restart
/// from a checkpoint) the last one counts.
struct RankLog {
  std::vector<std::string> paths;
  RunDescription run;
  std::vector<PlacedStep> steps;
  std::vector<CoverageGap> gaps;  ///< of all steps, by name, the largest first
  /// Wall clock minus monotonic clock: how the steps were placed.
  std::int64_t clock_offset_ns = 0;
  std::int64_t repeated_steps = 0;
  std::int64_t unreadable_lines = 0;
  std::int64_t first_unreadable_line = 0;
  bool has_summary = false;
  bool has_cut_line = false;
  std::vector<std::string> notes;  ///< what its reader wants said
};

/// The logs of one run, by rank.
struct RunLogs {
  std::vector<RankLog> ranks;
  /// All ranks are on one host: their monotonic clocks are the same one, and no settable clock is
  /// involved. Otherwise windows are as good as the hosts' wall clocks.
  bool shared_clock = true;
};

struct RunLogOptions {
  std::string run_id;  ///< of files with several runs; empty: there is but one
  std::int64_t first_step = 0;
  std::int64_t last_step = INT64_MAX;
  std::vector<std::string> step_names;  ///< of traces: `ReplayOptions::step_names`
};

/// Reads step logs: files, folders (every `*.jsonl` in them) and patterns; a rotated log is one
/// with its parts (`run.jsonl.2`, `run.jsonl.1`, `run.jsonl`).
///
/// Thread: any. Fails: kInvalidArgument (nothing matches, files of several runs), kDataLoss (not a
/// step log), each with the path.
Result<RunLogs> ReadRunLogs(const std::vector<std::string>& paths, const RunLogOptions& options);

/// One text as the log of a rank; for inputs that are no files.
Result<RankLog> ReadRankLog(const std::string& text, const std::string& path,
                            const RunLogOptions& options);

/// Is this the beginning of a step log? Anything else is taken for a trace.
bool LooksLikeStepLog(std::string_view beginning);

/// Puts the logs of a run together: ranks that are split over files, one clock.
Result<RunLogs> JoinRanks(std::vector<RankLog> logs, const RunLogOptions& options);

}  // namespace flopledger::cli
