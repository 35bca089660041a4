#include <array>

#include "flopledger/convention.h"

namespace flopledger {
namespace {

// In the order in which a name is looked for: where two formulas have the same switches, the first
// name is the one that is shown.
constexpr FlopConvention kHouse{};

constexpr FlopConvention kParameters{.attention_mask = AttentionMask::kNone,
                                     .linear_work = LinearWork::kAllParameters,
                                     .backward = BackwardRule::kTwiceForward};
constexpr FlopConvention kParametersAndFullMask{.attention_mask = AttentionMask::kFull,
                                                .linear_work = LinearWork::kAllParameters,
                                                .backward = BackwardRule::kTwiceForward};
constexpr FlopConvention kParametersReplayed{.attention_mask = AttentionMask::kFull,
                                             .linear_work = LinearWork::kAllParameters,
                                             .backward = BackwardRule::kTwiceForward,
                                             .replayed_forward = ReplayedForward::kEverything};
constexpr FlopConvention kTitan{.attention_mask = AttentionMask::kFull,
                                .linear_work = LinearWork::kParametersWithoutInputLookup,
                                .backward = BackwardRule::kTwiceForward};
constexpr FlopConvention kClassic{.attention_mask = AttentionMask::kFull,
                                  .shape = CountedShape::kClassicGpt,
                                  .backward = BackwardRule::kTwiceForward};
constexpr FlopConvention kClassicSelective{
    .attention_mask = AttentionMask::kFull,
    .shape = CountedShape::kClassicGpt,
    .backward = BackwardRule::kTwiceForward,
    .replayed_forward = ReplayedForward::kWholeCoreAttention};
constexpr FlopConvention kClassicReplayed{.attention_mask = AttentionMask::kFull,
                                          .shape = CountedShape::kClassicGpt,
                                          .backward = BackwardRule::kTwiceForward,
                                          .replayed_forward = ReplayedForward::kLayers};
constexpr FlopConvention kLayerSumHalf{.attention_mask = AttentionMask::kCausalHalf,
                                       .backward = BackwardRule::kTwiceForward};
constexpr FlopConvention kLayerSumFull{.attention_mask = AttentionMask::kFull,
                                       .backward = BackwardRule::kTwiceForward};
constexpr FlopConvention kMegatron{.attention_mask = AttentionMask::kCausalHalf,
                                   .router = false,
                                   .backward = BackwardRule::kTwiceForward};
constexpr FlopConvention kMegatronOldGptOss{.attention_mask = AttentionMask::kCausalHalf,
                                            .local_attention = false,
                                            .router = false,
                                            .ffn_gate = false,
                                            .backward = BackwardRule::kTwiceForward};
constexpr FlopConvention kDeepSeekHalf{.attention_mask = AttentionMask::kCausalHalf,
                                       .router = false,
                                       .multi_token_prediction = false,
                                       .backward = BackwardRule::kTwiceForward};
constexpr FlopConvention kDeepSeekFull{.attention_mask = AttentionMask::kFull,
                                       .router = false,
                                       .multi_token_prediction = false,
                                       .backward = BackwardRule::kTwiceForward};
constexpr FlopConvention kNoPredictionHalf{.attention_mask = AttentionMask::kCausalHalf,
                                           .multi_token_prediction = false,
                                           .backward = BackwardRule::kTwiceForward};
constexpr FlopConvention kNoPredictionFull{.attention_mask = AttentionMask::kFull,
                                           .multi_token_prediction = false,
                                           .backward = BackwardRule::kTwiceForward};
constexpr FlopConvention kLoraTwoThirds{
    .attention_mask = AttentionMask::kNone, .router = false, .backward = BackwardRule::kInputsOnly};
constexpr FlopConvention kFrozenFour{.attention_mask = AttentionMask::kNone,
                                     .backward = BackwardRule::kEveryInput};
constexpr FlopConvention kLookupAsMatmul{.attention_mask = AttentionMask::kFull,
                                         .embedding_as_matmul = true,
                                         .backward = BackwardRule::kTwiceForward};
constexpr FlopConvention kDispatchCounts{.attention_mask = AttentionMask::kFull,
                                         .score_recompute = true};
constexpr FlopConvention kMultiplyAdds{.attention_mask = AttentionMask::kFull,
                                       .flops_per_multiply_add = 1};

constexpr std::array kKnown = {
    NamedConvention{"house", kHouse, "flopledger: the exact sum"},
    NamedConvention{"full_mask",
                    {.attention_mask = AttentionMask::kFull},
                    "the house convention with the whole square of attention"},
    NamedConvention{"PALM_6N", kParameters, "PaLM without attention; the rule of thumb 6N"},
    NamedConvention{"6N", kParameters, "the rule of thumb"},
    NamedConvention{"PALM_6N_12LHQT", kParametersAndFullMask, "PaLM, nanoGPT"},
    NamedConvention{"MOSAIC_MFU", kParametersAndFullMask, "llm-foundry"},
    NamedConvention{"PALM_8N_16LHQT", kParametersReplayed, "PaLM HFU with full recomputation"},
    NamedConvention{"MOSAIC_HFU_FULL", kParametersReplayed, "llm-foundry with checkpointing"},
    NamedConvention{"TITAN", kTitan, "torchtitan"},
    NamedConvention{"KOR_MODEL", kClassic, "Korthikanti 2022, model FLOPs"},
    NamedConvention{"KOR_HW_SELECTIVE", kClassicSelective, "Korthikanti 2022, hardware FLOPs"},
    NamedConvention{"NARAYANAN_F", kClassicReplayed, "Megatron-LM 2021, OneFlow, ALST"},
    NamedConvention{"MAXTEXT_CAUSAL", kLayerSumHalf, "MaxText"},
    NamedConvention{"EXACT_CAUSAL", kLayerSumHalf, "the layer sum with half the square"},
    NamedConvention{"MAXTEXT_MOE_CAUSAL", kLayerSumHalf, "MaxText, mixtures of experts"},
    NamedConvention{"MAXTEXT_MLA_MOE_CAUSAL", kLayerSumHalf, "MaxText, latent attention"},
    NamedConvention{"MLA_MOE_CAUSAL_MTP1", kLayerSumHalf, "DeepSeek-V3 with its prediction module"},
    NamedConvention{"MAXTEXT_FULL", kLayerSumFull, "MaxText before it halved the mask"},
    NamedConvention{"EXACT_FULL", kLayerSumFull, "nanotron; the layer sum with the whole square"},
    NamedConvention{"MAXTEXT_MOE_FULL", kLayerSumFull, "MaxText before it halved the mask"},
    NamedConvention{"MLA_MOE_FULL_MTP1", kLayerSumFull, "DeepSeek-V3 with its prediction module"},
    NamedConvention{"MLA_MOE_CAUSAL_MTP0", kNoPredictionHalf, "DeepSeek-V3, router counted"},
    NamedConvention{"MLA_MOE_FULL_MTP0", kNoPredictionFull, "DeepSeek-V3, router counted"},
    NamedConvention{"MEGATRON", kMegatron, "Megatron-LM, Megatron-Bridge"},
    NamedConvention{"MEGATRON_gptoss_glu3_swa", kMegatron, "Megatron-Bridge since 26.06"},
    NamedConvention{"MEGATRON_gptoss_glu2_noswa", kMegatronOldGptOss,
                    "Megatron-Bridge up to 26.04.01 for GPT-OSS"},
    NamedConvention{"MLA_MOE_CAUSAL_NOROUTER", kDeepSeekHalf, "DeepSeek-V3, causal column"},
    NamedConvention{"MLA_MOE_FULL_NOROUTER", kDeepSeekFull, "DeepSeek-V3, non-causal column"},
    NamedConvention{"LORA_2of3_LINEAR", kLoraTwoThirds, "Megatron-Bridge LoRA rows"},
    NamedConvention{"FROZEN4", kFrozenFour, "4 FLOPs a frozen parameter, 6 a trained one"},
    NamedConvention{"LOOKUP_AS_MATMUL", kLookupAsMatmul, "verl: 6 V h for the embedding"},
    NamedConvention{"FLOP_COUNTER_MODE", kDispatchCounts, "PyTorch's FlopCounterMode"},
    NamedConvention{"MULTIPLY_ADDS", kMultiplyAdds, "torchvision's model tables"},
};

}  // namespace

std::span<const NamedConvention> KnownConventions() { return kKnown; }

}  // namespace flopledger
