#pragma once

#include <atomic>
#include <cstdint>

#include "collect/cupti/buffer_pool.h"
#include "collect/cupti/cupti_api.h"

namespace flopledger {

/// Where the library's two callbacks lead. They have no argument, so a process has one target at a
/// time; without one, requests are refused and completed buffers stay where they are.
///
///     if (!target.Connect()) ...  // another one is connected
///     target.Register(api);
///
/// Thread: the callbacks on any thread, at any time, also after `Disconnect`; they take no lock and
/// no memory. Ownership: `pool` and the target outlive the connection.
class CallbackTarget {
 public:
  /// `null_allowed`: false for libraries that crash when a buffer is refused.
  CallbackTarget(ActivityBufferPool* pool, bool null_allowed)
      : pool_(pool), null_allowed_(null_allowed) {}

  bool Connect() noexcept;
  /// False: a callback is still inside after a bounded wait, so nothing may be freed.
  bool Disconnect() noexcept;
  static CUptiResult Register(CuptiApi& api) noexcept;
  /// In a forked child: the callbacks do nothing any more.
  static void BecomeInert() noexcept;

  /// Requests that the empty pool could not serve.
  std::int64_t refused() const noexcept { return refused_.load(std::memory_order_relaxed); }
  /// Buffers whose content was given up in a callback, its records uncounted.
  std::int64_t discarded() const noexcept { return discarded_.load(std::memory_order_relaxed); }

  FLOPLEDGER_HOT void Request(std::uint8_t** buffer, std::size_t* size) noexcept;
  FLOPLEDGER_HOT void Complete(const std::uint8_t* buffer, std::size_t valid) noexcept;

 private:
  ActivityBufferPool* const pool_;
  const bool null_allowed_;
  std::atomic<std::int64_t> refused_{0};
  std::atomic<std::int64_t> discarded_{0};
};

}  // namespace flopledger
