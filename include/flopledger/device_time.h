#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "flopledger/export.h"
#include "flopledger/op_class.h"
#include "flopledger/units.h"

/// Where a step's time went on each device. A device's times of a step are an exclusive partition
/// of its interval; the interval is the same for all devices of a process.
///
///     device.InState(DeviceState::kIdle);  // time in which nothing ran on it
///
/// Thread: values. Fails: never.
namespace flopledger {

/// What ends a step's interval: the host's boundary, or the end of the last kernel that the step
/// launched on any of its devices. Over many steps both add up to the same time.
enum class StepBoundary : std::uint8_t { kHost, kDevice };

constexpr std::string_view ToString(StepBoundary boundary) {
  return boundary == StepBoundary::kDevice ? "device" : "host";
}

/// Exclusive states of a device; in every step they sum to the wall time to the nanosecond.
enum class DeviceState : std::uint8_t {
  kCompute,
  kExposedCommunication,
  kExposedCopy,
  kIdle,
  kUntracked,  ///< time whose intervals were lost
};
inline constexpr std::size_t kDeviceStateCount = 5;

constexpr std::string_view ToString(DeviceState state) {
  constexpr std::array<std::string_view, kDeviceStateCount> kNames = {
      "compute", "exposed_communication", "exposed_copy", "idle", "untracked"};
  return kNames[static_cast<std::size_t>(state)];
}

/// Time of one device in one step by state and by the section that the program was in.
struct FLOPLEDGER_EXPORT DeviceTime {
  std::uint16_t device = 0;
  std::array<std::array<DurationNs, kPhaseCount>, kDeviceStateCount> by_state_and_section{};
  DurationNs kernel_time_sum;  ///< sum of durations, for comparison with the union; may exceed wall

  DurationNs InState(DeviceState state) const;
  DurationNs InSection(Phase section) const;
};

}  // namespace flopledger
