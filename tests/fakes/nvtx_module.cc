// A shared library with its own copy of NVTX, as every module of a framework has one. Built twice.

#include <nvtx3/nvToolsExt.h>

#include <cstdint>

#define FLOPLEDGER_TEST_EXPORT __attribute__((visibility("default")))
#define FLOPLEDGER_JOIN2(a, b) a##b
#define FLOPLEDGER_JOIN(a, b) FLOPLEDGER_JOIN2(a, b)
#define FLOPLEDGER_NAME(name) FLOPLEDGER_JOIN(FLOPLEDGER_TEST_MODULE, name)

namespace {

nvtxEventAttributes_t Event(const char* message) {
  nvtxEventAttributes_t event = {};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = nvtxDomainRegisterStringA(nvtxDomainCreateA("flopledger"), message);
  return event;
}

}  // namespace

extern "C" {

FLOPLEDGER_TEST_EXPORT void FLOPLEDGER_NAME(_push)(const char* name) {
  const nvtxEventAttributes_t event = Event(name);
  nvtxDomainRangePushEx(nvtxDomainCreateA("flopledger"), &event);
}

FLOPLEDGER_TEST_EXPORT void FLOPLEDGER_NAME(_pop)() {
  nvtxDomainRangePop(nvtxDomainCreateA("flopledger"));
}

FLOPLEDGER_TEST_EXPORT void FLOPLEDGER_NAME(_tokens)(std::int64_t useful) {
  nvtxEventAttributes_t event = Event("tokens");
  event.payloadType = NVTX_PAYLOAD_TYPE_INT64;
  event.payload.llValue = useful;
  nvtxDomainMarkEx(nvtxDomainCreateA("flopledger"), &event);
}

}  // extern "C"
