#pragma once

#include <memory>
#include <utility>

#include "base/sync.h"

namespace flopledger {

/// The last published value of something: one writer swaps it, readers take it. The lock is held
/// for the copy of a pointer, so that nobody waits for anybody's work.
///
/// Thread: any. Ownership: shared with whoever still reads an older value.
template <typename T>
class Snapshot {
 public:
  void Set(std::shared_ptr<const T> value) {
    MutexLock lock(mutex_);
    value_.swap(value);
  }
  /// Null before the first `Set`.
  std::shared_ptr<const T> Get() const {
    MutexLock lock(mutex_);
    return value_;
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<const T> value_ FLOPLEDGER_GUARDED_BY(mutex_);
};

}  // namespace flopledger
