#pragma once

#include <cstdint>
#include <optional>

#include "flopledger/step_report.h"
#include "flopledger/units.h"

namespace flopledger {

/// Watches what collecting costs the training, as the collector's library reports it, against what
/// the steps would take without. The ratios are never corrected for it: measured time is time.
///
///     if (auto ratio = budget.Add(CostToTraining(report), report.wall)) StepDown(*ratio);
///
/// Thread: one. Fails: never.
class OverheadBudget {
 public:
  static constexpr int kSteps = 20;  ///< that a judgement needs

  /// `limit_ratio`: cost over the rest of the time; 0: no limit.
  explicit OverheadBudget(double limit_ratio, int steps = kSteps)
      : limit_ratio_(limit_ratio), steps_(steps) {}

  /// A complete step. The ratio over the last steps, if it is above the limit; said once.
  std::optional<double> Add(DurationNs cost, DurationNs wall) {
    if (exceeded_ || limit_ratio_ <= 0) return std::nullopt;
    cost_ += cost;
    wall_ += wall;
    if (++seen_ < steps_) return std::nullopt;
    const double rest = (wall_ - cost_).seconds();
    const double ratio = rest > 0 ? cost_.seconds() / rest : 1.0;
    cost_ = wall_ = DurationNs();
    seen_ = 0;
    if (ratio <= limit_ratio_) return std::nullopt;
    exceeded_ = true;
    return ratio;
  }

 private:
  const double limit_ratio_;
  const int steps_;
  int seen_ = 0;
  bool exceeded_ = false;
  DurationNs cost_;
  DurationNs wall_;
};

/// What of the collector's cost delays the process's own calls. Buffers are flushed beside them.
inline DurationNs CostToTraining(const StepReport& report) {
  DurationNs cost;
  for (const OverheadRecord::Kind kind :
       {OverheadRecord::Kind::kInstrumentation, OverheadRecord::Kind::kResource,
        OverheadRecord::Kind::kCompiler}) {
    cost += report.collector_overhead[static_cast<std::size_t>(kind)];
  }
  return cost;
}

}  // namespace flopledger
