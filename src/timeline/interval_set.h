#pragma once

#include <cstdint>
#include <vector>

namespace flopledger {

/// A stretch of time, its end not in it.
struct TimeSpan {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;

  friend bool operator==(const TimeSpan&, const TimeSpan&) = default;
};

/// The union of stretches of time, added in any order. What touches is one; memory is that of the
/// union, not of what was added.
///
///     IntervalSet busy;
///     busy.Add({0, 100});
///     busy.Add({20, 60});
///     busy.Measure();              // 100
///     busy.MeasureIn({50, 200});   // 50
///
/// Thread: one. Fails: never; an empty or backward stretch adds nothing.
class IntervalSet {
 public:
  void Add(const TimeSpan& span);
  /// Sorted, apart from each other.
  const std::vector<TimeSpan>& spans();
  std::int64_t Measure();
  /// Of the part inside `window`.
  std::int64_t MeasureIn(const TimeSpan& window);

 private:
  void Merge();

  std::vector<TimeSpan> spans_;
  std::size_t merged_ = 0;  // so many are sorted and apart
};

/// All that is in one or the other; all that is in `a` and not in `b`.
IntervalSet Union(IntervalSet& a, IntervalSet& b);
IntervalSet Difference(IntervalSet& a, IntervalSet& b);

}  // namespace flopledger
