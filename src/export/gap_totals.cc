#include "export/gap_totals.h"

#include <algorithm>

namespace flopledger {
namespace {

void AddTo(CoverageGap* sum, const CoverageGap& gap) {
  sum->launches += gap.launches;
  sum->time += gap.time;
}

}  // namespace

void GapTotals::Add(const StepReport& report) {
  for (const CoverageGap& gap : report.gaps) {
    const std::pair key(gap.name, gap.reason);
    auto entry = by_name_.find(key);
    if (entry == by_name_.end()) {
      if (by_name_.size() >= max_names_) {
        AddTo(&rest_, gap);
        continue;
      }
      entry = by_name_.emplace(key, CoverageGap()).first;
      entry->second.name = gap.name;
      entry->second.reason = gap.reason;
    }
    AddTo(&entry->second, gap);
  }
}

std::vector<CoverageGap> GapTotals::Largest(std::size_t count) const {
  std::vector<CoverageGap> sorted;
  sorted.reserve(by_name_.size());
  for (const auto& [key, gap] : by_name_) sorted.push_back(gap);
  std::sort(sorted.begin(), sorted.end(), [](const CoverageGap& a, const CoverageGap& b) {
    return a.time != b.time ? a.time > b.time : a.name < b.name;
  });
  CoverageGap rest = rest_;
  for (std::size_t i = count; i < sorted.size(); ++i) AddTo(&rest, sorted[i]);
  if (sorted.size() > count) sorted.resize(count);
  if (rest.launches > 0 || rest.time.ns() > 0) sorted.push_back(rest);
  return sorted;
}

}  // namespace flopledger
