#include "timeline/kernel_sums.h"

#include <algorithm>
#include <tuple>

namespace flopledger {
namespace {

constexpr std::size_t kFirstSlots = 64;

}  // namespace

KernelSum& KernelSums::Insert(Key key) {
  if (sums_.size() >= limit_ && (key.kernel != kOverflowKernel || key.op != kOverflowSignature)) {
    key.kernel = kOverflowKernel;
    key.op = kOverflowSignature;
    key.rest &= 0xFFFFU;
    return Find(key);  // a class has few phases, so these keys are few
  }
  if ((sums_.size() + 1) * 2 > slots_.size()) Grow();
  sums_.push_back({.kernel = key.kernel,
                   .op = key.op,
                   .phase = static_cast<Phase>(key.rest & 0xFFU),
                   .op_class = static_cast<OpClass>(key.rest >> 8 & 0xFFU),
                   .op_known = (key.rest >> 16 & 1U) != 0,
                   .launches = 0,
                   .time = {}});
  keys_.push_back(key);
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = Hash(key) & mask;
  while (slots_[at] != 0) at = (at + 1) & mask;
  slots_[at] = static_cast<std::uint32_t>(sums_.size());
  return sums_.back();
}

void KernelSums::Grow() {
  slots_.assign(std::max(kFirstSlots, slots_.size() * 2), 0);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    std::size_t at = Hash(keys_[i]) & mask;
    while (slots_[at] != 0) at = (at + 1) & mask;
    slots_[at] = static_cast<std::uint32_t>(i + 1);
  }
}

void KernelSums::Add(const KernelSum& other) {
  KernelSum& sum = Find({.kernel = other.kernel,
                         .op = other.op,
                         .rest = Rest(other.phase, other.op_class, other.op_known)});
  sum.launches += other.launches;
  sum.time += other.time;
}

void KernelSums::Clear() {
  sums_.clear();
  keys_.clear();
  std::fill(slots_.begin(), slots_.end(), 0);
}

std::vector<KernelSum> KernelSums::Sorted() const {
  std::vector<KernelSum> sorted = sums_;
  std::sort(sorted.begin(), sorted.end(), [](const KernelSum& a, const KernelSum& b) {
    return std::tie(a.kernel, a.op, a.phase, a.op_class, a.op_known) <
           std::tie(b.kernel, b.op, b.phase, b.op_class, b.op_known);
  });
  return sorted;
}

}  // namespace flopledger
