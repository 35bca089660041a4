#include "export/log_line.h"

#include <fmt/format.h>

#include "export/report_text.h"

namespace flopledger {
namespace {

std::string RatioField(std::string_view name, const std::optional<double>& ratio,
                       std::string_view reason) {
  if (ratio) return fmt::format(" | {} {}", name, PercentText(*ratio));
  return reason.empty() ? fmt::format(" | {} N/A", name)
                        : fmt::format(" | {} N/A ({})", name, reason);
}

std::string Render(const StepReport& report, const WindowRatios& ratios) {
  std::string line = fmt::format("step {}", report.step);
  if (report.result != StepResult::kComplete) line += fmt::format(" ({})", ToString(report.result));
  line += fmt::format(
      " | {}", TimeText(ratios.step_seconds
                            ? DurationNs(static_cast<std::int64_t>(*ratios.step_seconds * 1e9))
                            : report.wall));
  line += RatioField("MFU", ratios.mfu_ratio, ReasonText(report.utilization.mfu_refusal));
  const bool partly_uncounted = ratios.hfu_low_ratio && ratios.hfu_high_ratio &&
                                *ratios.hfu_high_ratio > *ratios.hfu_low_ratio;
  line += RatioField(partly_uncounted ? "HFU >=" : "HFU", ratios.hfu_low_ratio,
                     ReasonText(report.utilization.hfu_refusal));
  line += RatioField("recompute", ratios.recompute_ratio, {});
  line += RatioField("coverage", ratios.coverage_time_ratio, {});
  if (ratios.tokens_per_second) {
    line += fmt::format(" | {} tok/s", CountText(*ratios.tokens_per_second));
  }
  for (const TrainingValue& value : report.values) {
    line += fmt::format(" | {} {:.4g}", value.name, value.value);
  }
  if (!report.findings.empty()) line += fmt::format(" | ! {}", report.findings.front().id);
  if (report.findings.size() > 1) line += fmt::format(" and {} more", report.findings.size() - 1);
  return line;
}

}  // namespace

std::string RenderLogLine(const StepReport& report) {
  WindowRatios own;
  own.mfu_ratio = report.utilization.mfu_ratio;
  own.hfu_low_ratio = report.utilization.hfu_low_ratio;
  own.hfu_high_ratio = report.utilization.hfu_high_ratio;
  own.recompute_ratio = report.RecomputeRatio();
  own.coverage_time_ratio = report.coverage.time_ratio;
  if (report.tokens.useful > 0 && report.wall.ns() > 0) {
    own.tokens_per_second = static_cast<double>(report.tokens.useful) / report.wall.seconds();
  }
  return Render(report, own);
}

std::string RenderLogLine(const StepReport& report, const WindowRatios& window) {
  if (window.steps == 0) return RenderLogLine(report);
  return Render(report, window);
}

}  // namespace flopledger
