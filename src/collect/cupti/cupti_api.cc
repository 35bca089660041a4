#include "collect/cupti/cupti_api.h"

#include <dlfcn.h>

#include <string>

#include "collect/cupti/cupti_status.h"

namespace flopledger {
namespace {

// Kineto pushes on CUSTOM0 and CUSTOM1. Fences and ops share the third: they nest, and only the
// innermost id is attached to a call.
constexpr CUpti_ExternalCorrelationKind kOurs = CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2;

void CUPTIAPI NoCallback(void*, CUpti_CallbackDomain, CUpti_CallbackId, const void*) {}

}  // namespace

template <typename Function>
bool CuptiApi::Take(Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(dlsym(handle_, name));
  return function != nullptr;
}

bool CuptiApi::HasV2() const {
  return subscribe_v2_ != nullptr && register_v2_ != nullptr && enable_v2_ != nullptr &&
         disable_v2_ != nullptr && dropped_v2_ != nullptr && next_record_v2_ != nullptr &&
         timestamp_v2_ != nullptr;
}

bool CuptiApi::Load(void* handle, DeviceSourceState* refusal) {
  handle_ = handle;
  const bool complete =
      Take(get_version_, "cuptiGetVersion") && Take(register_, "cuptiActivityRegisterCallbacks") &&
      Take(enable_, "cuptiActivityEnable") && Take(disable_, "cuptiActivityDisable") &&
      Take(flush_all_, "cuptiActivityFlushAll") && Take(next_record_, "cuptiActivityGetNextRecord");
  if (!complete) {
    *refusal = MakeState(DeviceSourceState::Kind::kUnavailable, "incomplete",
                         "the libcupti that is loaded lacks the activity API");
    return false;
  }
  Take(subscribe_, "cuptiSubscribe");
  Take(unsubscribe_, "cuptiUnsubscribe");
  Take(enable_driver_, "cuptiActivityEnableDriverApi");
  Take(enable_runtime_, "cuptiActivityEnableRuntimeApi");
  Take(set_attribute_, "cuptiActivitySetAttribute");
  Take(dropped_, "cuptiActivityGetNumDroppedRecords");
  Take(timestamp_, "cuptiGetTimestamp");
  Take(push_, "cuptiActivityPushExternalCorrelationId");
  Take(pop_, "cuptiActivityPopExternalCorrelationId");
  Take(subscribe_v2_, "cuptiSubscribe_v2");
  Take(register_v2_, "cuptiActivityRegisterCallbacks_v2");
  Take(enable_v2_, "cuptiActivityEnable_v2");
  Take(disable_v2_, "cuptiActivityDisable_v2");
  Take(enable_driver_v2_, "cuptiActivityEnableDriverApi_v2");
  Take(enable_runtime_v2_, "cuptiActivityEnableRuntimeApi_v2");
  Take(set_attribute_v2_, "cuptiActivitySetAttribute_v2");
  Take(dropped_v2_, "cuptiActivityGetNumDroppedRecords_v2");
  Take(next_record_v2_, "cuptiActivityGetNextRecord_v2");
  Take(timestamp_v2_, "cuptiGetTimestamp_v2");
  Take(push_v2_, "cuptiActivityPushExternalCorrelationId_v2");
  Take(pop_v2_, "cuptiActivityPopExternalCorrelationId_v2");

  if (const CUptiResult code = get_version_(&version_); code != CUPTI_SUCCESS) {
    *refusal = StateOf(code, "cuptiGetVersion");
    return false;
  }
  if (version_ < kOldestVersion) {
    *refusal =
        MakeState(DeviceSourceState::Kind::kUnavailable, "too_old",
                  "libcupti has API version " + std::to_string(version_) + "; accepted: from " +
                      std::to_string(kOldestVersion) + " on (CUDA 11.8)");
    return false;
  }
  return true;
}

CUptiResult CuptiApi::Attach() noexcept {
  if (v2_) return CUPTI_SUCCESS;
  if (HasV2()) {
    SubscriberParams params{};
    params.size = sizeof(params);
    params.name = "flopledger";
    params.allow_multiple = 1;
    if (subscribe_v2_(&subscriber_, &NoCallback, nullptr, &params) == CUPTI_SUCCESS) {
      v2_ = true;
      return CUPTI_SUCCESS;
    }
  }
  return ProbeSubscription();
}

CUptiResult CuptiApi::ProbeSubscription() noexcept {
  if (v2_ || subscribe_ == nullptr || unsubscribe_ == nullptr) return CUPTI_SUCCESS;
  Subscriber probe = nullptr;
  const CUptiResult code = subscribe_(&probe, &NoCallback, nullptr);
  if (code == CUPTI_SUCCESS) unsubscribe_(probe);
  return code;
}

CUptiResult CuptiApi::Register(Request request, Complete complete, RequestV2 request_v2,
                               CompleteV2 complete_v2) noexcept {
  return v2_ ? register_v2_(subscriber_, request_v2, complete_v2) : register_(request, complete);
}

CUptiResult CuptiApi::Enable(CUpti_ActivityKind kind) noexcept {
  return v2_ ? enable_v2_(subscriber_, kind, nullptr) : enable_(kind);
}

CUptiResult CuptiApi::Disable(CUpti_ActivityKind kind) noexcept {
  return v2_ ? disable_v2_(subscriber_, kind, nullptr) : disable_(kind);
}

bool CuptiApi::has_external_ids() const {
  return v2_ ? push_v2_ != nullptr && pop_v2_ != nullptr : push_ != nullptr && pop_ != nullptr;
}

bool CuptiApi::has_driver_api_filter() const {
  return v2_ ? enable_driver_v2_ != nullptr : enable_driver_ != nullptr;
}

CUptiResult CuptiApi::EnableDriverApi(CUpti_CallbackId id) noexcept {
  if (!has_driver_api_filter()) return CUPTI_ERROR_NOT_SUPPORTED;
  return v2_ ? enable_driver_v2_(subscriber_, id, 1) : enable_driver_(id, 1);
}

CUptiResult CuptiApi::EnableRuntimeApi(CUpti_CallbackId id) noexcept {
  if (v2_) {
    return enable_runtime_v2_ == nullptr ? CUPTI_ERROR_NOT_SUPPORTED
                                         : enable_runtime_v2_(subscriber_, id, 1);
  }
  return enable_runtime_ == nullptr ? CUPTI_ERROR_NOT_SUPPORTED : enable_runtime_(id, 1);
}

CUptiResult CuptiApi::SetFlag(int attribute, bool value) noexcept {
  std::uint8_t flag = value ? 1 : 0;
  std::size_t size = sizeof(flag);
  const auto id = static_cast<CUpti_ActivityAttribute>(attribute);
  if (v2_) {
    return set_attribute_v2_ == nullptr ? CUPTI_ERROR_NOT_SUPPORTED
                                        : set_attribute_v2_(subscriber_, id, &size, &flag);
  }
  return set_attribute_ == nullptr ? CUPTI_ERROR_NOT_SUPPORTED : set_attribute_(id, &size, &flag);
}

CUptiResult CuptiApi::FlushAll() noexcept { return flush_all_(0); }

CUptiResult CuptiApi::Dropped(std::size_t* count) noexcept {
  *count = 0;
  if (v2_) return dropped_v2_(subscriber_, nullptr, 0, count);
  return dropped_ == nullptr ? CUPTI_ERROR_NOT_SUPPORTED : dropped_(nullptr, 0, count);
}

CUptiResult CuptiApi::NextRecord(std::uint8_t* buffer, std::size_t valid,
                                 CUpti_Activity** record) noexcept {
  return v2_ ? next_record_v2_(subscriber_, buffer, valid, record)
             : next_record_(buffer, valid, record);
}

CUptiResult CuptiApi::Timestamp(std::uint64_t* now) noexcept {
  *now = 0;
  if (v2_) return timestamp_v2_(subscriber_, now);
  return timestamp_ == nullptr ? CUPTI_ERROR_NOT_SUPPORTED : timestamp_(now);
}

CUptiResult CuptiApi::Push(std::uint64_t id) noexcept {
  return v2_ ? push_v2_(subscriber_, kOurs, id) : push_(kOurs, id);
}

CUptiResult CuptiApi::Pop() noexcept {
  std::uint64_t last = 0;
  return v2_ ? pop_v2_(subscriber_, kOurs, &last) : pop_(kOurs, &last);
}

}  // namespace flopledger
