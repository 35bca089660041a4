#include "base/kernel_table.h"

#include <string>
#include <utility>

namespace flopledger {
namespace {

std::size_t HashOf(const KernelSignature& signature) {
  std::size_t hash = std::hash<std::string>{}(signature.name);
  auto mix = [&hash](std::size_t value) {
    hash ^= value + 0x9e3779b97f4a7c15ULL + (hash << 6) + (hash >> 2);
  };
  for (std::uint32_t extent : signature.grid) mix(extent);
  for (std::uint32_t extent : signature.block) mix(extent);
  mix(signature.shared_memory_bytes);
  return hash;
}

}  // namespace

KernelTable::KernelTable(std::size_t capacity, Classifier classify)
    : capacity_(capacity < 2 ? 2 : capacity), classify_(std::move(classify)) {
  signatures_.emplace_back();  // id 0: kOverflowKernel
  classes_.push_back(OpClass::kUnknown);
}

KernelId KernelTable::Intern(const KernelSignature& signature) {
  const std::size_t hash = HashOf(signature);
  auto [first, last] = by_hash_.equal_range(hash);
  for (; first != last; ++first) {
    if (signatures_[first->second] == signature) return first->second;
  }
  if (signatures_.size() >= capacity_) {
    ++refused_;
    return kOverflowKernel;
  }
  const auto id = static_cast<KernelId>(signatures_.size());
  classes_.push_back(classify_ ? classify_(signature.name) : OpClass::kUnknown);
  signatures_.push_back(signature);
  by_hash_.emplace(hash, id);
  return id;
}

const KernelSignature* KernelTable::Find(KernelId id) const {
  if (id == kOverflowKernel || id >= signatures_.size()) return nullptr;
  return &signatures_[id];
}

}  // namespace flopledger
