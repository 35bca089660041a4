#pragma once

#include <cstdint>
#include <span>

#include "flopledger/export.h"
#include "flopledger/model_flops.h"
#include "flopledger/status.h"
#include "flopledger/units.h"

namespace flopledger {

/// Devices of one kind that took part in the same wall interval.
struct DeviceGroup {
  std::int64_t count = 0;
  FlopsPerSecond peak = {};  ///< of one device, for the dtype in use
};

/// Work done in one dtype, and the peak of one device for it.
struct DtypeWork {
  Flops flops = {};
  FlopsPerSecond peak = {};
};

/// Work over what the devices could have done in the interval: sum of the numerators over the sum
/// of peak x wall, never a mean of ratios. MFU if the work is useful FLOPs, HFU if executed ones.
///
///     auto mfu = Utilization(work, DurationNs(1'500'000'000), devices);
///
/// Thread: pure. Fails: kInvalidArgument for an interval, count or peak that is not positive and
/// finite. Values above 1 are returned as they are: they are findings, not numbers to clamp.
FLOPLEDGER_EXPORT Result<double> Utilization(Flops work, DurationNs wall,
                                             std::span<const DeviceGroup> devices);

/// The same from a rate of tokens (of all devices together) and FLOPs per token.
FLOPLEDGER_EXPORT Result<double> UtilizationOfTokenRate(double flops_per_token,
                                                        double tokens_per_second,
                                                        std::span<const DeviceGroup> devices);

/// Mixed dtypes: the ideal time of each part, summed, over the measured time of `devices` alike.
FLOPLEDGER_EXPORT Result<double> UtilizationOfDtypes(std::span<const DtypeWork> work,
                                                     DurationNs wall, std::int64_t devices);

/// How much of the forward pass is run again. Fractions, not flags: policies replay parts.
struct RecomputePolicy {
  double layers_ratio = 0;          ///< of the layers' forward, core attention included
  double core_attention_ratio = 0;  ///< of core attention, where the layers are not replayed
};

/// FLOPs that the policy runs again; the head is not replayed. To the nearest FLOP.
/// Fails: kInvalidArgument for a fraction outside of 0 to 1.
FLOPLEDGER_EXPORT Result<Flops> RecomputedFlops(const DeclaredWork& work,
                                                const RecomputePolicy& policy);

}  // namespace flopledger
