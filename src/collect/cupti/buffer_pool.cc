#include "collect/cupti/buffer_pool.h"

#include <sys/mman.h>

#include <cstring>

namespace flopledger {

std::unique_ptr<ActivityBufferPool> ActivityBufferPool::Create(std::size_t buffer_bytes,
                                                               std::size_t buffers,
                                                               std::size_t spares) {
  void* memory = mmap(nullptr, buffer_bytes * (buffers + spares), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  return std::unique_ptr<ActivityBufferPool>(
      new ActivityBufferPool(static_cast<std::uint8_t*>(memory), buffer_bytes, buffers, spares));
}

ActivityBufferPool::ActivityBufferPool(std::uint8_t* memory, std::size_t buffer_bytes,
                                       std::size_t buffers, std::size_t spares)
    : memory_(memory),
      buffer_bytes_(buffer_bytes),
      buffers_(buffers),
      total_(buffers + spares),
      slots_(std::make_unique<Slot[]>(total_)),
      free_(total_),
      free_spares_(total_),
      completed_(total_) {
  for (std::size_t i = total_; i-- > 0;) {
    (i < buffers_ ? free_ : free_spares_).Push(static_cast<std::uint32_t>(i));
  }
}

ActivityBufferPool::~ActivityBufferPool() { munmap(memory_, buffer_bytes_ * total_); }

std::uint8_t* ActivityBufferPool::Hand(std::uint32_t index) noexcept {
  slots_[index].state.store(kTaken, std::memory_order_release);
  outstanding_.fetch_add(1, std::memory_order_acq_rel);
  return At(index);
}

std::uint8_t* ActivityBufferPool::Take() noexcept {
  std::uint32_t index = 0;
  if (free_.Pop(&index)) return Hand(index);
  if (!free_spares_.Pop(&index)) return nullptr;
  used_spares_.fetch_add(1, std::memory_order_relaxed);
  return Hand(index);
}

std::uint8_t* ActivityBufferPool::TakeCompleted() noexcept {
  std::uint32_t index = 0;
  if (!completed_.Pop(&index)) return nullptr;
  std::memset(At(index), 0, buffer_bytes_);
  return Hand(index);
}

bool ActivityBufferPool::Complete(const std::uint8_t* buffer, std::size_t valid) noexcept {
  if (buffer < memory_ || buffer >= memory_ + buffer_bytes_ * total_) return false;
  const auto offset = static_cast<std::size_t>(buffer - memory_);
  if (offset % buffer_bytes_ != 0) return false;
  const auto index = static_cast<std::uint32_t>(offset / buffer_bytes_);
  Slot& slot = slots_[index];
  std::uint8_t taken = kTaken;
  if (!slot.state.compare_exchange_strong(taken, kCompleted, std::memory_order_acq_rel)) {
    return false;
  }
  slot.valid = valid < buffer_bytes_ ? valid : buffer_bytes_;
  completed_.Push(index);
  outstanding_.fetch_sub(1, std::memory_order_acq_rel);
  return true;
}

bool ActivityBufferPool::Pop(Completed* completed) noexcept {
  std::uint32_t index = 0;
  if (!completed_.Pop(&index)) return false;
  *completed = {.buffer = At(index), .valid = slots_[index].valid};
  return true;
}

void ActivityBufferPool::Recycle(const Completed& completed) noexcept {
  const auto index = static_cast<std::uint32_t>(
      static_cast<std::size_t>(completed.buffer - memory_) / buffer_bytes_);
  slots_[index].state.store(kFree, std::memory_order_release);
  if (index >= buffers_) {
    madvise(completed.buffer, buffer_bytes_, MADV_DONTNEED);  // reads as zero afterwards
    used_spares_.fetch_sub(1, std::memory_order_relaxed);
    free_spares_.Push(index);
    return;
  }
  // The library was told that it gets zeroed buffers. What it wrote may end beyond `valid`.
  std::memset(completed.buffer, 0, buffer_bytes_);
  free_.Push(index);
}

std::int64_t ActivityBufferPool::bytes_in_use() const noexcept {
  return (static_cast<std::int64_t>(buffers_) + used_spares_.load(std::memory_order_relaxed)) *
         static_cast<std::int64_t>(buffer_bytes_);
}

}  // namespace flopledger
