#include "timeline/time_partition.h"

#include <algorithm>
#include <array>

// A sweep over the edges of all intervals. Between two edges nothing changes, so the stretch goes
// whole to the highest class that is open there.

namespace flopledger {
namespace {

struct Edge {
  std::int64_t time_ns = 0;
  int activity = -1;  // -1: a section change
  int delta = 0;
  Phase section = Phase::kOther;
};

DeviceState StateOf(const std::array<int, 3>& open) {
  if (open[static_cast<std::size_t>(ActivityClass::kCompute)] > 0) return DeviceState::kCompute;
  if (open[static_cast<std::size_t>(ActivityClass::kCommunication)] > 0) {
    return DeviceState::kExposedCommunication;
  }
  if (open[static_cast<std::size_t>(ActivityClass::kCopy)] > 0) return DeviceState::kExposedCopy;
  return DeviceState::kIdle;
}

}  // namespace

void MergeIntervals(std::vector<ActivityInterval>& intervals) {
  std::sort(intervals.begin(), intervals.end(),
            [](const ActivityInterval& a, const ActivityInterval& b) {
              return a.activity != b.activity ? a.activity < b.activity : a.start_ns < b.start_ns;
            });
  std::size_t kept = 0;
  for (const ActivityInterval& interval : intervals) {
    if (kept > 0 && intervals[kept - 1].activity == interval.activity &&
        interval.start_ns <= intervals[kept - 1].end_ns) {
      intervals[kept - 1].end_ns = std::max(intervals[kept - 1].end_ns, interval.end_ns);
    } else {
      intervals[kept++] = interval;
    }
  }
  intervals.resize(kept);
}

DeviceTime PartitionTime(std::int64_t start_ns, std::int64_t end_ns,
                         std::span<const ActivityInterval> intervals,
                         std::span<const SectionChange> sections) {
  DeviceTime result;
  std::vector<Edge> edges;
  edges.reserve(intervals.size() * 2 + sections.size());
  for (const ActivityInterval& interval : intervals) {
    if (interval.activity == ActivityClass::kNone) continue;
    const std::int64_t from = std::max(interval.start_ns, start_ns);
    const std::int64_t to = std::min(interval.end_ns, end_ns);
    if (from >= to) continue;
    const int activity = static_cast<int>(interval.activity);
    edges.push_back({.time_ns = from, .activity = activity, .delta = 1});
    edges.push_back({.time_ns = to, .activity = activity, .delta = -1});
  }
  Phase section = Phase::kOther;
  for (const SectionChange& change : sections) {
    if (change.time_ns <= start_ns) {
      section = change.section;
    } else if (change.time_ns < end_ns) {
      edges.push_back({.time_ns = change.time_ns, .section = change.section});
    }
  }
  // Stable: of two section changes at one time the later one counts.
  std::stable_sort(edges.begin(), edges.end(),
                   [](const Edge& a, const Edge& b) { return a.time_ns < b.time_ns; });

  std::array<int, 3> open{};
  std::int64_t at = start_ns;
  auto spend_until = [&](std::int64_t time_ns) {
    auto& cell = result.by_state_and_section[static_cast<std::size_t>(StateOf(open))]
                                            [static_cast<std::size_t>(section)];
    cell += DurationNs(time_ns - at);
    at = time_ns;
  };
  for (const Edge& edge : edges) {
    spend_until(edge.time_ns);
    if (edge.activity < 0) {
      section = edge.section;
    } else {
      open[static_cast<std::size_t>(edge.activity)] += edge.delta;
    }
  }
  if (at < end_ns) spend_until(end_ns);
  return result;
}

}  // namespace flopledger
