#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <unordered_map>
#include <vector>

#include "base/sync.h"
#include "flopledger/records.h"

namespace flopledger {

/// Gives every op signature of a session a small number, once, and remembers the class that a rule
/// gave it. Bounded: what comes after the table is full is `kOverflowSignature`.
///
///     SignatureTable table(65536, [](const OpSignature& s) { return ClassifyOp(s); });
///     SignatureId id = table.Intern(signature);
///
/// Thread: any. Ownership: entries live as long as the table and never move.
class SignatureTable {
 public:
  using Classifier = std::function<OpClass(const OpSignature&)>;

  SignatureTable(std::size_t capacity, Classifier classify);

  /// The number of this signature; a new one if it was not seen before. Locks.
  SignatureId Intern(const OpSignature& signature);
  /// Class of an interned signature. Without a lock: an id is handed out after its class is
  /// written.
  FLOPLEDGER_HOT OpClass ClassOf(SignatureId id) const noexcept {
    return id < classes_.size() ? classes_[id] : OpClass::kUnknown;
  }
  /// The signature behind a number; null for `kOverflowSignature` and numbers never given.
  const OpSignature* Find(SignatureId id) const;
  std::size_t size() const;
  /// Signatures that found the table full.
  std::int64_t refused() const;

 private:
  const std::size_t capacity_;
  const Classifier classify_;
  std::vector<OpClass> classes_;  // fixed size: readers need no lock
  mutable Mutex mutex_;
  std::deque<OpSignature> signatures_ FLOPLEDGER_GUARDED_BY(mutex_);
  std::unordered_multimap<std::size_t, SignatureId> by_hash_ FLOPLEDGER_GUARDED_BY(mutex_);
  std::int64_t refused_ FLOPLEDGER_GUARDED_BY(mutex_) = 0;
};

/// Text of a signature for people: `aten::mm [fp32 1024x256] [fp32 256x768]`.
std::string ToString(const OpSignature& signature);

}  // namespace flopledger
