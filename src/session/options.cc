#include "session/options.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "collect/nvtx/nvtx_rules.h"

namespace flopledger {
namespace {

struct IntegerField {
  const char* name;
  std::int64_t value;
  std::int64_t least;
  std::int64_t most;
};

}  // namespace

std::optional<Status> FindWrongOption(const SessionOptions& options) {
  const std::array fields = {
      IntegerField{"warmup_steps", options.warmup_steps, 0, 1'000'000},
      IntegerField{"window_steps", options.window_steps, 1, 100'000},
      IntegerField{"log_every_steps", options.log_every_steps, 0, 1'000'000'000},
      IntegerField{"device_count", options.device_count, 1, 1024},
      IntegerField{"sequence_length", options.sequence_length, 0, std::int64_t{1} << 40},
      IntegerField{"capture_max_bytes", options.capture_max_bytes, 64 << 10, std::int64_t{1} << 50},
      IntegerField{"http.base_port", options.http.base_port, 0, 65535},
  };
  for (const IntegerField& field : fields) {
    if (field.value >= field.least && field.value <= field.most) continue;
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("{} is {}; accepted: {} to {}", field.name, field.value, field.least,
                              field.most));
  }
  if (!(options.overhead_budget_ratio >= 0 && options.overhead_budget_ratio <= 1)) {
    return Status(StatusCode::kInvalidArgument,
                  fmt::format("overhead_budget_ratio is {}; accepted: 0 (no limit) to 1",
                              options.overhead_budget_ratio));
  }
  const auto rules = NvtxRuleBook::Create(options.nvtx.steps, options.nvtx.phases);
  if (!rules) return rules.error();
  for (const PeakRate& peak : options.peaks) {
    const double rate = peak.rate.value();
    if (!std::isfinite(rate) || rate < 1e9 || rate > 1e17) {
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("peak of {} is {} FLOP/s; accepted: 1e9 to 1e17 FLOP/s of one "
                                "device (312 TFLOP/s is 312e12)",
                                ToString(peak.dtype), rate));
    }
    if (peak.source.empty()) {
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("peak of {} has no source; give the title of the sheet it is from, "
                                "or how it was measured",
                                ToString(peak.dtype)));
    }
  }
  return std::nullopt;
}

}  // namespace flopledger
