#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "flopledger/records.h"
#include "timeline/busy_time.h"
#include "timeline/device_steps.h"
#include "timeline/step_timeline.h"
#include "timeline/time_partition.h"

namespace flopledger {

/// Folds records into steps and hands out each step once, when nothing more of it is to come.
///
/// On the host a step goes from its boundary to the next one, and an op belongs to the step in
/// which it started. A step closes one `Add` after the batch with the next boundary: sources drain
/// ops before markers, so by then every op that the boundary followed has arrived. With device work
/// it also waits for that (`DeviceSteps`), and its interval ends where its last kernel ended; the
/// next one begins there. Later records are counted as late.
///
///     builder.Add(batch);
///     while (auto step = builder.Take()) Reconcile(*step, ...);
///
/// Thread: one. Fails: never; a record with an impossible time is a counted loss.
class StepBuilder {
 public:
  struct Options {
    bool observed = true;  ///< ops are reported; without, all time of a step is untracked
    std::size_t interval_limit = 1 << 18;  ///< kept intervals of a device
    std::int64_t session_start_ns = 0;
    DeviceSteps::Options device = {};
  };

  explicit StepBuilder(const Options& options);

  /// A device source counts from here on: steps wait for their device work.
  void SetDeviceCounting(bool counting) { device_.SetCounting(counting); }
  void Add(const RecordBatch& batch);
  /// The next closed step in order, if there is one.
  std::optional<StepTimeline> Take();
  std::size_t retained_device_bytes() const { return device_.retained_bytes(); }
  /// No more records: closes the last step at its exit mark, or as incomplete at `now_ns` if it is
  /// still running. Returns the time after the last step, which belongs to none.
  DurationNs Finish(std::int64_t now_ns);

 private:
  struct OpenStep {
    StepTimeline timeline;  // times are the host's until it closes
    std::optional<std::int64_t> exit_ns;
    std::optional<std::uint64_t> closed_in;  // the Add in which the next boundary came
    std::size_t section_depth = 0;           // sections that were open when it began
    std::map<std::pair<SignatureId, Phase>, OpSum> ops;
    std::map<std::pair<std::int64_t, std::int64_t>, TokenRecord> tokens;
    std::map<std::uint32_t, ValueRecord> values;
  };

  OpenStep* StepAt(std::int64_t time_ns);
  void AddMarker(const MarkerRecord& marker);
  void BeginStep(const MarkerRecord& marker);
  void ChangeSection(const MarkerRecord& marker);
  void CloseSectionsOf(OpenStep& step, std::int64_t time_ns);
  void AddOp(const OpRecord& op);
  void AddLoss(const LossRecord& loss);
  void AddKernels(const RecordBatch& batch);
  void CountDeviceLosses();
  void AddDeclarations(const RecordBatch& batch);
  void AddCollectorRecords(const RecordBatch& batch);
  StepTimeline Close(OpenStep& step);
  DeviceTime HostDevice(const OpenStep& step, const StepTimeline& result);
  void ForgetSectionsBefore(std::int64_t time_ns);
  void CountLate(std::int64_t count = 1);

  const Options options_;
  std::uint64_t generation_ = 0;
  bool finished_ = false;
  std::deque<OpenStep> steps_;
  DeviceSteps device_;
  BusyTime host_busy_;                       // by the times of ops
  std::vector<SectionChange> sections_;      // sorted; those that may still be asked for
  std::optional<std::int64_t> last_end_ns_;  // of the step that closed last
  std::optional<std::int64_t> first_start_ns_;
  std::vector<Phase> section_stack_;
  std::int64_t pending_late_ = 0;
  std::vector<LossRecord> pending_losses_;  // before the first step
};

}  // namespace flopledger
