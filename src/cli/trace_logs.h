#pragma once

#include <vector>

#include "cli/rank_logs.h"
#include "flopledger/convention.h"
#include "session/replay.h"

namespace flopledger::cli {

/// Replayed traces as the logs of their ranks, so that reports, pages and comparisons are the same
/// for both. A trace that does not say its rank has its place among the traces.
///
/// Thread: any. Fails: never.
std::vector<RankLog> LogsOfTraces(const ReplayResult& replayed, const FlopConvention& convention,
                                  const RunLogOptions& options);

}  // namespace flopledger::cli
