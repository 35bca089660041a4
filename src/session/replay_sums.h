#pragma once

#include <vector>

#include "base/signature_table.h"
#include "session/replay.h"

namespace flopledger {

/// The devices of a trace with the FLOPs of their ops, by the counting rules.
std::vector<ReplayDevice> SumDevices(const TraceDescription& trace,
                                     const std::vector<DeviceActivity>& activities,
                                     const ActivitySummary& summary,
                                     const SignatureTable& signatures);

/// All devices as one: counts and times are sums, spans go from the first begin to the last end.
ReplayDevice SumTotal(const TraceDescription& trace, const std::vector<ReplayDevice>& devices,
                      const ActivitySummary& summary, const SignatureTable& signatures);

}  // namespace flopledger
