#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

namespace flopledger {

/// An array of plain records that grows by millions. A vector holds the old and the new block while
/// it copies; here the allocator moves the pages of a large block, so the peak is the array itself.
///
/// Thread: one. Fails: std::bad_alloc.
template <typename T>
class GrowingArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  void push_back(const T& value) {
    if (size_ == capacity_) Grow();
    new (data_.get() + size_) T(value);
    ++size_;
  }
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data_.get(); }
  T* end() { return data_.get() + size_; }
  const T* begin() const { return data_.get(); }
  const T* end() const { return data_.get() + size_; }
  T& operator[](std::size_t i) { return data_.get()[i]; }
  const T& operator[](std::size_t i) const { return data_.get()[i]; }
  /// Keeps the first `size` records, and no memory for more.
  void Truncate(std::size_t size) {
    if (size == 0) return Free();
    if (size >= size_) return;
    Resize(size);
    size_ = size;
  }
  void Free() {
    data_.reset();
    size_ = capacity_ = 0;
  }

 private:
  struct Release {
    void operator()(T* block) const { std::free(block); }
  };

  void Grow() { Resize(capacity_ == 0 ? 1024 : capacity_ + capacity_ / 2); }

  void Resize(std::size_t capacity) {
    // The old block is gone only if there is a new one.
    void* const block = std::realloc(static_cast<void*>(data_.get()), capacity * sizeof(T));
    if (block == nullptr) throw std::bad_alloc();
    static_cast<void>(data_.release());
    data_.reset(static_cast<T*>(block));
    capacity_ = capacity;
  }

  std::unique_ptr<T, Release> data_;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

}  // namespace flopledger
