#pragma once

#include <cupti.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "collect/device_source.h"

namespace flopledger {

/// The functions of one loaded libcupti that are called here, with one face for both families: the
/// global one (v1, one client a process) and the per-subscriber one (v2, CUDA 13.3 and later). They
/// exclude each other, so a table is of one family from its first call on.
///
///     CuptiApi api;
///     if (auto refusal = api.Load(handle)) ...
///     if (CUptiResult code = api.Attach(); code == CUPTI_SUCCESS) api.Enable(kind);
///
/// Thread: any once loaded. Fails: every call answers a CUptiResult; a function that the library
/// lacks answers CUPTI_ERROR_NOT_SUPPORTED.
class CuptiApi {
 public:
  using Request = CUpti_BuffersCallbackRequestFunc;
  using Complete = CUpti_BuffersCallbackCompleteFunc;
  using RequestV2 = void (*)(std::uint8_t**, std::size_t*, std::size_t*, void*);
  using CompleteV2 = void (*)(std::uint8_t*, std::size_t, std::size_t, void*);

  /// CUDA 11.8: older ones lack attributes and record fields that are relied on.
  static constexpr std::uint32_t kOldestVersion = 18;
  /// From CUDA 12.9 on a buffer may be refused.
  static constexpr std::uint32_t kNullBufferVersion = 27;

  /// Takes the symbols and asks for the version; false: `refusal` says why.
  bool Load(void* handle, DeviceSourceState* refusal);

  /// Becomes a client. v2 if the library has it and takes us, else v1, where the one subscription
  /// is only tried and given back: whoever holds it is answered with 39, nobody is locked out.
  CUptiResult Attach() noexcept;
  /// v1 only: does another tool hold the subscription?
  CUptiResult ProbeSubscription() noexcept;

  CUptiResult Register(Request request, Complete complete, RequestV2 request_v2,
                       CompleteV2 complete_v2) noexcept;
  CUptiResult Enable(CUpti_ActivityKind kind) noexcept;
  CUptiResult Disable(CUpti_ActivityKind kind) noexcept;
  CUptiResult EnableDriverApi(CUpti_CallbackId id) noexcept;
  CUptiResult EnableRuntimeApi(CUpti_CallbackId id) noexcept;
  CUptiResult SetFlag(int attribute, bool value) noexcept;
  CUptiResult FlushAll() noexcept;
  /// Reads and resets.
  CUptiResult Dropped(std::size_t* count) noexcept;
  CUptiResult NextRecord(std::uint8_t* buffer, std::size_t valid, CUpti_Activity** record) noexcept;
  CUptiResult Timestamp(std::uint64_t* now) noexcept;
  CUptiResult Push(std::uint64_t id) noexcept;
  CUptiResult Pop() noexcept;

  std::uint32_t version() const { return version_; }
  bool has_external_ids() const;
  bool has_driver_api_filter() const;

 private:
  template <typename Function>
  bool Take(Function*& function, const char* name);
  bool HasV2() const;

  // Names as the library's, shortened; V2 with the subscriber in front.
  using Subscriber = CUpti_SubscriberHandle;
  void* handle_ = nullptr;
  std::uint32_t version_ = 0;
  bool v2_ = false;
  Subscriber subscriber_ = nullptr;

  decltype(::cuptiGetVersion)* get_version_ = nullptr;
  decltype(::cuptiSubscribe)* subscribe_ = nullptr;
  decltype(::cuptiUnsubscribe)* unsubscribe_ = nullptr;
  decltype(::cuptiActivityRegisterCallbacks)* register_ = nullptr;
  decltype(::cuptiActivityEnable)* enable_ = nullptr;
  decltype(::cuptiActivityDisable)* disable_ = nullptr;
  CUptiResult (*enable_driver_)(CUpti_CallbackId, std::uint8_t) = nullptr;
  CUptiResult (*enable_runtime_)(CUpti_CallbackId, std::uint8_t) = nullptr;
  decltype(::cuptiActivitySetAttribute)* set_attribute_ = nullptr;
  decltype(::cuptiActivityFlushAll)* flush_all_ = nullptr;
  decltype(::cuptiActivityGetNumDroppedRecords)* dropped_ = nullptr;
  decltype(::cuptiActivityGetNextRecord)* next_record_ = nullptr;
  decltype(::cuptiGetTimestamp)* timestamp_ = nullptr;
  decltype(::cuptiActivityPushExternalCorrelationId)* push_ = nullptr;
  decltype(::cuptiActivityPopExternalCorrelationId)* pop_ = nullptr;

  struct SubscriberParams {  // as of CUDA 13.2; the build's headers may be older
    std::size_t size;
    const char* name;
    char* old_name;
    std::size_t old_name_size;
    std::uint8_t allow_multiple;
    std::uint8_t padding[7];
  };
  CUptiResult (*subscribe_v2_)(Subscriber*, CUpti_CallbackFunc, void*, SubscriberParams*) = nullptr;
  CUptiResult (*register_v2_)(Subscriber, RequestV2, CompleteV2) = nullptr;
  CUptiResult (*enable_v2_)(Subscriber, CUpti_ActivityKind, void*) = nullptr;
  CUptiResult (*disable_v2_)(Subscriber, CUpti_ActivityKind, void*) = nullptr;
  CUptiResult (*enable_driver_v2_)(Subscriber, CUpti_CallbackId, std::uint8_t) = nullptr;
  CUptiResult (*enable_runtime_v2_)(Subscriber, CUpti_CallbackId, std::uint8_t) = nullptr;
  CUptiResult (*set_attribute_v2_)(Subscriber, CUpti_ActivityAttribute, std::size_t*,
                                   void*) = nullptr;
  CUptiResult (*dropped_v2_)(Subscriber, CUcontext, std::uint32_t, std::size_t*) = nullptr;
  CUptiResult (*next_record_v2_)(Subscriber, std::uint8_t*, std::size_t,
                                 CUpti_Activity**) = nullptr;
  CUptiResult (*timestamp_v2_)(Subscriber, std::uint64_t*) = nullptr;
  CUptiResult (*push_v2_)(Subscriber, CUpti_ExternalCorrelationKind, std::uint64_t) = nullptr;
  CUptiResult (*pop_v2_)(Subscriber, CUpti_ExternalCorrelationKind, std::uint64_t*) = nullptr;
};

}  // namespace flopledger
