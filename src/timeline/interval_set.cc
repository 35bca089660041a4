#include "timeline/interval_set.h"

#include <algorithm>

namespace flopledger {
namespace {

constexpr std::size_t kMergeAt = 1024;

}  // namespace

void IntervalSet::Add(const TimeSpan& span) {
  if (span.end_ns <= span.start_ns) return;
  if (!spans_.empty() && merged_ == spans_.size() && span.start_ns >= spans_.back().start_ns) {
    // In order, as most are.
    TimeSpan& last = spans_.back();
    if (span.start_ns <= last.end_ns) {
      last.end_ns = std::max(last.end_ns, span.end_ns);
      return;
    }
    spans_.push_back(span);
    ++merged_;
    return;
  }
  spans_.push_back(span);
  if (spans_.size() == 1) merged_ = 1;
  if (spans_.size() >= kMergeAt && spans_.size() >= 2 * merged_) Merge();
}

void IntervalSet::Merge() {
  if (merged_ == spans_.size()) return;
  const auto by_start = [](const TimeSpan& a, const TimeSpan& b) {
    return a.start_ns < b.start_ns;
  };
  const auto middle = spans_.begin() + static_cast<std::ptrdiff_t>(merged_);
  std::sort(middle, spans_.end(), by_start);
  std::inplace_merge(spans_.begin(), middle, spans_.end(), by_start);
  std::size_t kept = 0;
  for (const TimeSpan& span : spans_) {
    if (kept > 0 && span.start_ns <= spans_[kept - 1].end_ns) {
      spans_[kept - 1].end_ns = std::max(spans_[kept - 1].end_ns, span.end_ns);
    } else {
      spans_[kept++] = span;
    }
  }
  spans_.resize(kept);
  merged_ = kept;
}

const std::vector<TimeSpan>& IntervalSet::spans() {
  Merge();
  return spans_;
}

std::int64_t IntervalSet::Measure() {
  std::int64_t sum = 0;
  for (const TimeSpan& span : spans()) sum += span.end_ns - span.start_ns;
  return sum;
}

std::int64_t IntervalSet::MeasureIn(const TimeSpan& window) {
  Merge();
  auto at = std::partition_point(spans_.begin(), spans_.end(), [&window](const TimeSpan& span) {
    return span.end_ns <= window.start_ns;
  });
  std::int64_t sum = 0;
  for (; at != spans_.end() && at->start_ns < window.end_ns; ++at) {
    sum += std::min(at->end_ns, window.end_ns) - std::max(at->start_ns, window.start_ns);
  }
  return sum;
}

IntervalSet Union(IntervalSet& a, IntervalSet& b) {
  IntervalSet both;
  const std::vector<TimeSpan>& first = a.spans();
  const std::vector<TimeSpan>& second = b.spans();
  for (std::size_t i = 0, j = 0; i < first.size() || j < second.size();) {
    const bool take_first =
        j == second.size() || (i < first.size() && first[i].start_ns <= second[j].start_ns);
    both.Add(take_first ? first[i++] : second[j++]);
  }
  return both;
}

IntervalSet Difference(IntervalSet& a, IntervalSet& b) {
  IntervalSet rest;
  const std::vector<TimeSpan>& cuts = b.spans();
  std::size_t next = 0;
  for (TimeSpan span : a.spans()) {
    while (next < cuts.size() && cuts[next].end_ns <= span.start_ns) ++next;
    for (std::size_t i = next; i < cuts.size() && cuts[i].start_ns < span.end_ns; ++i) {
      rest.Add({span.start_ns, cuts[i].start_ns});
      span.start_ns = std::max(span.start_ns, std::min(cuts[i].end_ns, span.end_ns));
    }
    rest.Add(span);
  }
  return rest;
}

}  // namespace flopledger
