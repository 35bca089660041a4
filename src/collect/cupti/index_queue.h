#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/sync.h"

namespace flopledger {

/// Indices on a stack that any thread pushes to and pops from, without lock or heap. Each index is
/// on it at most once. The tag in the head's upper half keeps a popped and re-pushed index from
/// being taken for the old head.
class IndexStack {
 public:
  explicit IndexStack(std::size_t capacity)
      : next_(std::make_unique<std::atomic<std::uint32_t>[]>(capacity)) {}

  FLOPLEDGER_HOT void Push(std::uint32_t index) noexcept {
    std::uint64_t head = head_.load(std::memory_order_relaxed);
    std::uint64_t desired = 0;
    do {
      next_[index].store(static_cast<std::uint32_t>(head), std::memory_order_relaxed);
      desired = (((head >> 32) + 1) << 32) | (index + 1);
    } while (!head_.compare_exchange_weak(head, desired, std::memory_order_acq_rel,
                                          std::memory_order_relaxed));
    size_.fetch_add(1, std::memory_order_relaxed);
  }

  FLOPLEDGER_HOT bool Pop(std::uint32_t* index) noexcept {
    std::uint64_t head = head_.load(std::memory_order_acquire);
    for (;;) {
      const auto top = static_cast<std::uint32_t>(head);
      if (top == 0) return false;
      const std::uint32_t next = next_[top - 1].load(std::memory_order_relaxed);
      const std::uint64_t desired = (((head >> 32) + 1) << 32) | next;
      if (head_.compare_exchange_weak(head, desired, std::memory_order_acq_rel,
                                      std::memory_order_acquire)) {
        size_.fetch_sub(1, std::memory_order_relaxed);
        *index = top - 1;
        return true;
      }
    }
  }

  /// About: others push and pop meanwhile.
  std::int64_t size() const noexcept { return size_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> head_{0};  // tag, and 1 + index; 0: empty
  const std::unique_ptr<std::atomic<std::uint32_t>[]> next_;
  std::atomic<std::int64_t> size_{0};
};

/// Indices in the order in which they came, from many threads to many, without lock or heap. As
/// large as there are indices, so that it is never full.
class IndexQueue {
 public:
  explicit IndexQueue(std::size_t capacity)
      : mask_(std::bit_ceil(capacity < 2 ? 2 : capacity) - 1),
        cells_(std::make_unique<Cell[]>(mask_ + 1)) {}

  FLOPLEDGER_HOT void Push(std::uint32_t index) noexcept {
    // A place is taken by counting up and opened by its turn. It is free: there are as many places
    // as indices, so what stood here a lap ago was popped.
    const std::size_t position = write_.fetch_add(1, std::memory_order_relaxed);
    Cell& cell = cells_[position & mask_];
    cell.index.store(index, std::memory_order_relaxed);
    cell.turn.store(position + 1, std::memory_order_release);
  }

  bool Pop(std::uint32_t* index) noexcept {
    std::size_t position = read_.load(std::memory_order_acquire);
    for (;;) {
      const Cell& cell = cells_[position & mask_];
      const std::size_t turn = cell.turn.load(std::memory_order_acquire);
      const auto ahead = static_cast<std::ptrdiff_t>(turn - (position + 1));
      if (ahead < 0) return false;  // empty, or its writer has not opened it yet
      // Read before the position is taken: afterwards a writer of the next lap may be here.
      const std::uint32_t found = cell.index.load(std::memory_order_relaxed);
      if (ahead == 0 &&
          read_.compare_exchange_weak(position, position + 1, std::memory_order_acq_rel)) {
        *index = found;
        return true;
      }
      if (ahead > 0) position = read_.load(std::memory_order_acquire);
    }
  }

 private:
  struct Cell {
    std::atomic<std::size_t> turn{0};
    std::atomic<std::uint32_t> index{0};
  };
  const std::size_t mask_;
  const std::unique_ptr<Cell[]> cells_;
  alignas(64) std::atomic<std::size_t> write_{0};
  alignas(64) std::atomic<std::size_t> read_{0};
};

}  // namespace flopledger
