#pragma once

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

/// From `time_ns` on the program is in this section.
struct SectionChange {
  std::int64_t time_ns = 0;
  Phase section = Phase::kOther;
};

/// Splits [start, end) into exclusive states, by section: compute before communication before copy,
/// the rest idle. The result sums to `end - start` exactly, whatever overlaps. Pure.
///
/// `sections` is sorted by time; before its first entry the section is `kOther`.
DeviceTime PartitionTime(std::int64_t start_ns, std::int64_t end_ns,
                         std::span<const ActivityInterval> intervals,
                         std::span<const SectionChange> sections);

/// Joins what overlaps or touches within each class; loses nothing of the unions.
void MergeIntervals(std::vector<ActivityInterval>& intervals);

}  // namespace flopledger
