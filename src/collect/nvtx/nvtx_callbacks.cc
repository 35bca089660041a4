// The one file that sees NVTX's headers: their structures in, our words out.

#include <atomic>
#include <cstddef>
#include <cstdint>

#define NVTX_NO_IMPL 1
#include <nvtx3/nvToolsExt.h>

#include "collect/nvtx/nvtx_injection.h"
#include "collect/nvtx/nvtx_ranges.h"

namespace flopledger {
namespace {

std::atomic<int> clients{0};

NvtxDomain& DomainOf(nvtxDomainHandle_t handle) noexcept {
  return handle == nullptr ? NvtxNames::DefaultDomain() : *reinterpret_cast<NvtxDomain*>(handle);
}

// A client of an earlier NVTX may send a shorter structure.
template <typename Field>
bool Reaches(const nvtxEventAttributes_t& event, const Field& field) noexcept {
  const auto end =
      reinterpret_cast<const char*>(&field + 1) - reinterpret_cast<const char*>(&event);
  return event.size >= end;
}

NvtxMeaning MeaningOf(const NvtxRules& rules, const nvtxEventAttributes_t* event) noexcept {
  if (event == nullptr || !Reaches(*event, event->message)) return {};
  switch (event->messageType) {
    case NVTX_MESSAGE_TYPE_ASCII:
      return rules.Match(event->message.ascii);
    case NVTX_MESSAGE_TYPE_UNICODE:
      return rules.Match(event->message.unicode);
    case NVTX_MESSAGE_TYPE_REGISTERED:
      return NvtxNames::MeaningOf(event->message.registered);
    default:
      return {};
  }
}

NvtxPayload PayloadOf(const nvtxEventAttributes_t& event) noexcept {
  if (!Reaches(event, event.payload)) return std::nullopt;
  switch (event.payloadType) {
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT64:
      return static_cast<std::int64_t>(event.payload.ullValue);
    case NVTX_PAYLOAD_TYPE_INT64:
      return event.payload.llValue;
    case NVTX_PAYLOAD_TYPE_UNSIGNED_INT32:
      return event.payload.uiValue;
    case NVTX_PAYLOAD_TYPE_INT32:
      return event.payload.iValue;
    default:
      return std::nullopt;  // a fraction is neither a step nor a number of tokens
  }
}

FLOPLEDGER_HOT int PushEvent(NvtxDomain& domain, const nvtxEventAttributes_t* event) noexcept {
  const std::int32_t level = EnterNvtxLevel(domain);
  if (const NvtxRules* rules = domain.rules.load(std::memory_order_acquire)) {
    const NvtxMeaning meaning = MeaningOf(*rules, event);
    if (meaning.kind != NvtxMeaning::Kind::kNone) {
      BeginNvtxRange(domain, level, meaning, PayloadOf(*event));
    }
  }
  return level;
}

template <typename Char>
FLOPLEDGER_HOT int PushName(const Char* name) noexcept {
  NvtxDomain& domain = NvtxNames::DefaultDomain();
  const std::int32_t level = EnterNvtxLevel(domain);
  if (const NvtxRules* rules = domain.rules.load(std::memory_order_acquire)) {
    const NvtxMeaning meaning = rules->Match(name);
    if (meaning.kind != NvtxMeaning::Kind::kNone) {
      BeginNvtxRange(domain, level, meaning, std::nullopt);
    }
  }
  return level;
}

FLOPLEDGER_HOT nvtxRangeId_t StartEvent(const NvtxDomain& domain,
                                        const nvtxEventAttributes_t* event) noexcept {
  const NvtxRules* rules = domain.rules.load(std::memory_order_acquire);
  if (rules == nullptr) return kForeignNvtxRange;
  const NvtxMeaning meaning = MeaningOf(*rules, event);
  if (meaning.kind == NvtxMeaning::Kind::kNone) return kForeignNvtxRange;
  return StartNvtxRange(meaning, PayloadOf(*event));
}

template <typename Char>
FLOPLEDGER_HOT nvtxRangeId_t StartName(const Char* name) noexcept {
  const NvtxRules* rules = NvtxNames::DefaultDomain().rules.load(std::memory_order_acquire);
  return rules == nullptr ? kForeignNvtxRange : StartNvtxRange(rules->Match(name), std::nullopt);
}

FLOPLEDGER_HOT void MarkEvent(const NvtxDomain& domain,
                              const nvtxEventAttributes_t* event) noexcept {
  const NvtxRules* rules = domain.rules.load(std::memory_order_acquire);
  if (rules == nullptr) return;
  const NvtxMeaning meaning = MeaningOf(*rules, event);
  if (meaning.kind != NvtxMeaning::Kind::kNone) TakeNvtxMark(meaning, PayloadOf(*event));
}

// NVTX is C: what it calls must look like C, and nothing may be thrown into it.

void MarkEx(const nvtxEventAttributes_t* event) noexcept {
  MarkEvent(NvtxNames::DefaultDomain(), event);
}
nvtxRangeId_t RangeStartEx(const nvtxEventAttributes_t* event) noexcept {
  return StartEvent(NvtxNames::DefaultDomain(), event);
}
nvtxRangeId_t RangeStartA(const char* name) noexcept { return StartName(name); }
nvtxRangeId_t RangeStartW(const wchar_t* name) noexcept { return StartName(name); }
void RangeEnd(nvtxRangeId_t range) noexcept {
  if (range != kForeignNvtxRange) FinishNvtxRange(range);
}
int RangePushEx(const nvtxEventAttributes_t* event) noexcept {
  return PushEvent(NvtxNames::DefaultDomain(), event);
}
int RangePushA(const char* name) noexcept { return PushName(name); }
int RangePushW(const wchar_t* name) noexcept { return PushName(name); }
int RangePop() noexcept { return LeaveNvtxLevel(NvtxNames::DefaultDomain()); }

void DomainMarkEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) noexcept {
  MarkEvent(DomainOf(domain), event);
}
nvtxRangeId_t DomainRangeStartEx(nvtxDomainHandle_t domain,
                                 const nvtxEventAttributes_t* event) noexcept {
  return StartEvent(DomainOf(domain), event);
}
void DomainRangeEnd(nvtxDomainHandle_t, nvtxRangeId_t range) noexcept { RangeEnd(range); }
int DomainRangePushEx(nvtxDomainHandle_t domain, const nvtxEventAttributes_t* event) noexcept {
  return PushEvent(DomainOf(domain), event);
}
int DomainRangePop(nvtxDomainHandle_t domain) noexcept { return LeaveNvtxLevel(DomainOf(domain)); }

template <typename Char>
nvtxStringHandle_t RegisterString(nvtxDomainHandle_t domain, const Char* text) noexcept {
  const void* handle = NvtxNames::Global().Register(&DomainOf(domain), text);
  return reinterpret_cast<nvtxStringHandle_t>(const_cast<void*>(handle));
}
nvtxStringHandle_t RegisterStringA(nvtxDomainHandle_t domain, const char* text) noexcept {
  return RegisterString(domain, text);
}
nvtxStringHandle_t RegisterStringW(nvtxDomainHandle_t domain, const wchar_t* text) noexcept {
  return RegisterString(domain, text);
}

nvtxDomainHandle_t DomainCreateA(const char* name) noexcept {
  if (name == nullptr) return nullptr;
  return reinterpret_cast<nvtxDomainHandle_t>(NvtxNames::Global().Domain(name));
}
nvtxDomainHandle_t DomainCreateW(const wchar_t* name) noexcept {
  if (name == nullptr) return nullptr;
  char narrow[128];
  std::size_t length = 0;
  for (; name[length] != 0 && length < sizeof(narrow) - 1; ++length) {
    narrow[length] = name[length] > 0 && name[length] < 128 ? static_cast<char>(name[length]) : '?';
  }
  return reinterpret_cast<nvtxDomainHandle_t>(NvtxNames::Global().Domain({narrow, length}));
}

/// A module's table of slots; those that a client of another version lacks are left out.
struct Slots {
  NvtxFunctionTable table = nullptr;
  unsigned int size = 0;

  template <typename Function>
  void Fill(unsigned int slot, Function* function) const noexcept {
    if (slot < size && table[slot] != nullptr) {
      *table[slot] = reinterpret_cast<NvtxFunctionPointer>(function);
    }
  }
};

void FillCore(const Slots& slots) noexcept {
  slots.Fill(NVTX_CBID_CORE_MarkEx, &MarkEx);
  slots.Fill(NVTX_CBID_CORE_RangeStartEx, &RangeStartEx);
  slots.Fill(NVTX_CBID_CORE_RangeStartA, &RangeStartA);
  slots.Fill(NVTX_CBID_CORE_RangeStartW, &RangeStartW);
  slots.Fill(NVTX_CBID_CORE_RangeEnd, &RangeEnd);
  slots.Fill(NVTX_CBID_CORE_RangePushEx, &RangePushEx);
  slots.Fill(NVTX_CBID_CORE_RangePushA, &RangePushA);
  slots.Fill(NVTX_CBID_CORE_RangePushW, &RangePushW);
  slots.Fill(NVTX_CBID_CORE_RangePop, &RangePop);
}

void FillDomains(const Slots& slots) noexcept {
  slots.Fill(NVTX_CBID_CORE2_DomainMarkEx, &DomainMarkEx);
  slots.Fill(NVTX_CBID_CORE2_DomainRangeStartEx, &DomainRangeStartEx);
  slots.Fill(NVTX_CBID_CORE2_DomainRangeEnd, &DomainRangeEnd);
  slots.Fill(NVTX_CBID_CORE2_DomainRangePushEx, &DomainRangePushEx);
  slots.Fill(NVTX_CBID_CORE2_DomainRangePop, &DomainRangePop);
  slots.Fill(NVTX_CBID_CORE2_DomainRegisterStringA, &RegisterStringA);
  slots.Fill(NVTX_CBID_CORE2_DomainRegisterStringW, &RegisterStringW);
  slots.Fill(NVTX_CBID_CORE2_DomainCreateA, &DomainCreateA);
  slots.Fill(NVTX_CBID_CORE2_DomainCreateW, &DomainCreateW);
}

}  // namespace

bool AttachNvtxClient(const void* (*get_export_table)(std::uint32_t)) noexcept {
  if (get_export_table == nullptr) return false;
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_export_table(NVTX_ETID_CALLBACKS));
  if (callbacks == nullptr || callbacks->struct_size < sizeof(*callbacks)) return false;
  Slots core;
  Slots domains;
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE, &core.table, &core.size) == 0 ||
      callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &domains.table, &domains.size) == 0) {
    return false;
  }
  FillCore(core);
  FillDomains(domains);
  clients.fetch_add(1, std::memory_order_relaxed);
  return true;
}

int AttachedNvtxClients() noexcept { return clients.load(std::memory_order_relaxed); }

}  // namespace flopledger
