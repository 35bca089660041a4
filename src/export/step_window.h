#pragma once

#include <cstddef>
#include <deque>
#include <optional>

#include "flopledger/step_report.h"

namespace flopledger {

/// Ratios of sums over the last complete steps. Absent while nothing is known.
struct WindowRatios {
  std::optional<double> mfu_ratio;
  std::optional<double> hfu_low_ratio;
  std::optional<double> hfu_high_ratio;
  std::optional<double> coverage_time_ratio;
  std::optional<double> recompute_ratio;
  std::optional<double> step_seconds;  ///< mean
  std::optional<double> tokens_per_second;
  std::size_t steps = 0;
};

/// The last K complete steps. Numerator and denominator of a ratio come from the same steps: a step
/// without the one does not count in the other.
///
///     StepWindow window(20);
///     window.Add(report);
///     line = RenderLogLine(report, window.Ratios());
///
/// Thread: of one owner. Fails: never.
class StepWindow {
 public:
  explicit StepWindow(std::size_t steps) : capacity_(steps < 1 ? 1 : steps) {}

  /// Takes complete steps only.
  void Add(const StepReport& report);
  void Clear() { steps_.clear(); }
  WindowRatios Ratios() const;

 private:
  struct Entry {
    std::optional<double> useful, executed, uncertain;  // FLOPs of the peak's dtype
    double peak = 0;
    double known_seconds = 0, observed_seconds = 0;
    double recomputed = 0, executed_total = 0;
    double wall_seconds = 0, tokens = 0;
  };
  const std::size_t capacity_;
  std::deque<Entry> steps_;
};

}  // namespace flopledger
