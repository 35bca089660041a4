#pragma once

#include <cstddef>
#include <string>

#include "flopledger/report_sink.h"
#include "flopledger/run_totals.h"
#include "flopledger/step_report.h"

namespace flopledger {

/// Version of every object below; raised when a key changes its meaning or goes away.
inline constexpr int kJsonSchemaVersion = 1;
/// Names that one step may carry; the rest is in `gaps_left_out`.
inline constexpr std::size_t kMaxJsonGaps = 100;

/// One line of JSON each, without the newline. docs/jsonl.md lists the keys. FLOPs and points in
/// time are strings of digits, since they pass 2^53; what is not known is `null`, and a number that
/// is not finite is a string (`"nan"`).
///
/// Thread: any. Fails: never; text that is not UTF-8 is repaired.
std::string RunJson(const RunDescription& run);
std::string StateJson(const SessionState& state);
std::string StepJson(const StepReport& report, const RunIdentity& identity,
                     std::size_t max_gaps = kMaxJsonGaps);
std::string SummaryJson(const RunTotals& totals, const RunIdentity& identity);
/// The few figures of a step that a chart needs: a subset of the keys of `StepJson`.
std::string StepPointJson(const StepReport& report);
/// What is counted and against which peak.
std::string ConventionsJson(const RunDescription& run);

}  // namespace flopledger
