#pragma once

// What the observer remembers between two calls of one op: names and signatures that it has seen,
// so that the steady path compares words and calls nothing. Knows nothing of torch.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace flopledger::observer {

inline std::uint64_t MixWord(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0x9e3779b97f4a7c15ULL;
  return hash ^ (hash >> 29);
}

/// An op's name, looked at once.
struct NameEntry {
  std::string name;
  std::uint64_t hash = 0;
  std::int64_t index = 0;       ///< stands for the name in keys
  std::uint32_t signature = 0;  ///< of the name without arguments; 0 before the first use
  bool ignored = false;         ///< the engine's own frames around a node
  bool counted = false;         ///< has a counting rule: its arguments are recorded
};

/// Names by content; the pointer of a name may be reused for another one. Emptied when full, since
/// some names are made at run time (`autograd::engine::evaluate_function: X`).
///
/// Thread: one. Ownership: entries live until the table is emptied, which happens in `Insert` only.
class NameTable {
 public:
  static constexpr std::size_t kCapacity = 4096;  // a power of two; half of it is used at most

  static std::uint64_t HashOf(const char* name, std::size_t length) {
    std::uint64_t hash = length;
    for (std::size_t i = 0; i < length; i += sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      const std::size_t rest = length - i;
      std::memcpy(&word, name + i, rest < sizeof word ? rest : sizeof word);
      hash = MixWord(hash, word);
    }
    return hash;
  }

  NameEntry* Find(const char* name, std::size_t length, std::uint64_t hash) {
    if (slots_.empty()) return nullptr;
    for (std::size_t i = hash & (kCapacity - 1); slots_[i] != 0; i = (i + 1) & (kCapacity - 1)) {
      NameEntry& entry = entries_[slots_[i] - 1];
      if (entry.hash == hash && entry.name.size() == length &&
          std::memcmp(entry.name.data(), name, length) == 0) {
        return &entry;
      }
    }
    return nullptr;
  }

  /// Takes a name that `Find` did not find. Returns null, and is empty, if it was full.
  NameEntry* Insert(NameEntry entry) {
    if (slots_.empty()) {
      slots_.assign(kCapacity, 0);
      entries_.reserve(kCapacity / 2);
    }
    if (entries_.size() >= kCapacity / 2) {
      Clear();
      return nullptr;
    }
    entry.index = static_cast<std::int64_t>(entries_.size());
    std::size_t i = entry.hash & (kCapacity - 1);
    while (slots_[i] != 0) i = (i + 1) & (kCapacity - 1);
    entries_.push_back(std::move(entry));
    slots_[i] = static_cast<std::uint32_t>(entries_.size());
    return &entries_.back();
  }

  void Clear() {
    entries_.clear();
    slots_.assign(slots_.size(), 0);
  }

 private:
  std::vector<NameEntry> entries_;
  std::vector<std::uint32_t> slots_;  // index + 1; 0 is free
};

/// A key under construction: words of one call. Its memory is reused from call to call.
class KeyBuffer {
 public:
  void Reset(std::int64_t name_index) {
    words_.clear();
    words_.push_back(name_index);
  }
  /// Head of an argument; `count` integers follow by `Push`.
  void PushArgument(std::uint8_t kind, std::uint8_t dtype, std::size_t count) {
    words_.push_back(static_cast<std::int64_t>(kind) | static_cast<std::int64_t>(dtype) << 8 |
                     static_cast<std::int64_t>(count) << 16);
  }
  void Push(std::int64_t integer) { words_.push_back(integer); }

  const std::vector<std::int64_t>& words() const { return words_; }

  std::uint64_t Hash() const {
    std::uint64_t hash = words_.size();
    for (std::int64_t word : words_) hash = MixWord(hash, static_cast<std::uint64_t>(word));
    return hash;
  }

  static std::uint8_t KindOf(std::int64_t head) { return static_cast<std::uint8_t>(head & 0xff); }
  static std::uint8_t TypeOf(std::int64_t head) {
    return static_cast<std::uint8_t>(head >> 8 & 0xff);
  }
  static std::size_t CountOf(std::int64_t head) { return static_cast<std::size_t>(head >> 16); }

 private:
  std::vector<std::int64_t> words_;
};

/// Signature numbers by key. The whole key is compared. Emptied when full: shapes that change with
/// every call must not grow a training process.
///
/// Thread: one.
class SignatureCache {
 public:
  static constexpr std::size_t kMostEntries = 4096;
  static constexpr std::size_t kMostWords = std::size_t{1} << 18;  // 2 MiB of keys

  const std::uint32_t* Find(const std::vector<std::int64_t>& key, std::uint64_t hash) const {
    if (slots_.empty()) return nullptr;
    for (std::size_t i = hash & kMask; slots_[i] != 0; i = (i + 1) & kMask) {
      const Entry& entry = entries_[slots_[i] - 1];
      if (entry.hash == hash && entry.length == key.size() &&
          std::memcmp(&words_[entry.begin], key.data(), key.size() * sizeof(std::int64_t)) == 0) {
        return &entry.signature;
      }
    }
    return nullptr;
  }

  void Insert(const std::vector<std::int64_t>& key, std::uint64_t hash, std::uint32_t signature) {
    if (slots_.empty()) slots_.assign(kMask + 1, 0);
    if (entries_.size() >= kMostEntries || words_.size() + key.size() > kMostWords) Clear();
    if (key.size() > kMostWords) return;
    std::size_t i = hash & kMask;
    while (slots_[i] != 0) i = (i + 1) & kMask;
    entries_.push_back({hash, words_.size(), key.size(), signature});
    words_.insert(words_.end(), key.begin(), key.end());
    slots_[i] = static_cast<std::uint32_t>(entries_.size());
  }

  void Clear() {
    entries_.clear();
    words_.clear();
    slots_.assign(slots_.size(), 0);
  }

 private:
  struct Entry {
    std::uint64_t hash;
    std::size_t begin;
    std::size_t length;
    std::uint32_t signature;
  };
  static constexpr std::size_t kMask = 2 * kMostEntries - 1;

  std::vector<Entry> entries_;
  std::vector<std::int64_t> words_;
  std::vector<std::uint32_t> slots_;  // index + 1; 0 is free
};

}  // namespace flopledger::observer
