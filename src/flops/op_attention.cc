#include <algorithm>

#include "flops/op_count_rules.h"

namespace flopledger {
namespace {

/// Which corner of the query-key matrix a causal diagonal runs through: the lower right one in the
/// flash-attention kernels, the upper left one in all others (CPU, memory-efficient, cuDNN). They
/// differ only where queries and keys are not as many.
enum class Align : std::uint8_t { kTopLeft, kBottomRight };

struct Mask {
  bool causal = false;
  Align align = Align::kTopLeft;
  std::optional<std::int64_t> window_left =
      std::nullopt;  ///< keys before the diagonal; absent: all
  std::optional<std::int64_t> window_right = std::nullopt;
};

/// Sum over i in [0, queries) of i + first, each limited to [0, keys].
Int128 LimitedRamp(Int128 queries, Int128 first, Int128 keys) {
  if (keys == 0) return 0;
  const Int128 ramp_begin = std::clamp<Int128>(1 - first, 0, queries);
  const Int128 ramp_end = std::clamp<Int128>(keys - first, ramp_begin, queries);
  const Int128 length = ramp_end - ramp_begin;
  return length * first + (ramp_begin + ramp_end - 1) * length / 2 + (queries - ramp_end) * keys;
}

/// Query-key pairs that the mask leaves. Operands are below 2^48, so nothing here can overflow.
Int128 Pairs(Int128 queries, Int128 keys, const Mask& mask) {
  const Int128 offset = mask.align == Align::kBottomRight ? keys - queries : 0;
  Int128 pairs = queries * keys;
  const std::optional<std::int64_t> right = mask.causal ? 0 : mask.window_right;
  if (right) pairs = LimitedRamp(queries, offset + *right + 1, keys);
  if (mask.window_left) pairs -= LimitedRamp(queries, offset - *mask.window_left, keys);
  return pairs;
}

/// Where an attention op keeps its operands.
struct Layout {
  std::size_t query;
  bool backward = false;
  bool heads_last =
      false;  ///< [batch, sequence, head, dim] instead of [batch, head, sequence, dim]
};

std::optional<CountedWork> CountAttention(const ArgumentReader& arguments, const Layout& layout,
                                          const Mask& mask) {
  const auto query = arguments.Shape(layout.query, 4);
  const auto key = arguments.Shape(layout.query + 1, 4);
  const auto value = arguments.Shape(layout.query + 2, 4);
  if (!query || !key || !value) return std::nullopt;
  const std::size_t head = layout.heads_last ? 2 : 1;
  const std::size_t sequence = layout.heads_last ? 1 : 2;
  const std::int64_t heads = (*query)[head];
  const std::int64_t key_heads = (*key)[head];
  if ((*query)[0] != (*key)[0] || (*key)[0] != (*value)[0] || (*query)[3] != (*key)[3] ||
      (*key)[sequence] != (*value)[sequence] || key_heads != (*value)[head] || key_heads == 0 ||
      heads % key_heads != 0) {
    return std::nullopt;
  }
  const Int128 pairs =
      Pairs((*query)[sequence], (*key)[sequence], arguments.all_pairs() ? Mask{} : mask);
  const Count per_dimension = Times(Product({2, (*query)[0], heads}), pairs);
  const Int128 score = (*query)[3];
  const Int128 mix = (*value)[3];
  if (!layout.backward) {
    const Count executed = Times(per_dimension, score + mix);
    if (!executed) return std::nullopt;
    return CountedWork{*executed, 0};
  }
  // Scores again, then the gradients of value, of the probabilities, of query and of key.
  const Count recompute = Times(per_dimension, score);
  const Count executed = Times(per_dimension, 3 * score + 2 * mix);
  if (!recompute || !executed) return std::nullopt;
  return CountedWork{*executed, *recompute};
}

/// Ops whose mask is one boolean.
template <std::size_t kQuery, std::size_t kCausal, bool kBackward, Align kAlign = Align::kTopLeft>
std::optional<CountedWork> Plain(const ArgumentReader& arguments) {
  const auto causal = arguments.Boolean(kCausal);
  if (!causal) return std::nullopt;
  return CountAttention(arguments, {.query = kQuery, .backward = kBackward},
                        {.causal = *causal, .align = kAlign});
}

/// As `Plain`, with cumulated lengths of packed sequences that must be absent: their contents are
/// the true lengths, and nobody sees contents.
template <std::size_t kQuery, std::size_t kLengths, std::size_t kCausal, bool kBackward,
          Align kAlign>
std::optional<CountedWork> Dense(const ArgumentReader& arguments) {
  if (arguments.IsTensor(kLengths) || arguments.IsTensor(kLengths + 1)) return std::nullopt;
  return Plain<kQuery, kCausal, kBackward, kAlign>(arguments);
}

/// The overload for quantised operands has three scales before the dropout probability.
std::optional<CountedWork> ScaledFlash(const ArgumentReader& arguments) {
  if (arguments.Is(3, OpArgument::Kind::kReal)) {
    return Plain<0, 4, false, Align::kBottomRight>(arguments);
  }
  return Plain<0, 7, false, Align::kBottomRight>(arguments);
}

std::optional<std::int64_t> Window(const ArgumentReader& arguments, std::size_t index) {
  const auto size = arguments.Integer(index);
  return size && *size >= 0 ? size : std::nullopt;  // negative: unlimited
}

bool NothingOrInteger(const ArgumentReader& arguments, std::size_t index) {
  return index >= arguments.size() || arguments.Is(index, OpArgument::Kind::kNone) ||
         arguments.Is(index, OpArgument::Kind::kInteger);
}

template <std::size_t kQuery, std::size_t kLengths, std::size_t kCausal, std::size_t kWindow,
          bool kBackward>
std::optional<CountedWork> Flash(const ArgumentReader& arguments) {
  const auto causal = arguments.Boolean(kCausal);
  if (!causal || arguments.IsTensor(kLengths) || arguments.IsTensor(kLengths + 1) ||
      !NothingOrInteger(arguments, kWindow) || !NothingOrInteger(arguments, kWindow + 1)) {
    return std::nullopt;
  }
  // Keys in use, slopes and tables of blocks: they change what is computed by their contents.
  for (std::size_t i = kWindow + 2; i < arguments.size(); ++i) {
    if (arguments.IsTensor(i)) return std::nullopt;
  }
  return CountAttention(arguments, {.query = kQuery, .backward = kBackward, .heads_last = true},
                        {.causal = *causal,
                         .align = Align::kBottomRight,
                         .window_left = Window(arguments, kWindow),
                         .window_right = Window(arguments, kWindow + 1)});
}

template <std::size_t kQuery, std::size_t kLengths, std::size_t kMask, std::size_t kWindow,
          bool kBackward>
std::optional<CountedWork> Efficient(const ArgumentReader& arguments) {
  const auto mask_type = arguments.Integer(kMask);
  if (!mask_type || *mask_type < 0 || *mask_type > 2 || arguments.IsTensor(kLengths) ||
      arguments.IsTensor(kLengths + 1) || arguments.Is(kWindow, OpArgument::Kind::kInteger)) {
    return std::nullopt;
  }
  if (!kBackward && arguments.IsTensor(12)) return std::nullopt;  // lengths of the keys
  return CountAttention(arguments, {.query = kQuery, .backward = kBackward, .heads_last = true},
                        {.causal = *mask_type != 0,
                         .align = *mask_type == 2 ? Align::kBottomRight : Align::kTopLeft});
}

}  // namespace

const std::vector<CountRule>& AttentionRules() {
  constexpr OpClass kAttention = OpClass::kAttention;
  constexpr Align kTopLeft = Align::kTopLeft;
  constexpr Align kBottomRight = Align::kBottomRight;
  static const std::vector<CountRule> rules = {
      {"aten::_scaled_dot_product_flash_attention_for_cpu", kAttention, 0, Plain<0, 4, false>},
      {"aten::_scaled_dot_product_flash_attention_for_cpu_backward", kAttention, 1,
       Plain<1, 7, true>},
      {"aten::_scaled_dot_product_flash_attention", kAttention, 0, ScaledFlash},
      {"aten::_scaled_dot_product_flash_attention_backward", kAttention, 1,
       Dense<1, 6, 11, true, kBottomRight>},
      {"aten::_scaled_dot_product_efficient_attention", kAttention, 0, Plain<0, 6, false>},
      {"aten::_scaled_dot_product_efficient_attention_backward", kAttention, 1, Plain<1, 11, true>},
      {"aten::_scaled_dot_product_cudnn_attention", kAttention, 0, Plain<0, 6, false>},
      {"aten::_scaled_dot_product_cudnn_attention_backward", kAttention, 1,
       Dense<1, 9, 14, true, kTopLeft>},
      {"aten::_scaled_dot_product_fused_attention_overrideable", kAttention, 0, Plain<0, 5, false>},
      {"aten::_scaled_dot_product_fused_attention_overrideable_backward", kAttention, 1,
       Dense<1, 8, 13, true, kTopLeft>},
      {"aten::_cudnn_attention_forward", kAttention, 0, Dense<0, 4, 10, false, kTopLeft>},
      {"aten::_cudnn_attention_backward", kAttention, 1, Dense<1, 9, 14, true, kTopLeft>},
      {"aten::_flash_attention_forward", kAttention, 0, Flash<0, 3, 8, 11, false>},
      {"aten::_flash_attention_backward", kAttention, 1, Flash<1, 6, 11, 15, true>},
      {"aten::_efficient_attention_forward", kAttention, 0, Efficient<0, 4, 9, 13, false>},
      {"aten::_efficient_attention_backward", kAttention, 1, Efficient<1, 6, 14, 18, true>},
  };
  return rules;
}

}  // namespace flopledger
