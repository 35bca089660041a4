#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flopledger/op_class.h"
#include "flopledger/status.h"

namespace flopledger {

/// What the name of an NVTX range or mark means to us. Fits into 64 bits, so that it can travel in
/// the handle of a registered string.
struct NvtxMeaning {
  enum class Kind : std::uint8_t { kNone, kStep, kPhase, kTokens };
  Kind kind = Kind::kNone;
  Phase phase = Phase::kOther;  ///< of `kPhase`
  std::int64_t number = -1;     ///< step number that the name gives: `ProfilerStep#12`; -1: none

  std::uint64_t Packed() const noexcept;
  static NvtxMeaning Unpacked(std::uint64_t packed) noexcept;

  friend bool operator==(const NvtxMeaning&, const NvtxMeaning&) = default;
};

/// The names of one domain that mean something. A name is whole (`train_step`) or the beginning of
/// one (`step*`); the first number in what `*` stands for is the step's.
///
/// Thread: `Match` from any, no lock, no heap. Fails: never; null and foreign names mean nothing.
class NvtxRules {
 public:
  /// `numbered`: only names in which a number follows.
  void Add(std::string_view pattern, NvtxMeaning::Kind kind, Phase phase, bool numbered = false);
  NvtxMeaning Match(const char* name) const noexcept;
  NvtxMeaning Match(const wchar_t* name) const noexcept;

 private:
  struct Rule {
    std::string text;
    bool prefix = false;
    bool numbered = false;
    NvtxMeaning::Kind kind = NvtxMeaning::Kind::kNone;
    Phase phase = Phase::kOther;
  };
  template <typename Char>
  NvtxMeaning MatchName(const Char* name) const noexcept;

  std::vector<Rule> rules_;
  bool any_ = false;  // a rule that takes every name
  std::array<bool, 128> first_{};
};

/// The rules of each domain that concerns us: `flopledger`, and those of the configuration.
///
///     NvtxRuleBook::Create("step*,train_step@my_domain", "forward=fwd*,data=load_batch");
///
/// A pattern is `name`, `name*`, `name@domain` or `name*@domain`; without a domain it holds for the
/// default one. In the domain `flopledger` the names are fixed: `step` (also followed by a blank,
/// `#` or `_` and its number), the phases, and the mark `tokens`.
/// Fails: `Create` says which pattern is wrong, and what is accepted.
class NvtxRuleBook {
 public:
  static Result<NvtxRuleBook> Create(std::string_view steps, std::string_view phases);

  /// Of a domain by name (the default one: empty); null if no name of it means anything.
  const NvtxRules* Find(std::string_view domain) const noexcept;

 private:
  struct Page {
    std::string domain;
    std::unique_ptr<NvtxRules> rules;  // a domain keeps a pointer to it
  };
  NvtxRules& RulesOf(std::string_view domain);
  std::optional<Status> AddPattern(std::string_view pattern, std::string_view field,
                                   NvtxMeaning::Kind kind, Phase phase);
  std::vector<Page> pages_;
};

}  // namespace flopledger
