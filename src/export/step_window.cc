#include "export/step_window.h"

namespace flopledger {
namespace {

std::optional<double> RatioOf(double numerator, double denominator) {
  if (!(denominator > 0)) return std::nullopt;
  return numerator / denominator;
}

}  // namespace

void StepWindow::Add(const StepReport& report) {
  if (report.result != StepResult::kComplete) return;
  Entry entry;
  const Utilization& ratios = report.utilization;
  entry.peak = report.peak_flops.ToDouble();
  if (ratios.mfu_ratio && report.declared) entry.useful = report.declared->useful().ToDouble();
  if (ratios.hfu_low_ratio) entry.executed = report.executed_equivalent.ToDouble();
  if (ratios.hfu_low_ratio && ratios.hfu_high_ratio) {
    entry.uncertain = (*ratios.hfu_high_ratio - *ratios.hfu_low_ratio) * entry.peak;
  }
  for (const KernelTime& kernel : report.kernels) {
    entry.observed_seconds += kernel.time.seconds();
    if (kernel.coverage != CoverageKind::kUnknown) entry.known_seconds += kernel.time.seconds();
  }
  entry.recomputed = report.executed.recomputed.ToDouble();
  entry.executed_total = report.executed.total.ToDouble();
  entry.wall_seconds = report.wall.seconds();
  entry.tokens = static_cast<double>(report.tokens.useful);
  steps_.push_back(entry);
  if (steps_.size() > capacity_) steps_.pop_front();
}

WindowRatios StepWindow::Ratios() const {
  double useful = 0, useful_peak = 0, executed = 0, executed_peak = 0, uncertain = 0,
         uncertain_peak = 0;
  Entry sum;
  for (const Entry& entry : steps_) {
    if (entry.useful) {
      useful += *entry.useful;
      useful_peak += entry.peak;
    }
    if (entry.executed) {
      executed += *entry.executed;
      executed_peak += entry.peak;
    }
    if (entry.uncertain) {
      uncertain += *entry.uncertain;
      uncertain_peak += entry.peak;
    }
    sum.known_seconds += entry.known_seconds;
    sum.observed_seconds += entry.observed_seconds;
    sum.recomputed += entry.recomputed;
    sum.executed_total += entry.executed_total;
    sum.wall_seconds += entry.wall_seconds;
    sum.tokens += entry.tokens;
  }
  WindowRatios ratios;
  ratios.steps = steps_.size();
  ratios.mfu_ratio = RatioOf(useful, useful_peak);
  ratios.hfu_low_ratio = RatioOf(executed, executed_peak);
  if (ratios.hfu_low_ratio && uncertain_peak > 0) {
    ratios.hfu_high_ratio = *ratios.hfu_low_ratio + uncertain / uncertain_peak;
  }
  ratios.coverage_time_ratio = RatioOf(sum.known_seconds, sum.observed_seconds);
  ratios.recompute_ratio = RatioOf(sum.recomputed, sum.executed_total);
  ratios.step_seconds = RatioOf(sum.wall_seconds, static_cast<double>(steps_.size()));
  if (sum.tokens > 0) ratios.tokens_per_second = RatioOf(sum.tokens, sum.wall_seconds);
  return ratios;
}

}  // namespace flopledger
