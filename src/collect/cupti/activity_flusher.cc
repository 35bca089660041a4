#include "collect/cupti/activity_flusher.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <utility>

#include "base/clock.h"
#include "collect/cupti/activity_decoder.h"

namespace flopledger {
namespace {

// How late a boundary is noticed. A wake-up from the training thread would cost it a system call.
constexpr std::chrono::milliseconds kTick{10};
// How long buffers are waited for at the end, in milliseconds.
constexpr int kReturnTurns = 200;
}  // namespace

ActivityFlusher::ActivityFlusher(CuptiApi* api, ActivityBufferPool* pool, bool reclaim)
    : api_(api),
      pool_(pool),
      reclaim_below_(reclaim ? std::min<std::int64_t>(4, pool->free() / 4) : 0) {}

void ActivityFlusher::FlushOnce() noexcept {
  Reclaim();
  const bool flushed = api_->FlushAll() == CUPTI_SUCCESS;
  if (flushed) {
    failures_.store(0, std::memory_order_release);
  } else {
    failures_.fetch_add(1, std::memory_order_acq_rel);
  }
  // An error here is not "nothing was dropped".
  std::size_t dropped = 0;
  if (api_->Dropped(&dropped) == CUPTI_SUCCESS) {
    dropped_.fetch_add(static_cast<std::int64_t>(dropped), std::memory_order_relaxed);
  } else {
    uncounted_.fetch_add(1, std::memory_order_relaxed);
  }
  flushes_.fetch_add(1, std::memory_order_release);
}

void ActivityFlusher::Reclaim() noexcept {
  ActivityBufferPool::Completed completed;
  while (pool_->free() < reclaim_below_ && pool_->Pop(&completed)) {
    given_up_.fetch_add(ActivityDecoder::CountRecords(*api_, completed.buffer, completed.valid),
                        std::memory_order_relaxed);
    pool_->Recycle(completed);
  }
}

ActivityFlusher::Losses ActivityFlusher::TakeLosses() noexcept {
  return {.dropped = dropped_.exchange(0, std::memory_order_relaxed),
          .given_up = given_up_.exchange(0, std::memory_order_relaxed),
          .uncounted = uncounted_.exchange(0, std::memory_order_relaxed)};
}

bool ActivityFlusher::StartThread(std::int64_t interval_ms) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);  // the host's handlers run on the host's threads
  try {
    thread_ = std::thread([this, interval_ms] { Loop(interval_ms); });
    pthread_setname_np(thread_.native_handle(), "flopledger-gpu");
  } catch (...) {
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return thread_.joinable();
}

void ActivityFlusher::Loop(std::int64_t interval_ms) noexcept {
  std::int64_t last_ns = SystemClock::Now();
  std::int64_t last_boundaries = 0;
  std::unique_lock lock(mutex_);
  for (;;) {
    const bool stop = changed_.wait_for(lock, kTick, [this] { return stop_; });
    lock.unlock();
    const std::int64_t now = SystemClock::Now();
    const std::int64_t boundaries = boundaries_.load(std::memory_order_relaxed);
    if (stop && last_) last_();
    const bool due =
        stop || boundaries != last_boundaries || now - last_ns >= interval_ms * 1'000'000;
    if (due && active_.load(std::memory_order_acquire)) {
      last_ns = now;
      last_boundaries = boundaries;
      FlushOnce();
    } else {
      Reclaim();
    }
    lock.lock();
    if (stop) break;
  }
  lock.unlock();
  // Completed buffers may come from another thread of the library, after the flush.
  for (int turn = 0; turn < kReturnTurns && pool_->outstanding() != 0; ++turn) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  lock.lock();
  ended_ = true;
  changed_.notify_all();
}

bool ActivityFlusher::StopThread(std::function<void()> last, std::int64_t limit_ms) {
  {
    std::unique_lock lock(mutex_);
    last_ = std::move(last);
    stop_ = true;
    changed_.notify_all();
    if (!changed_.wait_for(lock, std::chrono::milliseconds(limit_ms), [this] { return ended_; })) {
      thread_.detach();
      return false;
    }
  }
  thread_.join();
  return true;
}

}  // namespace flopledger
