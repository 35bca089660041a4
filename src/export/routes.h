#pragma once

#include <memory>
#include <vector>

#include "export/http_message.h"
#include "export/live_sink.h"
#include "export/prometheus_sink.h"

namespace flopledger {

/// Every path that the server of a run answers: `/`, `/live`, `/assets/*`, `/metrics`,
/// `/api/v1/{run,steps,conventions}`, `/-/healthy`. Shares the pages with their sinks.
std::vector<HttpRoute> PageRoutes(std::shared_ptr<const MetricsPage> metrics,
                                  std::shared_ptr<const LivePage> live);

}  // namespace flopledger
