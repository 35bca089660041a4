#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "timeline/time_partition.h"

namespace flopledger {

/// When one device was busy, by class: the union of what is added, sorted and disjoint at any time.
/// What arrives in order costs one comparison; what arrives far out of order waits for a merge.
///
///     busy.Add({.start_ns = 10, .end_ns = 20, .activity = ActivityClass::kCompute});
///     DeviceTime time = busy.Partition(0, 100, sections);
///     busy.ForgetBefore(100);
///
/// Thread: one. Fails: never; what exceeds `limit` intervals is kept as an amount (`dropped`).
class BusyTime {
 public:
  explicit BusyTime(std::size_t limit) : limit_(limit) {}

  void Add(const ActivityInterval& interval) {
    if (interval.activity == ActivityClass::kNone) return;
    std::vector<BusyInterval>& list = by_class_[static_cast<std::size_t>(interval.activity)];
    const std::int64_t start = interval.start_ns > floor_ns_ ? interval.start_ns : floor_ns_;
    if (interval.end_ns <= start) return;
    if (!list.empty() && start >= list.back().start_ns && start <= list.back().end_ns) {
      if (interval.end_ns > list.back().end_ns) list.back().end_ns = interval.end_ns;
      return;
    }
    AddSlow(list, {.start_ns = start, .end_ns = interval.end_ns}, interval.activity);
  }

  /// Exclusive states of [start, end); they sum to its length exactly.
  DeviceTime Partition(std::int64_t start_ns, std::int64_t end_ns,
                       std::span<const SectionChange> sections);
  /// Nothing before `time_ns` will be asked for again.
  void ForgetBefore(std::int64_t time_ns);
  /// Time of intervals that were not kept since the last call; an upper bound of their union.
  DurationNs TakeDropped();
  std::size_t size() const;
  std::size_t retained_bytes() const;

 private:
  void AddSlow(std::vector<BusyInterval>& list, const BusyInterval& interval,
               ActivityClass activity);
  static void Insert(std::vector<BusyInterval>& list, std::vector<BusyInterval>::iterator at,
                     const BusyInterval& interval);
  void MergeWaiting();

  std::size_t limit_;
  std::int64_t floor_ns_ = std::numeric_limits<std::int64_t>::min();
  std::array<std::vector<BusyInterval>, kBusyClassCount> by_class_;
  std::array<std::vector<BusyInterval>, kBusyClassCount> waiting_;  // far out of order
  DurationNs dropped_;
};

}  // namespace flopledger
