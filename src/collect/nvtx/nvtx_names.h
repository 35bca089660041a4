#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "collect/nvtx/nvtx_rules.h"

namespace flopledger {

/// A domain of NVTX. One per name, however many copies of NVTX create it. Never freed: a handle may
/// be used for as long as the process lives.
struct NvtxDomain {
  std::string name;
  std::uint32_t index = 0;  ///< `kUntracked` beyond the first ones
  /// What names of it mean at the moment; null: nothing of it concerns us.
  std::atomic<const NvtxRules*> rules{nullptr};

  static constexpr std::uint32_t kTracked = 32;  ///< nesting levels are kept for so many
  static constexpr std::uint32_t kUntracked = kTracked;
};

/// Domains and registered strings of this process, for all copies of NVTX in it. NVTX hands its
/// callbacks no context, so there is one of these, made at the first use and never freed.
///
///     NvtxDomain* domain = NvtxNames::Global().Domain("flopledger");
///     const void* handle = NvtxNames::Global().Register(domain, "step");
///     NvtxNames::MeaningOf(handle);
///
/// Memory is bounded: past the first 1,024 domains all further ones are one, which concerns nobody;
/// past the first 16,384 strings a handle carries what its string meant when it was registered.
/// Thread: any; `MeaningOf` without lock. Fails: never.
class NvtxNames {
 public:
  static NvtxNames& Global() noexcept;
  static NvtxDomain& DefaultDomain() noexcept;

  NvtxDomain* Domain(std::string_view name) noexcept;
  template <typename Char>
  const void* Register(NvtxDomain* domain, const Char* text) noexcept;
  static NvtxMeaning MeaningOf(const void* handle) noexcept;

  /// What names mean from now on; null: nothing. `book` stays valid for ever.
  void Apply(const NvtxRuleBook* book) noexcept;

 private:
  struct String;
  struct Store;
  NvtxNames();
  Store* const store_;
};

}  // namespace flopledger
