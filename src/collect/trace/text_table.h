#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <unordered_map>

namespace flopledger {

/// Hash of a text, eight bytes at a time. Kernel names are hundreds of characters long.
struct TextHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const {
    constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15ULL;
    std::uint64_t hash = text.size() * kOdd;
    const char* at = text.data();
    std::size_t left = text.size();
    for (; left >= 8; left -= 8, at += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, at, 8);
      hash = Mix(hash ^ word);
    }
    std::uint64_t word = 0;
    if (left > 0) std::memcpy(&word, at, left);
    return static_cast<std::size_t>(Mix(hash ^ word));
  }

 private:
  static std::uint64_t Mix(std::uint64_t value) {
    value *= 0x9fb21c651e98df25ULL;
    return value ^ value >> 32;
  }
};

/// Small things that are known by a text, found without a copy of it.
template <typename T>
using TextTable = std::unordered_map<std::string, T, TextHash, std::equal_to<>>;

}  // namespace flopledger
