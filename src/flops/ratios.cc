#include "flopledger/ratios.h"

#include <cmath>
#include <string>

namespace flopledger {
namespace {

bool IsPositive(double value) { return std::isfinite(value) && value > 0; }

Result<double> SumOfPeaks(std::span<const DeviceGroup> devices) {
  if (devices.empty()) return InvalidArgument("no device took part; accepted: one group or more");
  double sum = 0;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const std::string name = "devices[" + std::to_string(i) + "]";
    if (devices[i].count < 1) {
      return InvalidArgument(name + ".count is " + std::to_string(devices[i].count) +
                             "; accepted: 1 and more");
    }
    if (!IsPositive(devices[i].peak.value())) {
      return InvalidArgument(name + ".peak is " + std::to_string(devices[i].peak.value()) +
                             " FLOP/s; accepted: a positive rate");
    }
    sum += static_cast<double>(devices[i].count) * devices[i].peak.value();
  }
  return sum;
}

Result<double> Seconds(DurationNs wall) {
  if (wall.ns() <= 0) {
    return InvalidArgument("the wall interval is " + std::to_string(wall.ns()) +
                           " ns; accepted: more than 0");
  }
  return wall.seconds();
}

}  // namespace

Result<double> Utilization(Flops work, DurationNs wall, std::span<const DeviceGroup> devices) {
  Result<double> peaks = SumOfPeaks(devices);
  if (!peaks.has_value()) return peaks;
  Result<double> seconds = Seconds(wall);
  if (!seconds.has_value()) return seconds;
  return work.ToDouble() / (*peaks * *seconds);
}

Result<double> UtilizationOfTokenRate(double flops_per_token, double tokens_per_second,
                                      std::span<const DeviceGroup> devices) {
  Result<double> peaks = SumOfPeaks(devices);
  if (!peaks.has_value()) return peaks;
  if (!IsPositive(flops_per_token) || !IsPositive(tokens_per_second)) {
    return InvalidArgument("FLOPs per token and tokens/s are " + std::to_string(flops_per_token) +
                           " and " + std::to_string(tokens_per_second) +
                           "; accepted: positive numbers");
  }
  return flops_per_token * tokens_per_second / *peaks;
}

Result<double> UtilizationOfDtypes(std::span<const DtypeWork> work, DurationNs wall,
                                   std::int64_t devices) {
  Result<double> seconds = Seconds(wall);
  if (!seconds.has_value()) return seconds;
  if (devices < 1) {
    return InvalidArgument("devices is " + std::to_string(devices) + "; accepted: 1 and more");
  }
  double ideal_seconds = 0;
  for (std::size_t i = 0; i < work.size(); ++i) {
    if (!IsPositive(work[i].peak.value())) {
      return InvalidArgument("work[" + std::to_string(i) + "].peak is " +
                             std::to_string(work[i].peak.value()) +
                             " FLOP/s; accepted: a positive rate");
    }
    ideal_seconds += work[i].flops.ToDouble() / work[i].peak.value();
  }
  return ideal_seconds / (*seconds * static_cast<double>(devices));
}

Result<Flops> RecomputedFlops(const DeclaredWork& work, const RecomputePolicy& policy) {
  for (const auto& [name, value] :
       {std::pair{"layers_ratio", policy.layers_ratio},
        std::pair{"core_attention_ratio", policy.core_attention_ratio}}) {
    if (!(value >= 0 && value <= 1)) {
      return InvalidArgument(std::string(name) + " is " + std::to_string(value) +
                             "; accepted: 0 to 1");
    }
  }
  // Parts per 2^53 keep whole replays exact; a product of two such sums fits 128 bits only in
  // pieces, so whole FLOPs and the rest are taken apart.
  constexpr Int128 kOne = Int128{1} << 53;
  const auto scale = [](Int128 flops, double ratio) {
    const Int128 share = static_cast<Int128>(std::llround(ratio * 9007199254740992.0));
    const Int128 whole = flops / kOne * share;
    return whole + (flops % kOne * share + kOne / 2) / kOne;
  };
  Int128 replayed = 0;
  for (const DeclaredPart& part : work.parts) {
    if (part.kind == PartKind::kHead) continue;
    replayed += scale(part.forward.count(), policy.layers_ratio);
    if (part.kind == PartKind::kCoreAttention) {
      const double rest = (1 - policy.layers_ratio) * policy.core_attention_ratio;
      replayed += scale(part.forward.count(), rest);
    }
  }
  return Flops::FromInteger(replayed);
}

}  // namespace flopledger
