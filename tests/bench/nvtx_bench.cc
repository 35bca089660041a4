// What an NVTX range costs where flopledger listens: one push and its pop, by a real client through
// the shared library, as NVTX opens it.

#include <benchmark/benchmark.h>
#include <nvtx3/nvToolsExt.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "flopledger/session.h"

// Of nvtx_unheard.cc: a copy of NVTX that found no listener.
extern "C" void PushAndPopUnheard();

namespace flopledger {
namespace {

constexpr int kStepsBetweenPumps = 500;

std::unique_ptr<Session> Start(const char* steps) {
  SessionOptions options;
  options.log_level = "off";
  options.log_every_steps = 0;
  options.host_ops = false;
  options.http.enabled = false;
  options.manual_pump = true;
  options.nvtx.steps = steps;
  return *Session::Create(std::move(options));
}

nvtxEventAttributes_t Event(const char* message) {
  nvtxEventAttributes_t event = {};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = message;
  return event;
}

void NvtxRangeWithoutListener(benchmark::State& state) {
  PushAndPopUnheard();
  for (auto _ : state) PushAndPopUnheard();
}
BENCHMARK(NvtxRangeWithoutListener);

void NvtxRangeWithoutSession(benchmark::State& state) {
  ClaimNvtx();
  for (auto _ : state) {
    nvtxRangePushA("aten::mm");
    nvtxRangePop();
  }
}
BENCHMARK(NvtxRangeWithoutSession);

void NvtxRangeOfForeignDomain(benchmark::State& state) {
  const auto session = Start("step*");
  nvtxDomainHandle_t domain = nvtxDomainCreateA("NCCL");
  const nvtxEventAttributes_t event = Event("ncclAllReduce");
  for (auto _ : state) {
    nvtxDomainRangePushEx(domain, &event);
    nvtxDomainRangePop(domain);
  }
}
BENCHMARK(NvtxRangeOfForeignDomain);

void NvtxRangeFilteredByName(benchmark::State& state) {
  const auto session = Start("step*,ProfilerStep*");
  for (auto _ : state) {
    nvtxRangePushA("aten::mm");
    nvtxRangePop();
  }
}
BENCHMARK(NvtxRangeFilteredByName);

void NvtxRangeFilteredByRegisteredName(benchmark::State& state) {
  const auto session = Start("step*,ProfilerStep*");
  nvtxEventAttributes_t event = Event("");
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = nvtxDomainRegisterStringA(nullptr, "aten::mm");
  for (auto _ : state) {
    nvtxRangePushEx(&event);
    nvtxRangePop();
  }
}
BENCHMARK(NvtxRangeFilteredByRegisteredName);

void NvtxRangeOfStep(benchmark::State& state) {
  const auto session = Start("");
  nvtxDomainHandle_t domain = nvtxDomainCreateA("flopledger");
  nvtxEventAttributes_t event = Event("step");
  event.payloadType = NVTX_PAYLOAD_TYPE_INT64;
  int taken = 0;
  for (auto _ : state) {
    ++event.payload.llValue;
    nvtxDomainRangePushEx(domain, &event);
    nvtxDomainRangePop(domain);
    if (++taken == kStepsBetweenPumps) {
      state.PauseTiming();
      session->PumpOnce();
      taken = 0;
      state.ResumeTiming();
    }
  }
  session->PumpOnce();
  session->PumpOnce();  // a step closes one drain after the next one's boundary
  if (state.iterations() > 1 && session->LastReport() == nullptr) {
    state.SkipWithError("no step arrived");
  }
}
BENCHMARK(NvtxRangeOfStep);

}  // namespace
}  // namespace flopledger
