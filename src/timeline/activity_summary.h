#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "flopledger/records.h"
#include "timeline/interval_set.h"

namespace flopledger {

/// What a device did in the host window of one step, told in three ways: what ran inside of the
/// window, what began in it, and what was launched in it.
struct StepActivity {
  std::int64_t step = 0;
  TimeSpan host;  ///< from the step's begin to its own end
  std::int64_t launched_kernels = 0;
  std::int64_t launched_kernel_time_sum_ns = 0;
  std::int64_t launched_work = 0;  ///< kernels, copies and fills
  std::int64_t started_kernels = 0;
  std::int64_t busy_clipped_ns = 0;
  std::int64_t exposed_communication_clipped_ns = 0;
  /// From the end of the last work that the step before launched to that of its own; absent for the
  /// first step, and where one of both launched nothing.
  std::optional<TimeSpan> device_window;
  std::optional<std::int64_t> last_end_ns;  ///< of the work that it launched
  std::int64_t device_busy_ns = 0;          ///< in the device window, as all that follow
  std::int64_t device_idle_ns = 0;
  std::int64_t device_communication_ns = 0;
  std::int64_t device_exposed_communication_ns = 0;
};

/// What one device did. Busy times are unions, never sums of durations; both are kept.
struct DeviceActivity {
  std::uint16_t device = 0;
  std::int64_t kernels = 0;
  std::int64_t memcpys = 0;
  std::int64_t memsets = 0;
  std::int64_t unlaunched = 0;  ///< of all, those whose launch is not known
  std::int64_t unlaunched_ns = 0;
  std::int64_t without_op = 0;  ///< kernels that no op is known to have launched
  std::int64_t without_op_ns = 0;
  std::int64_t untimed = 0;  ///< of all, those without a time that can be
  std::int64_t kernel_time_sum_ns = 0;
  std::int64_t busy_kernels_ns = 0;
  std::int64_t busy_all_ns = 0;
  TimeSpan span;             ///< from the first begin to the last end
  std::int64_t idle_ns = 0;  ///< of the span, without any work
  std::int64_t communication_union_ns = 0;
  std::int64_t compute_union_ns = 0;  ///< of all kernels that do not communicate
  std::int64_t exposed_communication_ns = 0;
  std::map<std::pair<SignatureId, bool>, std::int64_t> kernel_ns_by_op;  ///< second: is it known
  std::vector<StepActivity> steps;
};

/// Calls of one op in one phase, whose work went to one device.
struct OpKey {
  std::uint16_t device = 0;
  SignatureId signature = kOverflowSignature;
  Phase phase = Phase::kForward;

  friend auto operator<=>(const OpKey&, const OpKey&) = default;
};
using OpCounts = std::map<OpKey, std::int64_t>;

/// Sums up what a trace says about its devices, without looking at a single count of FLOPs: exact
/// integers, by the definitions that tools for traces agree on. Copies do not hide communication.
///
///     ActivitySummary summary;
///     summary.Add(batch);                           // as often as there are batches
///     std::vector<DeviceActivity> devices = summary.Finish();
///
/// Records may come in any order within a batch; a batch has the step markers of its time.
/// Memory: the unions of busy time, and the starts of kernels that begin after the last marker.
/// Thread: one. Fails: never; work with an impossible time is counted, and takes no time.
class ActivitySummary {
 public:
  struct Step {
    std::int64_t step = 0;
    TimeSpan host;
    OpCounts ops;  ///< that began in it
  };

  void Add(const RecordBatch& batch);
  /// The devices that worked, by number. Call once.
  std::vector<DeviceActivity> Finish();
  /// In the order of time; the host's side.
  const std::vector<Step>& steps() const { return steps_; }
  const OpCounts& ops() const { return ops_; }

 private:
  struct StepSums {
    std::int64_t launched_kernels = 0;
    std::int64_t launched_kernel_time_sum_ns = 0;
    std::int64_t launched_work = 0;
    std::int64_t started_kernels = 0;
    std::optional<std::int64_t> last_end_ns;
  };
  struct Device {
    DeviceActivity sums;
    bool any = false;
    IntervalSet communication;
    IntervalSet compute;
    IntervalSet copies;
    std::vector<StepSums> steps;
    std::vector<std::int64_t> pending_starts;  // of kernels, later than the last marker
  };

  void AddMarker(const MarkerRecord& marker);
  void AddKernel(const KernelRecord& kernel);
  StepSums* StepOf(Device& device, std::int64_t time_ns);
  Step* HostStepAt(std::int64_t time_ns);
  void SettleStarts(Device& device);
  void FinishSteps(Device& device, IntervalSet& all, IntervalSet& exposed);

  std::vector<Step> steps_;
  std::map<std::uint16_t, Device> devices_;
  OpCounts ops_;
  std::int64_t last_marker_ns_ = 0;
};

}  // namespace flopledger
