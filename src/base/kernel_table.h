#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "flopledger/device_records.h"

namespace flopledger {

/// Gives every kernel signature of a source a small number, once, with the class that a rule gave
/// its name. Bounded: what comes after the table is full is `kOverflowKernel`.
///
///     KernelTable table(65536, ClassifyKernel);
///     KernelId id = table.Intern(signature);
///
/// Thread: one. Ownership: entries live as long as the table and never move.
class KernelTable {
 public:
  using Classifier = std::function<OpClass(std::string_view name)>;

  KernelTable(std::size_t capacity, Classifier classify);

  KernelId Intern(const KernelSignature& signature);
  OpClass ClassOf(KernelId id) const {
    return id < classes_.size() ? classes_[id] : OpClass::kUnknown;
  }
  /// Null for `kOverflowKernel` and numbers never given.
  const KernelSignature* Find(KernelId id) const;
  std::size_t size() const { return signatures_.size() - 1; }
  /// Signatures that found the table full.
  std::int64_t refused() const { return refused_; }

 private:
  const std::size_t capacity_;
  const Classifier classify_;
  std::deque<KernelSignature> signatures_;
  std::vector<OpClass> classes_;
  std::unordered_multimap<std::size_t, KernelId> by_hash_;
  std::int64_t refused_ = 0;
};

}  // namespace flopledger
