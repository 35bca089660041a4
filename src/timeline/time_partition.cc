#include "timeline/time_partition.h"

#include <algorithm>
#include <limits>

#include "timeline/busy_time.h"

// A sweep from change to change. Between two changes nothing happens, so the stretch goes whole to
// the highest class that is open there.

namespace flopledger {
namespace {

constexpr std::array<DeviceState, kBusyClassCount> kStateOf = {
    DeviceState::kCompute, DeviceState::kExposedCommunication, DeviceState::kExposedCopy};

}  // namespace

DeviceTime PartitionBusy(std::int64_t start_ns, std::int64_t end_ns, const BusyByClass& busy,
                         std::span<const SectionChange> sections) {
  DeviceTime result;
  std::array<std::span<const BusyInterval>::iterator, kBusyClassCount> next{};
  for (std::size_t i = 0; i < kBusyClassCount; ++i) {
    next[i] = std::partition_point(
        busy[i].begin(), busy[i].end(),
        [start_ns](const BusyInterval& interval) { return interval.end_ns <= start_ns; });
  }
  auto change = sections.begin();
  Phase section = Phase::kOther;
  for (std::int64_t at = start_ns; at < end_ns;) {
    for (; change != sections.end() && change->time_ns <= at; ++change) section = change->section;
    std::int64_t until = end_ns;
    if (change != sections.end()) until = std::min(until, change->time_ns);
    DeviceState state = DeviceState::kIdle;
    for (std::size_t i = kBusyClassCount; i-- > 0;) {
      while (next[i] != busy[i].end() && next[i]->end_ns <= at) ++next[i];
      if (next[i] == busy[i].end()) continue;
      const bool open = next[i]->start_ns <= at;
      if (open) state = kStateOf[i];
      until = std::min(until, open ? next[i]->end_ns : next[i]->start_ns);
    }
    result
        .by_state_and_section[static_cast<std::size_t>(state)][static_cast<std::size_t>(section)] +=
        DurationNs(until - at);
    at = until;
  }
  return result;
}

DeviceTime PartitionTime(std::int64_t start_ns, std::int64_t end_ns,
                         std::span<const ActivityInterval> intervals,
                         std::span<const SectionChange> sections) {
  BusyTime busy(std::numeric_limits<std::size_t>::max());
  for (const ActivityInterval& interval : intervals) busy.Add(interval);
  return busy.Partition(start_ns, end_ns, sections);
}

void MoveIdleToUntracked(DeviceTime& device, DurationNs amount) {
  auto& idle = device.by_state_and_section[static_cast<std::size_t>(DeviceState::kIdle)];
  auto& untracked = device.by_state_and_section[static_cast<std::size_t>(DeviceState::kUntracked)];
  for (std::size_t i = 0; i < kPhaseCount && amount.ns() > 0; ++i) {
    const DurationNs moved(std::min(amount.ns(), idle[i].ns()));
    idle[i] -= moved;
    untracked[i] += moved;
    amount -= moved;
  }
}

}  // namespace flopledger
