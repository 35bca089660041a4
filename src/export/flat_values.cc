#include "export/flat_values.h"

#include <optional>
#include <string_view>

namespace flopledger {

std::vector<std::pair<std::string, double>> FlatValues(const StepReport& report) {
  std::vector<std::pair<std::string, double>> values;
  const auto add = [&](std::string_view key, std::optional<double> value) {
    if (value) values.emplace_back("flopledger/" + std::string(key), *value);
  };
  add("step", static_cast<double>(report.step));
  add("step_seconds", report.wall.seconds());
  add("mfu", report.utilization.mfu_ratio);
  add("hfu_low", report.utilization.hfu_low_ratio);
  add("hfu_high", report.utilization.hfu_high_ratio);
  add("coverage_time", report.coverage.time_ratio);
  add("coverage_launches", report.coverage.launch_ratio);
  add("recompute", report.RecomputeRatio());
  if (report.tokens.useful > 0) {
    add("tokens", static_cast<double>(report.tokens.useful));
    add("padding_tokens", static_cast<double>(report.tokens.padded - report.tokens.useful));
    if (report.wall.ns() > 0) {
      add("tokens_per_second", static_cast<double>(report.tokens.useful) / report.wall.seconds());
    }
  }
  if (report.declared) {
    add("useful_flops", report.declared->useful().ToDouble());
    add("padding_flops", report.declared->padding.ToDouble());
  }
  // Without any evidence there is no executed work to speak of, and 0 would be a claim.
  if (report.utilization.hfu_refusal != RefusalReason::kNoEvidence) {
    add("executed_flops", report.executed.total.ToDouble());
    add("recomputed_flops", report.executed.recomputed.ToDouble());
    add("auxiliary_flops", report.executed.auxiliary.ToDouble());
    add("excess_flops", report.executed.excess.ToDouble());
    if (report.unexplained) add("unexplained_flops", report.unexplained->ToDouble());
  }
  if (report.peak_flops.count() > 0) add("peak_flops", report.peak_flops.ToDouble());
  for (std::size_t i = 0; i < kDeviceStateCount && !report.devices.empty(); ++i) {
    const auto state = static_cast<DeviceState>(i);
    DurationNs time;
    for (const DeviceTime& device : report.devices) time += device.InState(state);
    add("seconds/" + std::string(ToString(state)), time.seconds());
  }
  add("findings", static_cast<double>(report.findings.size()));
  for (const TrainingValue& value : report.values) add("value/" + value.name, value.value);
  return values;
}

}  // namespace flopledger
