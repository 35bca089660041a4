#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/sync.h"
#include "collect/cupti/index_queue.h"

namespace flopledger {

/// The activity buffers: one mapping, cut into equal pieces, in the order free -> taken by the
/// library -> completed -> drained and free again. Pieces beyond `buffers` are spare: untouched
/// address space until needed, given back to the system afterwards.
///
///     std::uint8_t* buffer = pool->Take();              // request callback
///     pool->Complete(buffer, valid_bytes);              // completion callback
///     while (pool->Pop(&completed)) { ...; pool->Recycle(completed); }
///
/// Thread: any; `Take` and `Complete` without lock, heap or system call.
/// Ownership: taken buffers are the library's; while there are any the pool must not be destroyed.
class ActivityBufferPool {
 public:
  struct Completed {
    std::uint8_t* buffer = nullptr;
    std::size_t valid = 0;
  };

  /// Null: the address space was refused.
  static std::unique_ptr<ActivityBufferPool> Create(std::size_t buffer_bytes, std::size_t buffers,
                                                    std::size_t spares);
  ~ActivityBufferPool();
  ActivityBufferPool(const ActivityBufferPool&) = delete;
  ActivityBufferPool& operator=(const ActivityBufferPool&) = delete;

  /// A zeroed buffer, or null when all are in use.
  FLOPLEDGER_HOT std::uint8_t* Take() noexcept;
  /// For libraries that crash on null: gives up the content of a completed buffer, whose records
  /// are then lost without a count. Null only when every buffer is in the library's hands.
  std::uint8_t* TakeCompleted() noexcept;
  /// False: the buffer is not one of this pool's, or not in the library's hands.
  FLOPLEDGER_HOT bool Complete(const std::uint8_t* buffer, std::size_t valid) noexcept;
  bool Pop(Completed* completed) noexcept;
  void Recycle(const Completed& completed) noexcept;

  std::size_t buffer_bytes() const { return buffer_bytes_; }
  std::int64_t outstanding() const noexcept { return outstanding_.load(std::memory_order_acquire); }
  /// Buffers that `Take` could hand out, about.
  std::int64_t free() const noexcept { return free_.size() + free_spares_.size(); }
  /// Bytes of the pool proper and of the spares in use.
  std::int64_t bytes_in_use() const noexcept;

 private:
  ActivityBufferPool(std::uint8_t* memory, std::size_t buffer_bytes, std::size_t buffers,
                     std::size_t spares);
  std::uint8_t* Hand(std::uint32_t index) noexcept;
  std::uint8_t* At(std::uint32_t index) const { return memory_ + index * buffer_bytes_; }

  enum State : std::uint8_t { kFree, kTaken, kCompleted };
  struct Slot {
    std::atomic<std::uint8_t> state{kFree};
    std::size_t valid = 0;  // written by the completer, read by the one that pops
  };

  std::uint8_t* const memory_;
  const std::size_t buffer_bytes_;
  const std::size_t buffers_;
  const std::size_t total_;
  const std::unique_ptr<Slot[]> slots_;
  IndexStack free_;
  IndexStack free_spares_;
  IndexQueue completed_;  // oldest first
  std::atomic<std::int64_t> used_spares_{0};
  alignas(64) std::atomic<std::int64_t> outstanding_{0};
};

}  // namespace flopledger
