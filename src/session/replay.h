#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "collect/trace/trace_source.h"
#include "flopledger/convention.h"
#include "flopledger/model_flops.h"
#include "flopledger/peak.h"
#include "flopledger/status.h"
#include "flopledger/step_report.h"
#include "timeline/activity_summary.h"

namespace flopledger {

/// How a trace is replayed. What a live session would have been told may be told here.
struct ReplayOptions {
  bool lenient = false;
  std::uint64_t max_inflated_bytes = std::uint64_t{16} << 30;
  std::function<void(std::uint64_t done_bytes, std::uint64_t total_bytes)> progress = {};
  std::vector<std::string> step_names = {};  ///< patterns of range names; empty: the known ones
  std::optional<ModelFlops> model = {};  ///< declares the work of each step, with the rows below
  std::int64_t rows = 0;                 ///< sequences of a step on one rank; 0: not declared
  std::int64_t row_length = 0;           ///< tokens of each
  FlopConvention convention = {};
  std::vector<PeakRate> peaks = {};  ///< empty: looked up by what the trace says of its device
  DType dtype = DType::kBfloat16;    ///< of the declared matmuls
};

/// Executed FLOPs, by shapes. Two countings of attention stand side by side.
struct ReplayFlops {
  Flops all_pairs;   ///< no discount for causal masks: what tools for traces print
  Flops executed;    ///< the house convention: the pairs that the masks leave
  Flops recomputed;  ///< part of `executed`
  Flops recomputed_all_pairs;
};

/// A step with its work; the host's side is in `activity.host`.
struct ReplayStep {
  std::string name;
  StepActivity activity;
  ReplayFlops flops;
};

/// One device, or the sum over all devices of a process.
struct ReplayDevice {
  DeviceDescription description;
  DeviceActivity activity;  ///< without `steps`, which are below
  ReplayFlops flops;
  std::int64_t counted_kernel_time_ns = 0;  ///< in kernels of ops that have a counting rule
  std::vector<ReplayStep> steps;
};

/// One process (rank) of one file.
struct ReplayTrace {
  std::string file;
  TraceDescription description;
  ReplayDevice total;  ///< sums over the devices; busy times are sums of each one's union
  std::vector<ReplayDevice> devices;
  std::vector<StepReport> reports;  ///< the books, as a live run keeps them
  std::vector<PeakRate> peaks;      ///< that the books stand on
  std::string peak_refusal;         ///< why there is no peak; empty if there is one
};

/// One step over several ranks, whose clocks are taken to be one.
struct GlobalStep {
  struct Rank {
    std::string trace;  ///< file, and part of it
    std::optional<int> rank;
    TimeSpan host;
    Flops all_pairs;
  };
  std::string name;
  TimeSpan window;  ///< from the first begin to the last end
  Flops all_pairs;  ///< of all ranks
  std::vector<Rank> ranks;
};

struct ReplayResult {
  std::vector<ReplayTrace> traces;
  std::vector<GlobalStep> global_steps;  ///< with two ranks or more
};

/// Replays trace files through the pipeline of a live session.
///
///     Result<ReplayResult> result = Replay({"trace.json.gz"}, {});
///
/// Thread: any, one call at a time for its `progress`. Fails: as `OpenTrace` and the readers do,
/// with file and position.
Result<ReplayResult> Replay(const std::vector<std::string>& files, const ReplayOptions& options);

}  // namespace flopledger
