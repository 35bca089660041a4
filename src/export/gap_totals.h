#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "flopledger/step_report.h"

namespace flopledger {

/// The coverage gaps of a run by name, bounded: what comes after `max_names` different ones is
/// summed under `other`, so that nothing is lost.
///
///     GapTotals gaps;
///     gaps.Add(report);
///     summary = RenderSummary(run, totals, gaps.Largest(10));
///
/// Thread: of one owner. Fails: never.
class GapTotals {
 public:
  explicit GapTotals(std::size_t max_names = 4096) : max_names_(max_names) { rest_.name = "other"; }

  void Add(const StepReport& report);
  /// The largest by time, then by name; the rest is one more entry named `other`.
  std::vector<CoverageGap> Largest(std::size_t count) const;

 private:
  const std::size_t max_names_;
  std::map<std::pair<std::string, GapReason>, CoverageGap> by_name_;
  CoverageGap rest_;
};

}  // namespace flopledger
