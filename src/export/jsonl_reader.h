#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "flopledger/report_sink.h"
#include "flopledger/run_totals.h"
#include "flopledger/status.h"
#include "flopledger/step_report.h"

namespace flopledger {

/// A step log, read back: the same values that were written.
struct StepLog {
  RunDescription run;
  std::vector<StepReport> steps;
  /// Sums over `steps`, by the same code that summed them in the run.
  RunTotals totals;
  bool has_summary = false;           ///< the run ended in good order
  bool has_cut_line = false;          ///< the last line has no end: killed while it was written
  std::int64_t unreadable_lines = 0;  ///< whole lines that are not what a step log holds
  std::int64_t first_unreadable_line = 0;  ///< from 1; 0: there is none
  std::int64_t gaps_left_out = 0;          ///< names that a step had no room for
};

/// Reads what `JsonlSink` wrote. A cut last line is normal, unreadable lines are counted; of a file
/// with several runs it is the last one.
///
///     auto log = ReadStepLog(text);
///     std::string table = RenderSummary(log->run, log->totals);
///
/// Thread: any. Fails: kDataLoss if there is no run line, kUnsupported for a later schema version.
Result<StepLog> ReadStepLog(const std::string& text);

}  // namespace flopledger
