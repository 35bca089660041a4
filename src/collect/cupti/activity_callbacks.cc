#include "collect/cupti/activity_callbacks.h"

#include <sched.h>

namespace flopledger {
namespace {

std::atomic<CallbackTarget*> connected{nullptr};
std::atomic<std::int64_t> callbacks_inside{0};
std::atomic<bool> null_is_fatal{false};

// For a library that crashes on null when nothing else is left: never read, never ours.
constexpr std::size_t kLastResortBytes = 8192;
alignas(8) std::uint8_t last_resort[kLastResortBytes];

// Counts itself in before it reads the target, so that Disconnect sees whoever may use it.
class Inside {
 public:
  Inside() noexcept {
    callbacks_inside.fetch_add(1, std::memory_order_seq_cst);
    target_ = connected.load(std::memory_order_seq_cst);
  }
  ~Inside() { callbacks_inside.fetch_sub(1, std::memory_order_release); }
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  CallbackTarget* target() const { return target_; }

 private:
  CallbackTarget* target_ = nullptr;
};

void OnRequest(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records) noexcept {
  *buffer = nullptr;
  *size = 0;
  *max_records = 0;  // as many as fit
  const Inside inside;
  if (inside.target() != nullptr) {
    inside.target()->Request(buffer, size);
  } else if (null_is_fatal.load(std::memory_order_relaxed)) {
    *buffer = last_resort;
    *size = kLastResortBytes;
  }
}

void OnComplete(const std::uint8_t* buffer, std::size_t valid) noexcept {
  const Inside inside;
  if (inside.target() != nullptr) inside.target()->Complete(buffer, valid);
}

void CUPTIAPI RequestV1(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records) {
  OnRequest(buffer, size, max_records);
}
void CUPTIAPI CompleteV1(CUcontext, std::uint32_t, std::uint8_t* buffer, std::size_t,
                         std::size_t valid) {
  OnComplete(buffer, valid);
}
void RequestV2(std::uint8_t** buffer, std::size_t* size, std::size_t* max_records, void*) {
  OnRequest(buffer, size, max_records);
}
void CompleteV2(std::uint8_t* buffer, std::size_t, std::size_t valid, void*) {
  OnComplete(buffer, valid);
}

}  // namespace

bool CallbackTarget::Connect() noexcept {
  CallbackTarget* none = nullptr;
  if (!connected.compare_exchange_strong(none, this, std::memory_order_seq_cst))
    return none == this;
  null_is_fatal.store(!null_allowed_, std::memory_order_relaxed);
  return true;
}

bool CallbackTarget::Disconnect() noexcept {
  CallbackTarget* self = this;
  connected.compare_exchange_strong(self, nullptr, std::memory_order_seq_cst);
  for (int turn = 0; turn < 100'000; ++turn) {
    if (callbacks_inside.load(std::memory_order_seq_cst) == 0) return true;
    sched_yield();
  }
  return false;
}

CUptiResult CallbackTarget::Register(CuptiApi& api) noexcept {
  return api.Register(&RequestV1, &CompleteV1, &RequestV2, &CompleteV2);
}

void CallbackTarget::BecomeInert() noexcept { connected.store(nullptr, std::memory_order_seq_cst); }

void CallbackTarget::Request(std::uint8_t** buffer, std::size_t* size) noexcept {
  *buffer = pool_->Take();
  *size = pool_->buffer_bytes();
  if (*buffer != nullptr) return;
  refused_.fetch_add(1, std::memory_order_relaxed);
  if (null_allowed_) {
    *size = 0;
    return;
  }
  discarded_.fetch_add(1, std::memory_order_relaxed);
  *buffer = pool_->TakeCompleted();
  if (*buffer != nullptr) return;
  *buffer = last_resort;
  *size = kLastResortBytes;
}

void CallbackTarget::Complete(const std::uint8_t* buffer, std::size_t valid) noexcept {
  pool_->Complete(buffer, valid);
}

}  // namespace flopledger
