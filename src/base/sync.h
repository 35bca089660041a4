#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <memory>
#include <mutex>

#define FLOPLEDGER_HOT __attribute__((hot))

#if defined(__clang__)
#define FLOPLEDGER_THREAD_ANNOTATION(x) __attribute__((x))
#else
#define FLOPLEDGER_THREAD_ANNOTATION(x)
#endif
#define FLOPLEDGER_GUARDED_BY(x) FLOPLEDGER_THREAD_ANNOTATION(guarded_by(x))
#define FLOPLEDGER_NO_THREAD_SAFETY_ANALYSIS FLOPLEDGER_THREAD_ANNOTATION(no_thread_safety_analysis)
#define FLOPLEDGER_REQUIRES(x) FLOPLEDGER_THREAD_ANNOTATION(requires_capability(x))

namespace flopledger {

/// std::mutex with the annotations that clang's thread-safety analysis needs.
class FLOPLEDGER_THREAD_ANNOTATION(capability("mutex")) Mutex {
 public:
  void lock() FLOPLEDGER_THREAD_ANNOTATION(acquire_capability()) { mutex_.lock(); }
  void unlock() FLOPLEDGER_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }
  /// For std::condition_variable, which wants the plain type.
  std::mutex& native() { return mutex_; }

 private:
  std::mutex mutex_;
};

class FLOPLEDGER_THREAD_ANNOTATION(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) FLOPLEDGER_THREAD_ANNOTATION(acquire_capability(mutex))
      : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() FLOPLEDGER_THREAD_ANNOTATION(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

/// Bounded ring between one writer and one reader. Full: the value is refused and the writer counts
/// it. A position is written by its owner alone; each side remembers the other's last known
/// position and looks again only when it would have to stop.
///
///     SpscRing<Slot> ring(4096);
///     if (!ring.TryPush(slot)) ++lost;
///     Slot out;
///     while (ring.TryPop(&out)) ...
///
/// Thread: one writer, one reader. Fails: never; `T` is trivially copyable.
template <typename T>
class SpscRing {
 public:
  explicit SpscRing(std::size_t capacity)
      : mask_(std::bit_ceil(capacity < 2 ? 2 : capacity) - 1),
        slots_(std::make_unique<T[]>(mask_ + 1)) {}

  std::size_t capacity() const { return mask_ + 1; }

  FLOPLEDGER_HOT bool TryPush(const T& value) noexcept {
    const std::size_t position = write_.load(std::memory_order_relaxed);
    if (position - known_read_ > mask_) {
      known_read_ = read_.load(std::memory_order_acquire);
      if (position - known_read_ > mask_) return false;
    }
    slots_[position & mask_] = value;
    write_.store(position + 1, std::memory_order_release);
    return true;
  }

  FLOPLEDGER_HOT bool TryPop(T* out) noexcept {
    const std::size_t position = read_.load(std::memory_order_relaxed);
    if (position == known_write_) {
      known_write_ = write_.load(std::memory_order_acquire);
      if (position == known_write_) return false;
    }
    *out = slots_[position & mask_];
    read_.store(position + 1, std::memory_order_release);
    return true;
  }

 private:
  static_assert(std::is_trivially_copyable_v<T>);
  const std::size_t mask_;
  const std::unique_ptr<T[]> slots_;
  alignas(64) std::atomic<std::size_t> write_{0};
  std::size_t known_read_ = 0;  // the writer's
  alignas(64) std::atomic<std::size_t> read_{0};
  std::size_t known_write_ = 0;  // the reader's
};

}  // namespace flopledger
