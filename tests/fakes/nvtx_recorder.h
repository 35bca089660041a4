#pragma once

#include <gtest/gtest.h>
#include <nvtx3/nvToolsExt.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/sync.h"
#include "collect/nvtx/nvtx_injection.h"

namespace flopledger::testing_support {

/// Writes down what it is told; a thread's own doings stay in order.
class Recorder final : public NvtxListener {
 public:
  bool BeginStep(std::optional<std::int64_t> number) noexcept override {
    steps_begun.fetch_add(1);
    Write("step " + (number ? std::to_string(*number) : std::string("?")));
    return take;
  }
  void EndStep(bool failed) noexcept override {
    steps_ended.fetch_add(1);
    Write(failed ? "step failed" : "step end");
  }
  bool BeginPhase(Phase phase, bool of_process) noexcept override {
    phases_begun.fetch_add(1);
    Write(std::string(ToString(phase)) + (of_process ? " of process" : ""));
    return take;
  }
  void EndPhase(Phase phase) noexcept override {
    phases_ended.fetch_add(1);
    Write(std::string(ToString(phase)) + " end");
  }
  void Tokens(std::int64_t useful) noexcept override { Write("tokens " + std::to_string(useful)); }

  std::vector<std::string> Take() {
    MutexLock lock(mutex_);
    return std::exchange(lines_, {});
  }

  std::atomic<bool> take{true};
  std::atomic<bool> quiet{false};
  std::atomic<int> steps_begun{0};
  std::atomic<int> steps_ended{0};
  std::atomic<int> phases_begun{0};
  std::atomic<int> phases_ended{0};

 private:
  void Write(std::string line) {
    if (quiet.load()) return;
    MutexLock lock(mutex_);
    lines_.push_back(std::move(line));
  }
  Mutex mutex_;
  std::vector<std::string> lines_ FLOPLEDGER_GUARDED_BY(mutex_);
};

inline nvtxEventAttributes_t Event(const char* message) {
  nvtxEventAttributes_t event = {};
  event.version = NVTX_VERSION;
  event.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  event.messageType = NVTX_MESSAGE_TYPE_ASCII;
  event.message.ascii = message;
  return event;
}

inline nvtxEventAttributes_t Event(const char* message, std::int64_t payload) {
  nvtxEventAttributes_t event = Event(message);
  event.payloadType = NVTX_PAYLOAD_TYPE_INT64;
  event.payload.llValue = payload;
  return event;
}

/// A real client of NVTX, and a listener that writes down what it hears.
struct NvtxTest : testing::Test {
  void Listen(const char* steps = "", const char* phases = "") {
    listening.reset();
    listening = NvtxListening::Create(recorder, *NvtxRuleBook::Create(steps, phases));
    ASSERT_NE(listening, nullptr);
  }
  int Push(const char* name) const {
    const nvtxEventAttributes_t event = Event(name);
    return nvtxDomainRangePushEx(ours, &event);
  }
  int Push(const char* name, std::int64_t payload) const {
    const nvtxEventAttributes_t event = Event(name, payload);
    return nvtxDomainRangePushEx(ours, &event);
  }
  int Pop() const { return nvtxDomainRangePop(ours); }

  nvtxDomainHandle_t ours = nvtxDomainCreateA("flopledger");
  nvtxDomainHandle_t foreign = nvtxDomainCreateA("somebody");
  std::shared_ptr<Recorder> recorder = std::make_shared<Recorder>();
  std::unique_ptr<NvtxListening> listening;
};

}  // namespace flopledger::testing_support
