#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "flopledger/records.h"
#include "timeline/busy_time.h"
#include "timeline/kernel_sums.h"
#include "timeline/launch_streams.h"
#include "timeline/step_timeline.h"

namespace flopledger {

/// Device work by the step that launched it: the step's fence puts its begin into the launch order,
/// and a kernel belongs to the step between whose fences its launch lies. A step is told apart from
/// its neighbours by launches, never by the times of its kernels, which run behind the host.
///
///     steps.BeginStep(marker.time_ns);
///     steps.AddFence(fence);
///     steps.Add(kernel, phase);
///     if (steps.FrontClosing() != DeviceSteps::Closing::kWait) work = steps.TakeFront();
///
/// Kernels of a step whose end is not in the launch order yet are folded at once as long as no
/// later step has begun, and wait (bounded) while one has. Steps are named by their place, oldest
/// first.
///
/// Thread: one. Fails: never; what has an impossible time is a counted loss. Memory is bounded:
/// when too many kernels wait for a fence, the fence is given up and estimated, so that none is
/// lost.
class DeviceSteps {
 public:
  struct Options {
    std::size_t held_limit = std::size_t{1} << 16;  ///< waiting kernels, 48 bytes each
    std::size_t interval_limit = std::size_t{1} << 18;
    std::size_t open_steps = 1024;
    std::size_t lag_steps = 2;
    /// A stream is not given up before, however short the steps: buffers travel slower than that.
    DurationNs least_silence{100'000'000};
    DurationNs timeout{10'000'000'000};
  };

  /// What lets the oldest step close; `kHost`: no device takes part in it.
  enum class Closing : std::uint8_t { kWait, kHost, kFence, kLag, kTimeout };

  /// What the devices did for a step.
  struct Work {
    std::vector<KernelSum> kernels;
    std::optional<std::int64_t> end_ns;      ///< of its last kernel; of its last copy without one
    std::vector<DurationNs> time_by_device;  ///< sums of durations, in the order of `TakeTime`
    std::int64_t unlaunched = 0;
    bool estimated = false;  ///< the fence of its begin or of its end was lost
  };

  explicit DeviceSteps(const Options& options) : options_(options) {}

  /// A device source counts from here on: steps wait for their device work.
  void SetCounting(bool counting) { counting_ = counting; }
  /// Before the records of a batch; `now_ns` where time passes.
  void BeginBatch(std::optional<std::int64_t> now_ns) { now_ns_ = now_ns; }
  void BeginStep(std::int64_t start_ns);
  /// The newest step left its scope; what is launched behind is its own only if another one comes.
  void ExitStep(std::int64_t exit_ns);
  void AddFence(const FenceRecord& fence);
  void Add(const KernelRecord& kernel, Phase phase);
  /// No more records: every fence that is still missing is estimated.
  void Finish();

  /// End of the device work of the newest step, up to its exit.
  std::optional<std::int64_t> LastEnd() const {
    return steps_.empty() ? std::nullopt : EndOf(steps_.back().work);
  }

  Closing FrontClosing();
  Work TakeFront();
  /// Devices over [start, end), exclusive; forgets what lies before `end_ns`.
  std::vector<DeviceTime> TakeTime(std::int64_t start_ns, std::int64_t end_ns,
                                   std::span<const SectionChange> sections);
  bool saw_devices() const { return !lanes_.empty(); }

  /// Memory of open steps, devices and what waits; capacities, not sizes.
  std::size_t retained_bytes() const;

  std::int64_t TakeLate() { return std::exchange(late_, 0); }
  std::int64_t TakeInvalid() { return std::exchange(invalid_, 0); }

 private:
  static constexpr LaunchOrder kFirst = std::numeric_limits<LaunchOrder>::min();
  static constexpr LaunchOrder kLast = std::numeric_limits<LaunchOrder>::max();

  struct Part {  // what one stretch of the launch order launched
    KernelSums sums;
    std::optional<std::int64_t> kernel_end_ns;
    std::optional<std::int64_t> copy_end_ns;
    LaunchOrder last_order = kFirst;
    std::vector<DurationNs> time_by_lane;
  };
  struct Step {
    std::int64_t start_ns = 0;
    std::optional<std::int64_t> exit_ns;
    std::optional<LaunchOrder> fence;
    std::optional<LaunchOrder> exit_fence;
    Part work;
    Part after_exit;
    std::int64_t unlaunched = 0;
    bool estimated = false;  // its fence was
    bool expected = false;   // a device source counted
  };
  struct Lane {
    std::uint16_t device = 0;
    BusyTime busy;
  };
  struct Range {  // launches that go to the same place
    Step* step = nullptr;
    Part* part = nullptr;
    LaunchOrder from = kFirst;
    LaunchOrder to = kFirst;
  };

  struct Streams {        // those that worked lately
    bool passed = false;  // all show work that was launched behind the fence
    bool done = false;    // and have run past the end of the step
    bool silent = false;  // those that have not show nothing for as long as two steps
  };

  enum class Place : std::uint8_t { kFound, kUndecided, kPast, kBeforeRun };
  Place Find(LaunchOrder order);
  void AddUnlaunched(const KernelRecord& kernel, Phase phase, std::size_t lane);
  void Fold(const KernelRecord& kernel, Phase phase, std::size_t lane, Part& part);
  void Settle(const KernelRecord& kernel, std::size_t lane);
  void SettleHeld();
  bool GiveUpFences();
  void ApplyFence(const FenceRecord& fence, bool& used);
  void ApplyPendingFences();
  void EstimateFence(std::size_t index);
  Streams StreamsBehind(const Step& front, LaunchOrder fence) const;
  std::optional<LaunchOrder> FenceAfter() const;
  bool SeesStepsAfter() const;
  std::size_t LaneOf(std::uint16_t device);
  static void Join(Part& into, Part& from);
  /// Copies run on beside the next steps (checkpoints, prefetching), so kernels decide.
  static std::optional<std::int64_t> EndOf(const Part& part) {
    return part.kernel_end_ns ? part.kernel_end_ns : part.copy_end_ns;
  }

  const Options options_;
  std::optional<std::int64_t> now_ns_;
  std::int64_t progress_ns_ = kFirst;  // when a kernel arrived last
  bool counting_ = false;
  bool quiet_ = false;  // nothing came for long: steps do not wait until something does
  bool finished_ = false;
  bool any_taken_ = false;
  std::int64_t closed_until_ns_ = kFirst;
  std::int64_t step_ns_ = 0;  // about the longest interval of the last steps
  std::deque<Step> steps_;
  Range range_;
  std::size_t unknown_fences_ = 0;
  std::optional<LaunchOrder> run_fence_;     // of the first step of all
  std::optional<LaunchOrder> closed_fence_;  // of the step that was taken last
  LaunchStreams streams_;
  std::vector<Lane> lanes_;
  std::vector<KernelRecord> held_;
  std::vector<FenceRecord> pending_fences_;
  std::vector<KernelSums> spare_sums_;
  std::int64_t late_ = 0;
  std::int64_t invalid_ = 0;
};

}  // namespace flopledger
