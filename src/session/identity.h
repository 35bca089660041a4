#pragma once

#include <functional>
#include <optional>
#include <string>

#include "flopledger/report_sink.h"
#include "flopledger/status.h"

namespace flopledger {

/// Reads one environment variable; nullopt if it is not set or empty.
using EnvironmentLookup = std::function<std::optional<std::string>(const char* name)>;

/// Fills in what the caller left open: rank, local rank and world size from FLOPLEDGER_RANK...,
/// torchrun, Slurm or Open MPI, in this order, else one process; the run id from FLOPLEDGER_RUN_ID,
/// the launcher, else start time and process id. A `rank_source` that is set means: given.
///
/// Fails: kInvalidArgument, naming the variable or field and its value.
Result<RunIdentity> CompleteIdentity(RunIdentity given, const EnvironmentLookup& environment,
                                     double unix_seconds, int process_id);

/// The process's own environment.
std::optional<std::string> ReadEnvironment(const char* name);

}  // namespace flopledger
