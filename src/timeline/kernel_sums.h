#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "flopledger/records.h"
#include "timeline/step_timeline.h"

namespace flopledger {

/// Launches and time of kernels by kernel, op, phase and class: a flat table with open addressing,
/// one probe or two per kernel. Bounded: keys that find it full are summed up under
/// `kOverflowKernel`, with their class and phase, so that no launch and no time is lost.
///
///     sums.Add(kernel, phase);
///     std::vector<KernelSum> sorted = sums.Sorted();
///
/// Thread: one. Ownership: keeps its memory over `Clear`, for the next step.
class KernelSums {
 public:
  explicit KernelSums(std::size_t limit = std::size_t{1} << 16) : limit_(limit) {}

  void Add(const KernelRecord& kernel, Phase phase) {
    const Key key{.kernel = kernel.kernel,
                  .op = kernel.op_known ? kernel.op : kOverflowSignature,
                  .rest = Rest(phase, kernel.op_class, kernel.op_known)};
    KernelSum& sum = Find(key);
    ++sum.launches;
    sum.time += DurationNs(kernel.end_ns - kernel.start_ns);
  }
  void Add(const KernelSum& other);
  void Clear();
  bool empty() const { return sums_.empty(); }
  const std::vector<KernelSum>& sums() const { return sums_; }  ///< in order of arrival
  /// By kernel, op, phase, class: the same sums give the same list, whatever the order of arrival.
  std::vector<KernelSum> Sorted() const;
  std::size_t retained_bytes() const {
    return sums_.capacity() * sizeof(KernelSum) + keys_.capacity() * sizeof(Key) +
           slots_.capacity() * sizeof(std::uint32_t);
  }

 private:
  struct Key {
    KernelId kernel = 0;
    SignatureId op = 0;
    std::uint32_t rest = 0;  // phase, class, op known
    friend bool operator==(const Key&, const Key&) = default;
  };
  static std::uint32_t Rest(Phase phase, OpClass op_class, bool op_known) {
    return static_cast<std::uint32_t>(phase) | static_cast<std::uint32_t>(op_class) << 8 |
           (op_known ? 1U << 16 : 0U);
  }
  static std::size_t Hash(const Key& key) {
    std::uint64_t hash = (std::uint64_t{key.kernel} << 32 | key.op) * 0x9E3779B97F4A7C15U;
    hash = (hash ^ (hash >> 29) ^ key.rest) * 0xBF58476D1CE4E5B9U;
    return static_cast<std::size_t>(hash >> 32);
  }
  KernelSum& Find(const Key& key) {
    if (!slots_.empty()) {
      const std::size_t mask = slots_.size() - 1;
      for (std::size_t at = Hash(key) & mask; slots_[at] != 0; at = (at + 1) & mask) {
        if (keys_[slots_[at] - 1] == key) return sums_[slots_[at] - 1];
      }
    }
    return Insert(key);
  }
  KernelSum& Insert(Key key);
  void Grow();

  std::size_t limit_;
  std::vector<KernelSum> sums_;
  std::vector<Key> keys_;             // of `sums_`, in the same order
  std::vector<std::uint32_t> slots_;  // index into `sums_` plus one; 0: free
};

}  // namespace flopledger
