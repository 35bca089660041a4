#include "quantity.h"

#include <algorithm>

namespace flopledger::flops {
namespace {

constexpr Exact Triangle(std::int64_t n) { return Exact(n) * (Exact(n) + 1) / 2; }

/// Pairs if a query sees its last `width` tokens, itself included; `context` tokens are cached.
Exact WindowPairs(std::int64_t length, std::int64_t context, std::int64_t width) {
  // The first `growing` queries still see everything before them.
  const std::int64_t growing = std::clamp<std::int64_t>(width - context, 0, length);
  return Exact(growing) * context + Triangle(growing) + Exact(length - growing) * width;
}

/// Pairs if a query sees `width` tokens centred on itself (an encoder's local attention).
Exact CentredWindowPairs(std::int64_t length, std::int64_t width) {
  const std::int64_t side = std::min((width - 1) / 2, length);
  // min(i, side) summed over i = 0 .. length - 1, for each of the two sides.
  const std::int64_t growing = std::min(side, length);
  Exact one_side = Triangle(growing) - growing;
  one_side += Exact(length - growing) * side;
  return Exact(length) + one_side * 2;
}

/// Twice the pairs of positions 1 .. m in blocks of `chunk`.
Exact ChunkHalfPairs(std::int64_t m, std::int64_t chunk, bool half) {
  const std::int64_t whole = m / chunk;
  const std::int64_t rest = m % chunk;
  if (half) return Exact(whole) * chunk * chunk + Exact(rest) * rest;
  return (Exact(whole) * Triangle(chunk) + Triangle(rest)) * 2;
}

Exact CausalHalfPairs(const SequenceGroup& group, bool half) {
  const Exact n = group.length;
  const Exact seen = Exact(2) * n * group.context;
  if (half) return n * n + seen;
  // The tokens of a prefix also see what follows them inside of the prefix.
  const Exact p = group.prefix;
  return n * (n + 1) + p * (p - 1) + seen;
}

Exact SumOverGroups(const std::vector<SequenceGroup>& groups, const Quantity& quantity) {
  Exact sum = 0;
  for (const SequenceGroup& group : groups) {
    const Exact count = group.count;
    switch (quantity.kind) {
      case QuantityKind::kTokens:
      case QuantityKind::kExpertSlots:
        sum += count * group.length;
        break;
      case QuantityKind::kBodyTokens:
        sum += count * std::max<std::int64_t>(group.length - quantity.size, 0);
        break;
      case QuantityKind::kSequences:
        sum += count;
        break;
      case QuantityKind::kHalfPairs:
        sum += count * HalfPairs(quantity, group);
        break;
      case QuantityKind::kSourceTokens:
        sum += count * group.source_length;
        break;
      case QuantityKind::kSourceHalfPairs:
        sum += count * HalfPairs(quantity, {.length = group.source_length, .count = 1});
        break;
      case QuantityKind::kCrossHalfPairs:
        sum += Exact(2) * count * group.length * group.source_length;
        break;
      case QuantityKind::kSamples:
      case QuantityKind::kLogitRows:
        break;
    }
  }
  return sum;
}

Exact ExpertSlots(const Quantity& quantity, Exact tokens) {
  const Exact visits = tokens * quantity.size;
  if (!quantity.computed || quantity.capacity_percent == 0 || !visits.valid()) return visits;
  const Exact share = Exact(100) * quantity.experts;
  const Exact wanted = visits * quantity.capacity_percent;
  if (!wanted.valid()) return wanted;
  const Int128 slots_each = (wanted.value() + share.value() - 1) / share.value();
  return Exact(quantity.experts) * slots_each;
}

}  // namespace

Exact HalfPairs(const Quantity& quantity, const SequenceGroup& group) {
  const Exact n = group.length;
  const Exact everything = Exact(2) * n * (n + group.context);
  if (quantity.counting == AttentionMask::kFull) return everything;
  const bool half = quantity.counting == AttentionMask::kCausalHalf;
  switch (quantity.span) {
    case AttentionSpan::kWhole:
      return quantity.causal ? CausalHalfPairs(group, half) : everything;
    case AttentionSpan::kWindow:
    case AttentionSpan::kTopK:
      if (!quantity.causal) return CentredWindowPairs(group.length, quantity.size) * 2;
      // A window that is never full is the plain causal mask, and counts as it does.
      if (Exact(group.length + group.context).value() <= quantity.size) {
        return CausalHalfPairs(group, half);
      }
      return WindowPairs(group.length, group.context, quantity.size) * 2;
    case AttentionSpan::kChunk:
      return ChunkHalfPairs(group.context + group.length, quantity.size, half) -
             ChunkHalfPairs(group.context, quantity.size, half);
  }
  return everything;
}

Exact Measure(const Quantity& quantity, const Workload& workload) {
  const std::vector<SequenceGroup>& groups = quantity.computed && !workload.padded_sequences.empty()
                                                 ? workload.padded_sequences
                                                 : workload.sequences;
  switch (quantity.kind) {
    case QuantityKind::kSamples:
      return workload.samples;
    case QuantityKind::kLogitRows: {
      Quantity rows = quantity;
      rows.kind = workload.logits == LogitRows::kEveryToken ? QuantityKind::kTokens
                                                            : QuantityKind::kSequences;
      return SumOverGroups(groups, rows);
    }
    case QuantityKind::kExpertSlots:
      return ExpertSlots(quantity, SumOverGroups(groups, quantity));
    default:
      return SumOverGroups(groups, quantity);
  }
}

namespace {

Result<void> ValidateGroups(const std::vector<SequenceGroup>& groups, std::string_view field) {
  for (std::size_t i = 0; i < groups.size(); ++i) {
    const SequenceGroup& group = groups[i];
    const std::string where = std::string(field) + "[" + std::to_string(i) + "]";
    const auto refuse = [&where](std::string_view name, std::int64_t value,
                                 std::string_view accepted) {
      return InvalidArgument(where + "." + std::string(name) + " is " + std::to_string(value) +
                             "; accepted: " + std::string(accepted));
    };
    // 2^53 tokens in one sequence is far beyond any machine and keeps every sum of two lengths
    // inside of 64 bits.
    constexpr std::int64_t kLongest = std::int64_t{1} << 53;
    constexpr std::string_view kLengths = "0 to 2^53";
    if (group.length < 0 || group.length > kLongest) {
      return refuse("length", group.length, kLengths);
    }
    if (group.count < 0) return refuse("count", group.count, "0 and more");
    if (group.context < 0 || group.context > kLongest) {
      return refuse("context", group.context, kLengths);
    }
    if (group.source_length < 0 || group.source_length > kLongest) {
      return refuse("source_length", group.source_length, kLengths);
    }
    if (group.prefix < 0 || group.prefix > group.length) {
      return refuse("prefix", group.prefix, "0 to length (" + std::to_string(group.length) + ")");
    }
  }
  return {};
}

}  // namespace

Result<void> Validate(const Workload& workload) {
  if (workload.samples < 0) {
    return InvalidArgument("samples is " + std::to_string(workload.samples) +
                           "; accepted: 0 and more");
  }
  Result<void> useful = ValidateGroups(workload.sequences, "sequences");
  if (!useful.has_value()) return useful;
  return ValidateGroups(workload.padded_sequences, "padded_sequences");
}

std::string Describe(const Quantity& quantity) {
  switch (quantity.kind) {
    case QuantityKind::kTokens:
      return "tokens";
    case QuantityKind::kSequences:
      return "sequences";
    case QuantityKind::kSourceTokens:
      return "source tokens";
    case QuantityKind::kSamples:
      return "samples";
    case QuantityKind::kLogitRows:
      return "logit rows";
    case QuantityKind::kExpertSlots:
      return "expert visits";
    case QuantityKind::kBodyTokens:
      return "patches";
    case QuantityKind::kCrossHalfPairs:
      return "cross pairs";
    case QuantityKind::kHalfPairs:
    case QuantityKind::kSourceHalfPairs:
      break;
  }
  std::string text = quantity.kind == QuantityKind::kHalfPairs ? "pairs (" : "source pairs (";
  if (quantity.counting == AttentionMask::kFull) return text + "full square)";
  if (!quantity.causal) {
    text += "bidirectional";
  } else {
    text += quantity.counting == AttentionMask::kCausalHalf ? "half square" : "causal";
  }
  const std::string size = std::to_string(quantity.size);
  if (quantity.span == AttentionSpan::kWindow) text += ", window " + size;
  if (quantity.span == AttentionSpan::kChunk) text += ", chunks of " + size;
  if (quantity.span == AttentionSpan::kTopK) text += ", top " + size;
  return text + ")";
}

}  // namespace flopledger::flops
