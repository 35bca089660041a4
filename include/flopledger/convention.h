#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "flopledger/export.h"
#include "flopledger/status.h"

namespace flopledger {

/// Which query-key pairs of an attention layer are work.
enum class AttentionMask : std::uint8_t {
  kExact,       ///< the pairs that the mask leaves: causal s(s+1)/2, windows and packs their own
  kFull,        ///< s^2 whatever the mask
  kCausalHalf,  ///< s^2/2 where the mask is causal; windows as they are
  kNone,        ///< no attention term at all (plain 6N)
};

/// What stands for the matrix multiplications with weights.
enum class LinearWork : std::uint8_t {
  kMatmuls,                       ///< the sum over the matrices that are really multiplied
  kAllParameters,                 ///< 2N a token, N with everything in it (6N when trained)
  kParametersWithoutInputLookup,  ///< 2(N - V h) a token for untied embeddings, 2N for tied ones
};

/// Whose shape is counted.
enum class CountedShape : std::uint8_t {
  kDescribed,
  kClassicGpt,  ///< as if every head had its own keys and the FFN were 4h wide without a gate
};

/// How the backward pass follows from the forward one.
enum class BackwardRule : std::uint8_t {
  kTrainable,     ///< a gradient per trainable weight, and per input that something trainable needs
  kTwiceForward,  ///< 2 x forward, whatever is frozen
  kEveryInput,    ///< trainable weights, and every input whether or not something below it trains
  kInputsOnly,    ///< inputs only: "two thirds" of a training step
};

/// Forward work that the numerator counts a second time: an "achieved" figure instead of MFU.
enum class ReplayedForward : std::uint8_t {
  kNone,
  kCoreAttention,       ///< selective recomputation: one forward of core attention
  kWholeCoreAttention,  ///< core attention twice, backward too, as Korthikanti 2022 prints it
  kLayers,              ///< full recomputation of the layers, not of the head
  kEverything,          ///< 4/3 of the whole
};

enum class CountedTokens : std::uint8_t {
  kUseful,    ///< without padding
  kComputed,  ///< padding and expert capacity slots too
};

/// Every switch that moves a declared figure. The default is the house convention: a multiply-add
/// is two FLOPs, exact pairs, real vocabulary, router and trained multi-token prediction in,
/// embedding look-up 0, backward by what is trainable, padding and recomputation out.
///
///     FlopConvention full_mask{.attention_mask = AttentionMask::kFull};
///     Result<FlopConvention> megatron = FindConvention("MEGATRON");
///
/// Thread: a value.
struct FlopConvention {
  AttentionMask attention_mask = AttentionMask::kExact;
  bool local_attention = true;  ///< windows, chunks and top-k count as such; false: as dense layers
  LinearWork linear_work = LinearWork::kMatmuls;
  CountedShape shape = CountedShape::kDescribed;
  bool embedding_as_matmul = false;      ///< the look-up counts 2 V h a token
  bool router = true;                    ///< h x experts of a mixture-of-experts layer
  bool multi_token_prediction = true;    ///< prediction modules after the last layer
  bool ffn_gate = true;                  ///< the third matrix of a gated FFN
  std::int64_t vocabulary_multiple = 1;  ///< the vocabulary is rounded up to a multiple of this
  BackwardRule backward = BackwardRule::kTrainable;
  ReplayedForward replayed_forward = ReplayedForward::kNone;
  bool score_recompute = false;  ///< the fifth matmul of a fused attention backward
  CountedTokens tokens = CountedTokens::kUseful;
  std::int64_t flops_per_multiply_add = 2;  ///< 1: the figures are multiply-adds

  friend bool operator==(const FlopConvention&, const FlopConvention&) = default;
};

/// Stable identity of a convention: a readable name (`house`, `MEGATRON`, or the switches that
/// differ from the house convention) and a hash over every switch.
struct ConventionId {
  std::string name;
  std::uint64_t hash = 0;

  friend bool operator==(const ConventionId&, const ConventionId&) = default;
};

FLOPLEDGER_EXPORT ConventionId IdentifyConvention(const FlopConvention& convention);

/// One switch as text: `attention_mask`, `causal_half`.
struct ConventionSwitch {
  std::string name;
  std::string value;

  friend bool operator==(const ConventionSwitch&, const ConventionSwitch&) = default;
};

/// All switches in the order of their declaration.
FLOPLEDGER_EXPORT std::vector<ConventionSwitch> ListSwitches(const FlopConvention& convention);

/// Sets one switch from its text. Fails: kInvalidArgument with the names or values that are known.
FLOPLEDGER_EXPORT Result<FlopConvention> WithSwitch(FlopConvention convention,
                                                    std::string_view name, std::string_view value);

/// A convention that is in use somewhere, under the name of its formula.
struct NamedConvention {
  std::string_view name;
  FlopConvention convention;
  std::string_view used_by;
};

FLOPLEDGER_EXPORT std::span<const NamedConvention> KnownConventions();

/// Reads `MEGATRON`, or a list of switches on top of a name:
/// `house,attention_mask=full,router=out`. Fails: kNotFound with the nearest known name;
/// kInvalidArgument for a wrong switch.
FLOPLEDGER_EXPORT Result<FlopConvention> FindConvention(std::string_view text);

}  // namespace flopledger
