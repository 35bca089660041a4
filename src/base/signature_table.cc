#include "base/signature_table.h"

#include <bit>
#include <string>
#include <utility>

namespace flopledger {
namespace {

std::size_t Mix(std::size_t seed, std::size_t value) {
  return seed ^ (value + 0x9e3779b97f4a7c15ULL + (seed << 6) + (seed >> 2));
}

std::size_t HashOf(const OpSignature& signature) {
  std::size_t hash = std::hash<std::string>{}(signature.name);
  for (const OpArgument& argument : signature.arguments) {
    hash = Mix(hash, static_cast<std::size_t>(argument.kind) * 64 +
                         static_cast<std::size_t>(argument.dtype));
    for (std::int64_t value : argument.integers) hash = Mix(hash, static_cast<std::size_t>(value));
    hash = Mix(hash, std::bit_cast<std::uint64_t>(argument.real));
  }
  return hash;
}

}  // namespace

SignatureTable::SignatureTable(std::size_t capacity, Classifier classify)
    : capacity_(capacity < 2 ? 2 : capacity),
      classify_(std::move(classify)),
      classes_(capacity_, OpClass::kUnknown) {
  signatures_.emplace_back();  // id 0: kOverflowSignature
}

SignatureId SignatureTable::Intern(const OpSignature& signature) {
  const std::size_t hash = HashOf(signature);
  MutexLock lock(mutex_);
  auto [first, last] = by_hash_.equal_range(hash);
  for (; first != last; ++first) {
    if (signatures_[first->second] == signature) return first->second;
  }
  if (signatures_.size() >= capacity_) {
    ++refused_;
    return kOverflowSignature;
  }
  const auto id = static_cast<SignatureId>(signatures_.size());
  classes_[id] = classify_ ? classify_(signature) : OpClass::kUnknown;
  signatures_.push_back(signature);
  by_hash_.emplace(hash, id);
  return id;
}

const OpSignature* SignatureTable::Find(SignatureId id) const {
  MutexLock lock(mutex_);
  if (id == kOverflowSignature || id >= signatures_.size()) return nullptr;
  return &signatures_[id];
}

std::size_t SignatureTable::size() const {
  MutexLock lock(mutex_);
  return signatures_.size() - 1;
}

std::int64_t SignatureTable::refused() const {
  MutexLock lock(mutex_);
  return refused_;
}

std::string ToString(const OpSignature& signature) {
  std::string text = signature.name;
  for (const OpArgument& argument : signature.arguments) {
    switch (argument.kind) {
      case OpArgument::Kind::kNone:
        text += " -";
        continue;
      case OpArgument::Kind::kText:
        text += " text";
        continue;
      case OpArgument::Kind::kReal:
        text += " " + std::to_string(argument.real);
        continue;
      case OpArgument::Kind::kTensor:
        text += " [" + std::string(ToString(argument.dtype)) + " ";
        break;
      default:
        text += " (";
        break;
    }
    const bool tensor = argument.kind == OpArgument::Kind::kTensor;
    for (std::size_t i = 0; i < argument.integers.size(); ++i) {
      if (i > 0) text += tensor ? "x" : ",";
      text += std::to_string(argument.integers[i]);
    }
    text += tensor ? "]" : ")";
  }
  return text;
}

}  // namespace flopledger
