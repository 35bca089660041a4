// Traced API calls, and the external ids that are pushed around them.

#include "fake_engine.h"

namespace fakecupti {
namespace {

// The stack of external ids, a thread and kind each.
thread_local std::array<std::vector<std::uint64_t>, 8> external_ids;

}  // namespace

CUptiResult Engine::Push(CUpti_ExternalCorrelationKind kind, std::uint64_t id, bool v2) {
  if (Mixed(v2)) return CUPTI_ERROR_NOT_COMPATIBLE;
  if (kind <= 0 || static_cast<std::size_t>(kind) >= external_ids.size()) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  external_ids[kind].push_back(id);
  return CUPTI_SUCCESS;
}

CUptiResult Engine::Pop(CUpti_ExternalCorrelationKind kind, std::uint64_t* last, bool v2) {
  if (Mixed(v2)) return CUPTI_ERROR_NOT_COMPATIBLE;
  if (kind <= 0 || static_cast<std::size_t>(kind) >= external_ids.size()) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  if (external_ids[kind].empty()) return CUPTI_ERROR_QUEUE_EMPTY;
  if (last != nullptr) *last = external_ids[kind].back();
  external_ids[kind].pop_back();
  return CUPTI_SUCCESS;
}

std::uint32_t Engine::ApiCall(int runtime, std::uint32_t callback_id) {
  const std::uint32_t correlation = next_correlation.fetch_add(1);
  {
    std::lock_guard lock(mutex_);
    const int kind = runtime != 0 ? CUPTI_ACTIVITY_KIND_RUNTIME : CUPTI_ACTIVITY_KIND_DRIVER;
    if (!apis_.contains({runtime, callback_id}) && !kinds_.contains(kind)) return correlation;
  }
  for (std::size_t kind = 1; kind < external_ids.size(); ++kind) {
    if (external_ids[kind].empty()) continue;
    CUpti_ActivityExternalCorrelation record{};
    record.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
    record.externalKind = static_cast<CUpti_ExternalCorrelationKind>(kind);
    record.externalId = external_ids[kind].back();
    record.correlationId = correlation;
    Append(record.kind, &record, sizeof(record));
  }
  CUpti_ActivityAPI api{};
  api.kind = runtime != 0 ? CUPTI_ACTIVITY_KIND_RUNTIME : CUPTI_ACTIVITY_KIND_DRIVER;
  api.cbid = callback_id;
  api.correlationId = correlation;
  api.start = api.end = Timestamp();
  Append(0, &api, sizeof(api));
  return correlation;
}

int Engine::Depth(CUpti_ExternalCorrelationKind kind) {
  return static_cast<int>(external_ids[kind].size());
}

}  // namespace fakecupti
