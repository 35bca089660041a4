#include "timeline/busy_time.h"

#include <algorithm>
#include <utility>

namespace flopledger {
namespace {

// An insertion this far from the end moves at most 8 KiB; beyond it, many are merged at once.
constexpr std::ptrdiff_t kNear = 512;
constexpr std::size_t kWaiting = 4096;

bool StartsBefore(const BusyInterval& a, const BusyInterval& b) { return a.start_ns < b.start_ns; }

/// Joins what overlaps or touches in a list that is sorted by start.
void Join(std::vector<BusyInterval>& list) {
  std::size_t kept = 0;
  for (const BusyInterval& interval : list) {
    if (kept > 0 && interval.start_ns <= list[kept - 1].end_ns) {
      list[kept - 1].end_ns = std::max(list[kept - 1].end_ns, interval.end_ns);
    } else {
      list[kept++] = interval;
    }
  }
  list.resize(kept);
}

}  // namespace

void BusyTime::AddSlow(std::vector<BusyInterval>& list, const BusyInterval& interval,
                       ActivityClass activity) {
  if (size() >= limit_) {
    MergeWaiting();
    if (size() >= limit_) {
      dropped_ += DurationNs(interval.end_ns - interval.start_ns);
      return;
    }
  }
  if (list.empty() || interval.start_ns > list.back().end_ns) {
    list.push_back(interval);
    return;
  }
  const auto from = list.end() - std::min<std::ptrdiff_t>(kNear, std::ssize(list));
  if (from != list.begin() && interval.start_ns < from->start_ns) {
    std::vector<BusyInterval>& waiting = waiting_[static_cast<std::size_t>(activity)];
    waiting.push_back(interval);
    if (waiting.size() >= std::max(kWaiting, list.size() / 4)) MergeWaiting();
    return;
  }
  Insert(list, std::upper_bound(from, list.end(), interval, StartsBefore), interval);
}

void BusyTime::Insert(std::vector<BusyInterval>& list, std::vector<BusyInterval>::iterator at,
                      const BusyInterval& interval) {
  if (at != list.begin() && std::prev(at)->end_ns >= interval.start_ns) {
    --at;
    at->end_ns = std::max(at->end_ns, interval.end_ns);
  } else if (at != list.end() && at->start_ns <= interval.end_ns) {
    at->start_ns = interval.start_ns;
    at->end_ns = std::max(at->end_ns, interval.end_ns);
  } else {
    list.insert(at, interval);
    return;
  }
  auto next = std::next(at);
  for (; next != list.end() && next->start_ns <= at->end_ns; ++next) {
    at->end_ns = std::max(at->end_ns, next->end_ns);
  }
  list.erase(std::next(at), next);
}

void BusyTime::MergeWaiting() {
  for (std::size_t i = 0; i < kBusyClassCount; ++i) {
    std::vector<BusyInterval>& list = by_class_[i];
    std::vector<BusyInterval>& waiting = waiting_[i];
    if (waiting.empty()) continue;
    std::sort(waiting.begin(), waiting.end(), StartsBefore);
    const std::ptrdiff_t middle = std::ssize(list);
    list.insert(list.end(), waiting.begin(), waiting.end());
    std::inplace_merge(list.begin(), list.begin() + middle, list.end(), StartsBefore);
    Join(list);
    waiting.clear();
  }
}

DeviceTime BusyTime::Partition(std::int64_t start_ns, std::int64_t end_ns,
                               std::span<const SectionChange> sections) {
  MergeWaiting();
  BusyByClass busy;
  for (std::size_t i = 0; i < kBusyClassCount; ++i) busy[i] = by_class_[i];
  return PartitionBusy(start_ns, end_ns, busy, sections);
}

void BusyTime::ForgetBefore(std::int64_t time_ns) {
  MergeWaiting();
  floor_ns_ = std::max(floor_ns_, time_ns);
  for (std::vector<BusyInterval>& list : by_class_) {
    const auto kept = std::partition_point(
        list.begin(), list.end(),
        [time_ns](const BusyInterval& interval) { return interval.end_ns <= time_ns; });
    list.erase(list.begin(), kept);
  }
}

DurationNs BusyTime::TakeDropped() { return std::exchange(dropped_, DurationNs()); }

std::size_t BusyTime::size() const {
  std::size_t sum = 0;
  for (const auto& list : by_class_) sum += list.size();
  for (const auto& list : waiting_) sum += list.size();
  return sum;
}

std::size_t BusyTime::retained_bytes() const {
  std::size_t intervals = 0;
  for (const auto& list : by_class_) intervals += list.capacity();
  for (const auto& list : waiting_) intervals += list.capacity();
  return intervals * sizeof(BusyInterval);
}

}  // namespace flopledger
