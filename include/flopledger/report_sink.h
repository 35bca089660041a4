#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "flopledger/peak.h"
#include "flopledger/run_totals.h"
#include "flopledger/step_report.h"
#include "flopledger/units.h"

namespace flopledger {

/// Who this process is within the run. Fixed at start.
struct RunIdentity {
  std::string run_id;
  int rank = 0;
  int local_rank = 0;
  int world_size = 1;
  std::string rank_source;  ///< `arguments`, `torchrun`, `slurm`, ...
};

/// What was found at start, and what state the engine is in.
struct Capability {
  std::string name;  ///< `step_api`, `host_ops`, `cupti`, `nvtx`, `http`, ...
  bool available = false;
  std::string reason;  ///< closed set of short words: `ok`, `not_built`, `port_taken`, ...
};

/// Facts of a run that do not change from step to step.
struct RunDescription {
  RunIdentity identity;
  std::string model;  ///< `ModelFlops::Describe()`, or empty
  ConventionId convention;
  std::vector<PeakRate> peaks;
  DType peak_dtype = DType::kFloat32;
  std::string version;
};

/// A device whose work is recorded, as it describes itself. Empty and zero where it does not say.
struct ObservedDevice {
  std::uint16_t device = 0;  ///< `DeviceTime::device`
  std::string name;
  std::string pci_bus_id;
  std::string uuid;
  int multiprocessors = 0;
  std::int64_t memory_bytes = 0;
};

/// State of the engine; announced when it changes.
struct SessionState {
  /// `kTimingOnly`: kernels are seen, ops are not, so times are known and executed FLOPs are not.
  enum class Collector { kCounting, kTimingOnly, kStepsOnly, kDisabled };
  Collector collector = Collector::kStepsOnly;
  int rung = 0;  ///< of the ladder of evidence: 0 steps, 1 NVTX, 2 kernels, 4 op shapes
  std::vector<Capability> capabilities;
  std::vector<ObservedDevice> devices;
  bool run_finished = false;
};

/// A place that reports go to: a metrics page, a log file, a user's own logger.
///
///     class MySink : public ReportSink {
///       void Publish(const StepReport& report, const RunTotals& totals) override { ... }
///     };
///
/// Thread: called by the worker alone, one call at a time. Ownership: the session owns its sinks.
/// Fails: whatever a sink throws is caught, counted and said once; a sink that throws is not called
/// again. A sink cannot delay or end the training.
class ReportSink {
 public:
  virtual ~ReportSink() = default;
  /// Before the first step.
  virtual void Open(const RunDescription& run) { static_cast<void>(run); }
  /// The state changed.
  virtual void Announce(const SessionState& state) { static_cast<void>(state); }
  /// A step closed. `totals` already contains it.
  virtual void Publish(const StepReport& report, const RunTotals& totals) = 0;
  /// Write out what is buffered, within `limit`.
  virtual void Flush(DurationNs limit) { static_cast<void>(limit); }
  /// The run ended; `totals` are final.
  virtual void Finish(const RunTotals& totals) { static_cast<void>(totals); }
};

}  // namespace flopledger
