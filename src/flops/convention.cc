#include "flopledger/convention.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "flopledger/units.h"
#include "nearest.h"

namespace flopledger {
namespace {

template <typename Enum>
using Names = std::vector<std::pair<std::string_view, Enum>>;

const Names<AttentionMask>& MaskNames() {
  static const Names<AttentionMask> kNames = {{"exact", AttentionMask::kExact},
                                              {"full", AttentionMask::kFull},
                                              {"causal_half", AttentionMask::kCausalHalf},
                                              {"none", AttentionMask::kNone}};
  return kNames;
}
const Names<LinearWork>& LinearNames() {
  static const Names<LinearWork> kNames = {
      {"matmuls", LinearWork::kMatmuls},
      {"all_parameters", LinearWork::kAllParameters},
      {"parameters_without_input_lookup", LinearWork::kParametersWithoutInputLookup}};
  return kNames;
}
const Names<CountedShape>& ShapeNames() {
  static const Names<CountedShape> kNames = {{"described", CountedShape::kDescribed},
                                             {"classic_gpt", CountedShape::kClassicGpt}};
  return kNames;
}
const Names<BackwardRule>& BackwardNames() {
  static const Names<BackwardRule> kNames = {{"trainable", BackwardRule::kTrainable},
                                             {"twice_forward", BackwardRule::kTwiceForward},
                                             {"every_input", BackwardRule::kEveryInput},
                                             {"inputs_only", BackwardRule::kInputsOnly}};
  return kNames;
}
const Names<ReplayedForward>& ReplayNames() {
  static const Names<ReplayedForward> kNames = {
      {"none", ReplayedForward::kNone},
      {"core_attention", ReplayedForward::kCoreAttention},
      {"whole_core_attention", ReplayedForward::kWholeCoreAttention},
      {"layers", ReplayedForward::kLayers},
      {"everything", ReplayedForward::kEverything}};
  return kNames;
}
const Names<CountedTokens>& TokenNames() {
  static const Names<CountedTokens> kNames = {{"useful", CountedTokens::kUseful},
                                              {"computed", CountedTokens::kComputed}};
  return kNames;
}
const Names<bool>& InOut() {
  static const Names<bool> kNames = {{"in", true}, {"out", false}};
  return kNames;
}

template <typename Enum>
std::string NameOf(const Names<Enum>& names, Enum value) {
  for (const auto& [name, known] : names) {
    if (known == value) return std::string(name);
  }
  return "unknown";
}

template <typename Enum>
Result<void> Parse(const Names<Enum>& names, std::string_view name, std::string_view value,
                   Enum* out) {
  std::string accepted;
  for (const auto& [text, known] : names) {
    if (text == value) {
      *out = known;
      return {};
    }
    if (!accepted.empty()) accepted += ", ";
    accepted += text;
  }
  return InvalidArgument("switch " + std::string(name) + " is '" + std::string(value) +
                         "'; accepted: " + accepted);
}

Result<void> ParseCount(std::string_view name, std::string_view value, std::int64_t low,
                        std::int64_t high, std::int64_t* out) {
  Result<Int128> read = ParseInt128(value);
  if (!read.has_value() || *read < low || *read > high) {
    return InvalidArgument("switch " + std::string(name) + " is '" + std::string(value) +
                           "'; accepted: " + std::to_string(low) + " to " + std::to_string(high));
  }
  *out = static_cast<std::int64_t>(*read);
  return {};
}

Result<void> SetSwitch(std::string_view name, std::string_view value, FlopConvention* c) {
  if (name == "attention_mask") return Parse(MaskNames(), name, value, &c->attention_mask);
  if (name == "local_attention") return Parse(InOut(), name, value, &c->local_attention);
  if (name == "linear_work") return Parse(LinearNames(), name, value, &c->linear_work);
  if (name == "shape") return Parse(ShapeNames(), name, value, &c->shape);
  if (name == "embedding_as_matmul") return Parse(InOut(), name, value, &c->embedding_as_matmul);
  if (name == "router") return Parse(InOut(), name, value, &c->router);
  if (name == "multi_token_prediction") {
    return Parse(InOut(), name, value, &c->multi_token_prediction);
  }
  if (name == "ffn_gate") return Parse(InOut(), name, value, &c->ffn_gate);
  if (name == "vocabulary_multiple") {
    return ParseCount(name, value, 1, 1 << 20, &c->vocabulary_multiple);
  }
  if (name == "backward") return Parse(BackwardNames(), name, value, &c->backward);
  if (name == "replayed_forward") {
    return Parse(ReplayNames(), name, value, &c->replayed_forward);
  }
  if (name == "score_recompute") return Parse(InOut(), name, value, &c->score_recompute);
  if (name == "tokens") return Parse(TokenNames(), name, value, &c->tokens);
  if (name == "flops_per_multiply_add") {
    return ParseCount(name, value, 1, 2, &c->flops_per_multiply_add);
  }
  std::vector<std::string_view> known;
  const std::vector<ConventionSwitch> switches = ListSwitches(FlopConvention{});
  known.reserve(switches.size());
  for (const ConventionSwitch& s : switches) known.push_back(s.name);
  return InvalidArgument("'" + std::string(name) +
                         "' is no switch of a convention; did you mean '" +
                         std::string(flops::Nearest(name, known)) + "'?");
}

std::uint64_t Fnv1a(std::string_view text) {
  std::uint64_t hash = 14695981039346656037ULL;
  for (char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 1099511628211ULL;
  }
  return hash;
}

}  // namespace

std::vector<ConventionSwitch> ListSwitches(const FlopConvention& c) {
  return {{"attention_mask", NameOf(MaskNames(), c.attention_mask)},
          {"local_attention", NameOf(InOut(), c.local_attention)},
          {"linear_work", NameOf(LinearNames(), c.linear_work)},
          {"shape", NameOf(ShapeNames(), c.shape)},
          {"embedding_as_matmul", NameOf(InOut(), c.embedding_as_matmul)},
          {"router", NameOf(InOut(), c.router)},
          {"multi_token_prediction", NameOf(InOut(), c.multi_token_prediction)},
          {"ffn_gate", NameOf(InOut(), c.ffn_gate)},
          {"vocabulary_multiple", std::to_string(c.vocabulary_multiple)},
          {"backward", NameOf(BackwardNames(), c.backward)},
          {"replayed_forward", NameOf(ReplayNames(), c.replayed_forward)},
          {"score_recompute", NameOf(InOut(), c.score_recompute)},
          {"tokens", NameOf(TokenNames(), c.tokens)},
          {"flops_per_multiply_add", std::to_string(c.flops_per_multiply_add)}};
}

Result<FlopConvention> WithSwitch(FlopConvention convention, std::string_view name,
                                  std::string_view value) {
  Result<void> set = SetSwitch(name, value, &convention);
  if (!set.has_value()) return tl::unexpected(set.error());
  return convention;
}

ConventionId IdentifyConvention(const FlopConvention& convention) {
  const std::vector<ConventionSwitch> house = ListSwitches(FlopConvention{});
  const std::vector<ConventionSwitch> switches = ListSwitches(convention);
  std::string canonical;
  std::string name = "house";
  for (std::size_t i = 0; i < switches.size(); ++i) {
    // A switch at its default stays out of the hash, so that a switch which is added later does not
    // move the identity of the conventions that do not use it.
    if (switches[i] == house[i]) continue;
    canonical += switches[i].name + "=" + switches[i].value + ";";
    name += "," + switches[i].name + "=" + switches[i].value;
  }
  for (const NamedConvention& known : KnownConventions()) {
    if (known.convention == convention) {
      name = known.name;
      break;
    }
  }
  return {.name = name, .hash = Fnv1a(canonical)};
}

Result<FlopConvention> FindConvention(std::string_view text) {
  const std::size_t comma = text.find(',');
  const std::string_view name = text.substr(0, comma);
  std::optional<FlopConvention> convention;
  std::vector<std::string_view> names;
  for (const NamedConvention& known : KnownConventions()) {
    names.push_back(known.name);
    if (known.name == name) convention = known.convention;
  }
  if (!convention.has_value()) {
    return Fail(StatusCode::kNotFound, "no convention is named '" + std::string(name) +
                                           "'; did you mean '" +
                                           std::string(flops::Nearest(name, names)) + "'?");
  }
  std::string_view rest = comma == std::string_view::npos ? "" : text.substr(comma + 1);
  while (!rest.empty()) {
    const std::size_t end = rest.find(',');
    const std::string_view item = rest.substr(0, end);
    rest = end == std::string_view::npos ? "" : rest.substr(end + 1);
    const std::size_t equals = item.find('=');
    if (equals == std::string_view::npos) {
      return InvalidArgument("'" + std::string(item) + "' is no switch; write name=value");
    }
    Result<void> set = SetSwitch(item.substr(0, equals), item.substr(equals + 1), &*convention);
    if (!set.has_value()) return tl::unexpected(set.error());
  }
  return *convention;
}

}  // namespace flopledger
