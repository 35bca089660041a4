#include "collect/nvtx/nvtx_rules.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace flopledger {
namespace {

constexpr std::string_view kOurDomain = "flopledger";
constexpr int kMostDigits = 15;   // of a step number; 50 bits
constexpr int kMostSkipped = 64;  // between a name and its number
constexpr std::uint64_t kNumberShift = 8;
constexpr std::int64_t kMostNumber = (std::int64_t{1} << 50) - 1;

std::string_view Trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// The entries of a list with commas; empty ones are left out.
std::vector<std::string_view> Split(std::string_view list) {
  std::vector<std::string_view> entries;
  while (!list.empty()) {
    const std::string_view entry = Trimmed(list.substr(0, list.find(',')));
    if (!entry.empty()) entries.push_back(entry);
    const auto comma = list.find(',');
    list = comma == std::string_view::npos ? std::string_view() : list.substr(comma + 1);
  }
  return entries;
}

std::optional<Phase> PhaseOf(std::string_view name) {
  for (std::size_t i = 0; i < kPhaseCount; ++i) {
    if (ToString(static_cast<Phase>(i)) == name) return static_cast<Phase>(i);
  }
  return std::nullopt;
}

std::string PhaseNames() {
  std::string names;
  for (std::size_t i = 0; i < kPhaseCount; ++i) {
    names += (i == 0 ? "" : ", ") + std::string(ToString(static_cast<Phase>(i)));
  }
  return names;
}

/// First number in the text, -1 if there is none or it is too long.
template <typename Char>
std::int64_t FirstNumber(const Char* text) noexcept {
  const auto is_digit = [](Char c) { return c >= Char('0') && c <= Char('9'); };
  for (int skipped = 0; *text != 0 && !is_digit(*text); ++text) {
    if (++skipped > kMostSkipped) return -1;
  }
  std::int64_t number = -1;
  for (int digits = 0; is_digit(*text); ++text) {
    if (++digits > kMostDigits) return -1;
    number = (number < 0 ? 0 : number * 10) + static_cast<std::int64_t>(*text - Char('0'));
  }
  return number;
}

}  // namespace

std::uint64_t NvtxMeaning::Packed() const noexcept {
  const bool numbered = number >= 0 && number <= kMostNumber;
  return static_cast<std::uint64_t>(kind) | static_cast<std::uint64_t>(phase) << 2 |
         (numbered ? static_cast<std::uint64_t>(number + 1) << kNumberShift : 0);
}

NvtxMeaning NvtxMeaning::Unpacked(std::uint64_t packed) noexcept {
  return {.kind = static_cast<Kind>(packed & 3),
          .phase = static_cast<Phase>(packed >> 2 & 15),
          .number = static_cast<std::int64_t>(packed >> kNumberShift) - 1};
}

void NvtxRules::Add(std::string_view pattern, NvtxMeaning::Kind kind, Phase phase, bool numbered) {
  Rule rule{.text = std::string(pattern),
            .prefix = false,
            .numbered = numbered,
            .kind = kind,
            .phase = phase};
  if (pattern.back() == '*') {
    rule.text.pop_back();
    rule.prefix = true;
  }
  if (rule.text.empty()) {
    any_ = true;
  } else {
    first_[static_cast<unsigned char>(rule.text.front()) & 127] = true;
  }
  rules_.push_back(std::move(rule));
}

template <typename Char>
NvtxMeaning NvtxRules::MatchName(const Char* name) const noexcept {
  if (name == nullptr) return {};
  // Most names end here: no rule begins like them. One table for both widths, so modulo 128.
  if (!any_ && !first_[static_cast<std::uint32_t>(*name) & 127]) return {};
  for (const Rule& rule : rules_) {
    std::size_t i = 0;
    while (i < rule.text.size() &&
           name[i] == static_cast<Char>(static_cast<unsigned char>(rule.text[i]))) {
      ++i;
    }
    if (i < rule.text.size() || (!rule.prefix && name[i] != 0)) continue;
    const bool may_count = rule.prefix && rule.kind == NvtxMeaning::Kind::kStep;
    const std::int64_t number = may_count ? FirstNumber(name + i) : std::int64_t{-1};
    if (rule.numbered && number < 0) continue;
    return {.kind = rule.kind, .phase = rule.phase, .number = number};
  }
  return {};
}

NvtxMeaning NvtxRules::Match(const char* name) const noexcept { return MatchName(name); }
NvtxMeaning NvtxRules::Match(const wchar_t* name) const noexcept { return MatchName(name); }

NvtxRules& NvtxRuleBook::RulesOf(std::string_view domain) {
  for (const Page& page : pages_) {
    if (page.domain == domain) return *page.rules;
  }
  pages_.push_back({.domain = std::string(domain), .rules = std::make_unique<NvtxRules>()});
  return *pages_.back().rules;
}

const NvtxRules* NvtxRuleBook::Find(std::string_view domain) const noexcept {
  for (const Page& page : pages_) {
    if (page.domain == domain) return page.rules.get();
  }
  return nullptr;
}

std::optional<Status> NvtxRuleBook::AddPattern(std::string_view pattern, std::string_view field,
                                               NvtxMeaning::Kind kind, Phase phase) {
  const auto at = pattern.rfind('@');
  const std::string_view name = pattern.substr(0, at);
  const std::string_view domain = at == std::string_view::npos ? "" : pattern.substr(at + 1);
  const auto star = name.find('*');
  if (name.empty() || (star != std::string_view::npos && star + 1 != name.size())) {
    return Status(StatusCode::kInvalidArgument,
                  std::string(field) + " has '" + std::string(pattern) +
                      "'; accepted: name, name*, name@domain, name*@domain");
  }
  if (domain == kOurDomain) {
    return Status(StatusCode::kInvalidArgument,
                  std::string(field) + " has '" + std::string(pattern) +
                      "'; the names of the domain flopledger are fixed: step, the phases, tokens");
  }
  RulesOf(domain).Add(name, kind, phase);
  return std::nullopt;
}

Result<NvtxRuleBook> NvtxRuleBook::Create(std::string_view steps, std::string_view phases) {
  NvtxRuleBook book;
  NvtxRules& ours = book.RulesOf(kOurDomain);
  ours.Add("step", NvtxMeaning::Kind::kStep, Phase::kOther);
  for (const char* name : {"step *", "step#*", "step_*"}) {
    ours.Add(name, NvtxMeaning::Kind::kStep, Phase::kOther, /*numbered=*/true);
  }
  for (std::size_t i = 0; i < kPhaseCount; ++i) {
    const auto phase = static_cast<Phase>(i);
    if (phase != Phase::kOther) ours.Add(ToString(phase), NvtxMeaning::Kind::kPhase, phase);
  }
  ours.Add("tokens", NvtxMeaning::Kind::kTokens, Phase::kOther);

  for (const std::string_view pattern : Split(steps)) {
    if (auto wrong =
            book.AddPattern(pattern, "nvtx_steps", NvtxMeaning::Kind::kStep, Phase::kOther)) {
      return tl::unexpected(*std::move(wrong));
    }
  }
  for (const std::string_view entry : Split(phases)) {
    const auto equals = entry.find('=');
    const std::string_view name = Trimmed(entry.substr(0, equals));
    const std::optional<Phase> phase = PhaseOf(name);
    if (equals == std::string_view::npos || !phase) {
      return InvalidArgument("nvtx_phases has '" + std::string(entry) +
                             "'; accepted: phase=pattern, of the phases " + PhaseNames());
    }
    if (auto wrong = book.AddPattern(Trimmed(entry.substr(equals + 1)), "nvtx_phases",
                                     NvtxMeaning::Kind::kPhase, *phase)) {
      return tl::unexpected(*std::move(wrong));
    }
  }
  return book;
}

}  // namespace flopledger
