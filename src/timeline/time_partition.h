#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "flopledger/records.h"
#include "flopledger/step_report.h"

namespace flopledger {

/// A device was occupied from `start_ns` to `end_ns`.
struct ActivityInterval {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  ActivityClass activity = ActivityClass::kCompute;
};

/// A stretch of time in which something of one class ran.
struct BusyInterval {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
};

/// Classes that occupy a device: compute, communication, copy.
inline constexpr std::size_t kBusyClassCount = 3;

/// Busy time of a device by class, each sorted by time and disjoint.
using BusyByClass = std::array<std::span<const BusyInterval>, kBusyClassCount>;

/// From `time_ns` on the program is in this section.
struct SectionChange {
  std::int64_t time_ns = 0;
  Phase section = Phase::kOther;
};

/// Splits [start, end) into exclusive states, by section: compute before communication before copy,
/// the rest idle. The result sums to `end - start` exactly, whatever overlaps. Pure.
///
/// `sections` is sorted by time; before its first entry the section is `kOther`.
DeviceTime PartitionBusy(std::int64_t start_ns, std::int64_t end_ns, const BusyByClass& busy,
                         std::span<const SectionChange> sections);

/// Time of which intervals are known to be lost cannot be called idle.
void MoveIdleToUntracked(DeviceTime& device, DurationNs amount);

/// The same for intervals in any order, which may overlap.
DeviceTime PartitionTime(std::int64_t start_ns, std::int64_t end_ns,
                         std::span<const ActivityInterval> intervals,
                         std::span<const SectionChange> sections);

}  // namespace flopledger
