#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>

#include "collect/cupti/activity_callbacks.h"
#include "collect/cupti/buffer_pool.h"
#include "collect/cupti/cupti_api.h"

namespace flopledger {

/// Asks the library for its finished buffers and for what it dropped: every interval, once after
/// each step boundary, and when an old library is about to run out of buffers. Never forced: that
/// loses the kernels that still run.
///
///     flusher.StartThread(250);
///     flusher.NoteBoundary();              // training thread: one counter
///     ActivityFlusher::Losses lost = flusher.TakeLosses();
///     flusher.StopThread(disable_kinds, limit);
///
/// Thread: its own; `NoteBoundary` any. No lock of ours is held while the library works: it calls
/// back, and other threads of the process wait inside it.
class ActivityFlusher {
 public:
  struct Losses {
    std::int64_t dropped = 0;    ///< as the library counted them
    std::int64_t given_up = 0;   ///< records of buffers that had to be reused unread
    std::int64_t uncounted = 0;  ///< times that nobody could say how many
  };

  /// `reclaim`: null is fatal to the library, so completed buffers are given up before it comes to
  /// that.
  ActivityFlusher(CuptiApi* api, ActivityBufferPool* pool, bool reclaim);
  ActivityFlusher(const ActivityFlusher&) = delete;
  ActivityFlusher& operator=(const ActivityFlusher&) = delete;

  void NoteBoundary() noexcept { boundaries_.fetch_add(1, std::memory_order_relaxed); }
  /// Off: the library is left alone, as another tool is at work with it.
  void SetActive(bool active) noexcept { active_.store(active, std::memory_order_release); }
  void FlushOnce() noexcept;
  void Reclaim() noexcept;

  /// False: no thread could be made; the caller flushes itself.
  bool StartThread(std::int64_t interval_ms);
  bool has_thread() const { return thread_.joinable(); }
  /// Lets the thread run `last`, flush once more and end. False: it did not within the limit and is
  /// left behind; then this object must never be destroyed.
  bool StopThread(std::function<void()> last, std::int64_t limit_ms);

  Losses TakeLosses() noexcept;
  std::int64_t flushes() const noexcept { return flushes_.load(std::memory_order_acquire); }
  /// Refused flushes since the last one that was not.
  std::int64_t failures_in_a_row() const noexcept {
    return failures_.load(std::memory_order_acquire);
  }

 private:
  void Loop(std::int64_t interval_ms) noexcept;

  CuptiApi* const api_;
  ActivityBufferPool* const pool_;
  const std::int64_t reclaim_below_;  // free buffers; 0: never
  std::atomic<bool> active_{false};
  std::atomic<std::int64_t> boundaries_{0};
  std::atomic<std::int64_t> flushes_{0};
  std::atomic<std::int64_t> failures_{0};
  std::atomic<std::int64_t> dropped_{0};
  std::atomic<std::int64_t> given_up_{0};
  std::atomic<std::int64_t> uncounted_{0};

  std::mutex mutex_;  // of the two flags below and nothing else
  std::condition_variable changed_;
  bool stop_ = false;
  bool ended_ = false;
  std::function<void()> last_;
  std::thread thread_;
};

}  // namespace flopledger
