// The functions of libcupti that a collector calls, on top of the engine.

#include <cstring>

#include "fake_engine.h"

namespace fakecupti {

std::size_t KernelRecordSize(int struct_version) {
  switch (struct_version) {
    case 4:
      return sizeof(CUpti_ActivityKernel4);
    case 5:
      return sizeof(CUpti_ActivityKernel5);
    case 6:
      return sizeof(CUpti_ActivityKernel6);
    case 7:
      return sizeof(CUpti_ActivityKernel7);
    case 8:
      return sizeof(CUpti_ActivityKernel8);
    case 9:
      return sizeof(CUpti_ActivityKernel9);
    default:
      return sizeof(CUpti_ActivityKernel10);
  }
}

std::size_t RecordSize(int kind, int kernel_struct_version) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
    case CUPTI_ACTIVITY_KIND_KERNEL:
      return KernelRecordSize(kernel_struct_version);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
      return sizeof(CUpti_ActivityMemcpy6);
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return sizeof(CUpti_ActivityMemcpyPtoP4);
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizeof(CUpti_ActivityMemset4);
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      return sizeof(CUpti_ActivityOverhead3);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
      return sizeof(CUpti_ActivityExternalCorrelation);
    case CUPTI_ACTIVITY_KIND_DRIVER:
    case CUPTI_ACTIVITY_KIND_RUNTIME:
      return sizeof(CUpti_ActivityAPI);
    case CUPTI_ACTIVITY_KIND_MARKER:
      return sizeof(CUpti_ActivityMarker2);
    default:
      return 0;
  }
}

namespace {

CUptiResult NextRecord(std::uint8_t* buffer, std::size_t valid, CUpti_Activity** record) {
  const int kernel_version = Engine::Get().kernel_record.load(std::memory_order_relaxed);
  std::int32_t kind = 0;  // any number: the buffer may hold anything
  std::uint8_t* next = buffer;
  if (*record != nullptr) {
    next = reinterpret_cast<std::uint8_t*>(*record);
    std::memcpy(&kind, next, sizeof(kind));
    next += RecordSize(kind, kernel_version);
  }
  const std::size_t used = next - buffer;
  if (used >= valid) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  if (valid - used < sizeof(kind)) return CUPTI_ERROR_INVALID_KIND;
  std::memcpy(&kind, next, sizeof(kind));
  const std::size_t size = RecordSize(kind, kernel_version);
  if (size == 0 || size > valid - used) return CUPTI_ERROR_INVALID_KIND;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}

}  // namespace
}  // namespace fakecupti

using fakecupti::Engine;

#define FAKECUPTI_ENTER(...) \
  if (const CUptiResult failed = Engine::Get().Enter(__VA_ARGS__); failed != 0) return failed

extern "C" {

CUptiResult CUPTIAPI cuptiGetVersion(std::uint32_t* version) {
  FAKECUPTI_ENTER("cuptiGetVersion");
  *version = Engine::Get().version;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetTimestamp(std::uint64_t* timestamp) {
  FAKECUPTI_ENTER("cuptiGetTimestamp");
  *timestamp = Engine::Get().Timestamp();
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiGetResultString(CUptiResult result, const char** text) {
  FAKECUPTI_ENTER("cuptiGetResultString");
  *text = result == CUPTI_SUCCESS ? "CUPTI_SUCCESS" : nullptr;
  return CUPTI_SUCCESS;
}

CUptiResult CUPTIAPI cuptiSubscribe(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc, void*) {
  FAKECUPTI_ENTER("cuptiSubscribe");
  return Engine::Get().Subscribe(subscriber, false);
}

CUptiResult CUPTIAPI cuptiUnsubscribe(CUpti_SubscriberHandle subscriber) {
  FAKECUPTI_ENTER("cuptiUnsubscribe");
  return Engine::Get().Unsubscribe(subscriber);
}

CUptiResult CUPTIAPI cuptiFinalize(void) {
  FAKECUPTI_ENTER("cuptiFinalize");
  return Engine::Get().Finalize();
}

CUptiResult CUPTIAPI cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc request,
                                                    CUpti_BuffersCallbackCompleteFunc complete) {
  FAKECUPTI_ENTER("cuptiActivityRegisterCallbacks");
  return Engine::Get().Register(
      [request](std::uint8_t** memory, std::size_t* size) {
        std::size_t max_records = 0;
        request(memory, size, &max_records);
      },
      [complete](std::uint8_t* memory, std::size_t size, std::size_t used) {
        complete(nullptr, 0, memory, size, used);
      },
      false);
}

CUptiResult CUPTIAPI cuptiActivityEnable(CUpti_ActivityKind kind) {
  FAKECUPTI_ENTER("cuptiActivityEnable", kind);
  return Engine::Get().Enable(kind, true, false);
}

CUptiResult CUPTIAPI cuptiActivityDisable(CUpti_ActivityKind kind) {
  FAKECUPTI_ENTER("cuptiActivityDisable", kind);
  return Engine::Get().Enable(kind, false, false);
}

CUptiResult CUPTIAPI cuptiActivityEnableDriverApi(CUpti_CallbackId id, std::uint8_t enable) {
  FAKECUPTI_ENTER("cuptiActivityEnableDriverApi");
  return Engine::Get().EnableApi(0, id, enable != 0, false);
}

CUptiResult CUPTIAPI cuptiActivityEnableRuntimeApi(CUpti_CallbackId id, std::uint8_t enable) {
  FAKECUPTI_ENTER("cuptiActivityEnableRuntimeApi");
  return Engine::Get().EnableApi(1, id, enable != 0, false);
}

CUptiResult CUPTIAPI cuptiActivitySetAttribute(CUpti_ActivityAttribute attribute, std::size_t*,
                                               void* value) {
  FAKECUPTI_ENTER("cuptiActivitySetAttribute", attribute);
  return Engine::Get().SetAttribute(attribute, value);
}

CUptiResult CUPTIAPI cuptiActivityFlushAll(std::uint32_t flags) {
  FAKECUPTI_ENTER("cuptiActivityFlushAll");
  Engine::Get().WaitFlushAllowed();
  return Engine::Get().Flush(flags);
}

CUptiResult CUPTIAPI cuptiActivityGetNumDroppedRecords(CUcontext, std::uint32_t,
                                                       std::size_t* count) {
  FAKECUPTI_ENTER("cuptiActivityGetNumDroppedRecords");
  return Engine::Get().Dropped(count, false);
}

CUptiResult CUPTIAPI cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid,
                                                CUpti_Activity** record) {
  return fakecupti::NextRecord(buffer, valid, record);
}

CUptiResult CUPTIAPI cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                            std::uint64_t id) {
  FAKECUPTI_ENTER("cuptiActivityPushExternalCorrelationId", kind);
  return Engine::Get().Push(kind, id, false);
}

CUptiResult CUPTIAPI cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind,
                                                           std::uint64_t* last) {
  FAKECUPTI_ENTER("cuptiActivityPopExternalCorrelationId", kind);
  return Engine::Get().Pop(kind, last, false);
}

#ifdef FAKECUPTI_V2
// The per-subscriber family; the headers of the build may be older than it.
#define FAKECUPTI_EXPORT __attribute__((visibility("default")))

struct fakecupti_subscriber_params {
  std::size_t size;
  const char* name;
  char* old_name;
  std::size_t old_name_size;
  std::uint8_t allow_multiple;
};

CUptiResult CUPTIAPI cuptiSubscribe_v2(CUpti_SubscriberHandle* subscriber, CUpti_CallbackFunc,
                                       void*, CUpti_SubscriberParams* params) {
  FAKECUPTI_ENTER("cuptiSubscribe_v2");
  const auto* wide = reinterpret_cast<const fakecupti_subscriber_params*>(params);
  const bool several = wide != nullptr && wide->size > sizeof(*params) && wide->allow_multiple != 0;
  return Engine::Get().Subscribe(subscriber, several);
}

FAKECUPTI_EXPORT CUptiResult cuptiGetTimestamp_v2(CUpti_SubscriberHandle,
                                                  std::uint64_t* timestamp) {
  FAKECUPTI_ENTER("cuptiGetTimestamp_v2");
  *timestamp = Engine::Get().Timestamp();
  return CUPTI_SUCCESS;
}

FAKECUPTI_EXPORT CUptiResult cuptiActivityRegisterCallbacks_v2(
    CUpti_SubscriberHandle, void (*request)(std::uint8_t**, std::size_t*, std::size_t*, void*),
    void (*complete)(std::uint8_t*, std::size_t, std::size_t, void*)) {
  FAKECUPTI_ENTER("cuptiActivityRegisterCallbacks_v2");
  return Engine::Get().Register(
      [request](std::uint8_t** memory, std::size_t* size) {
        std::size_t max_records = 0;
        request(memory, size, &max_records, nullptr);
      },
      [complete](std::uint8_t* memory, std::size_t size, std::size_t used) {
        complete(memory, size, used, nullptr);
      },
      true);
}

FAKECUPTI_EXPORT CUptiResult cuptiActivityEnable_v2(CUpti_SubscriberHandle, CUpti_ActivityKind kind,
                                                    void*) {
  FAKECUPTI_ENTER("cuptiActivityEnable_v2", kind);
  return Engine::Get().Enable(kind, true, true);
}

FAKECUPTI_EXPORT CUptiResult cuptiActivityDisable_v2(CUpti_SubscriberHandle,
                                                     CUpti_ActivityKind kind, void*) {
  FAKECUPTI_ENTER("cuptiActivityDisable_v2", kind);
  return Engine::Get().Enable(kind, false, true);
}

FAKECUPTI_EXPORT CUptiResult cuptiActivityEnableDriverApi_v2(CUpti_SubscriberHandle,
                                                             CUpti_CallbackId id,
                                                             std::uint8_t enable) {
  FAKECUPTI_ENTER("cuptiActivityEnableDriverApi_v2");
  return Engine::Get().EnableApi(0, id, enable != 0, true);
}

FAKECUPTI_EXPORT CUptiResult cuptiActivityEnableRuntimeApi_v2(CUpti_SubscriberHandle,
                                                              CUpti_CallbackId id,
                                                              std::uint8_t enable) {
  FAKECUPTI_ENTER("cuptiActivityEnableRuntimeApi_v2");
  return Engine::Get().EnableApi(1, id, enable != 0, true);
}

FAKECUPTI_EXPORT CUptiResult cuptiActivitySetAttribute_v2(CUpti_SubscriberHandle,
                                                          CUpti_ActivityAttribute attribute,
                                                          std::size_t*, void* value) {
  FAKECUPTI_ENTER("cuptiActivitySetAttribute_v2", attribute);
  return Engine::Get().SetAttribute(attribute, value);
}

FAKECUPTI_EXPORT CUptiResult cuptiActivityGetNumDroppedRecords_v2(CUpti_SubscriberHandle, CUcontext,
                                                                  std::uint32_t,
                                                                  std::size_t* count) {
  FAKECUPTI_ENTER("cuptiActivityGetNumDroppedRecords_v2");
  return Engine::Get().Dropped(count, true);
}

FAKECUPTI_EXPORT CUptiResult cuptiActivityGetNextRecord_v2(CUpti_SubscriberHandle,
                                                           std::uint8_t* buffer, std::size_t valid,
                                                           CUpti_Activity** record) {
  return fakecupti::NextRecord(buffer, valid, record);
}

FAKECUPTI_EXPORT CUptiResult cuptiActivityPushExternalCorrelationId_v2(
    CUpti_SubscriberHandle, CUpti_ExternalCorrelationKind kind, std::uint64_t id) {
  FAKECUPTI_ENTER("cuptiActivityPushExternalCorrelationId_v2", kind);
  return Engine::Get().Push(kind, id, true);
}

FAKECUPTI_EXPORT CUptiResult cuptiActivityPopExternalCorrelationId_v2(
    CUpti_SubscriberHandle, CUpti_ExternalCorrelationKind kind, std::uint64_t* last) {
  FAKECUPTI_ENTER("cuptiActivityPopExternalCorrelationId_v2", kind);
  return Engine::Get().Pop(kind, last, true);
}
#endif

}  // extern "C"
