#include <algorithm>
#include <array>
#include <string>

#include "hf_families.h"

namespace flopledger::flops {
namespace {

TransformerDescription ReadMixtral(ConfigReader& config) {
  TransformerDescription d = ReadCommonShape(config);
  d.gated_ffn = true;
  d.tied_embeddings = config.BooleanOr("tie_word_embeddings", false);
  d.experts = ExpertShape{.experts = config.Require("num_local_experts"),
                          .active = config.Require("num_experts_per_tok"),
                          .expert_ffn = d.ffn};
  d.window = config.IntegerOr("sliding_window", 0);
  return d;
}

/// Which layers have experts: every `decoder_sparse_step`-th, less those of `mlp_only_layers`.
void ReadQwenExpertLayers(ConfigReader& config, TransformerDescription* d) {
  const std::int64_t step = std::max<std::int64_t>(config.IntegerOr("decoder_sparse_step", 1), 1);
  const std::vector<std::int64_t> dense = config.Integers("mlp_only_layers");
  if (step == 1 && dense.empty()) return;
  if (d->layers > 1 << 20) {
    config.Complain("num_hidden_layers is " + std::to_string(d->layers) +
                    " (accepted with mixed layers: up to 2^20)");
    return;
  }
  for (std::int64_t i = 0; i < d->layers; ++i) {
    const bool experts =
        (i + 1) % step == 0 && std::find(dense.begin(), dense.end(), i) == dense.end();
    const FfnKind kind = experts ? FfnKind::kExperts : FfnKind::kDense;
    if (!d->runs.empty() && d->runs.back().feed_forward == kind) {
      ++d->runs.back().count;
    } else {
      d->runs.push_back({.count = 1, .feed_forward = kind});
    }
  }
}

TransformerDescription ReadQwen2Moe(ConfigReader& config) {
  TransformerDescription d = ReadCommonShape(config);
  d.gated_ffn = true;
  d.tied_embeddings = config.BooleanOr("tie_word_embeddings", false);
  d.minor.attention_bias = true;
  d.experts = ExpertShape{.experts = config.Require("num_experts"),
                          .active = config.Require("num_experts_per_tok"),
                          .expert_ffn = config.Require("moe_intermediate_size"),
                          .shared = 1,
                          .shared_ffn = config.Require("shared_expert_intermediate_size"),
                          .shared_gate = true};
  if (config.BooleanOr("use_sliding_window", false)) {
    config.Complain("use_sliding_window is true (accepted for this family: false)");
  }
  ReadQwenExpertLayers(config, &d);
  return d;
}

TransformerDescription ReadQwen3Moe(ConfigReader& config) {
  TransformerDescription d = ReadCommonShape(config);
  d.head_dim = config.Require("head_dim");
  d.gated_ffn = true;
  d.tied_embeddings = config.BooleanOr("tie_word_embeddings", false);
  // Newer writers of this family name the count as Mixtral does.
  const bool renamed = config.Has("num_local_experts") && !config.Has("num_experts");
  d.experts = ExpertShape{.experts = config.Require(renamed ? "num_local_experts" : "num_experts"),
                          .active = config.Require("num_experts_per_tok"),
                          .expert_ffn = config.Require("moe_intermediate_size")};
  d.minor.other = CountOf(Exact(2) * d.head_dim * d.layers);
  const bool bias = config.BooleanOr("attention_bias", false);
  d.minor.attention_bias = bias;
  d.minor.output_bias = bias;
  if (config.BooleanOr("use_sliding_window", false)) {
    config.Complain("use_sliding_window is true (accepted for this family: false)");
  }
  ReadQwenExpertLayers(config, &d);
  return d;
}

TransformerDescription ReadDeepSeek(ConfigReader& config) {
  TransformerDescription d;
  d.layers = config.Require("num_hidden_layers");
  d.hidden = config.Require("hidden_size");
  d.query_heads = config.Require("num_attention_heads");
  d.ffn = config.Require("intermediate_size");
  d.vocabulary = config.Require("vocab_size");
  d.gated_ffn = true;
  d.tied_embeddings = config.BooleanOr("tie_word_embeddings", false);
  d.latent_attention = LatentAttention{.query_rank = config.IntegerOr("q_lora_rank", 0),
                                       .key_value_rank = config.Require("kv_lora_rank"),
                                       .nope_head_dim = config.Require("qk_nope_head_dim"),
                                       .rope_head_dim = config.Require("qk_rope_head_dim"),
                                       .value_head_dim = config.Require("v_head_dim")};
  d.minor.other = CountOf(
      (Exact(d.latent_attention->query_rank) + d.latent_attention->key_value_rank) * d.layers);
  d.experts = ExpertShape{.experts = config.Require("n_routed_experts"),
                          .active = config.Require("num_experts_per_tok"),
                          .expert_ffn = config.Require("moe_intermediate_size"),
                          .shared = config.IntegerOr("n_shared_experts", 0)};
  const std::int64_t dense = std::min(config.Require("first_k_dense_replace"), d.layers);
  if (config.IntegerOr("moe_layer_freq", 1) != 1) {
    config.Complain("moe_layer_freq is not 1 (accepted: 1)");
  }
  if (dense > 0) d.runs.push_back({.count = dense});
  if (dense < d.layers) {
    d.runs.push_back({.count = d.layers - dense, .feed_forward = FfnKind::kExperts});
  }
  return d;
}

TransformerDescription ReadDeepSeekV3(ConfigReader& config) {
  TransformerDescription d = ReadDeepSeek(config);
  // Published configurations name the prediction modules, the library's own models drop them: they
  // are counted where they are named, for they are trained.
  d.prediction_modules = config.IntegerOr("num_nextn_predict_layers", 0);
  // The selection bias of each expert.
  const std::int64_t mixed = d.runs.empty() ? 0 : d.runs.back().count;
  d.minor.other = CountOf(Exact(d.experts->experts) * mixed + d.minor.other);
  return d;
}

constexpr std::array kFamilies = {
    HfFamily{"mixtral", &ReadMixtral},        HfFamily{"qwen2_moe", &ReadQwen2Moe},
    HfFamily{"qwen3_moe", &ReadQwen3Moe},     HfFamily{"deepseek_v2", &ReadDeepSeek},
    HfFamily{"deepseek_v3", &ReadDeepSeekV3}, HfFamily{"kimi_k2", &ReadDeepSeekV3}};

}  // namespace

std::span<const HfFamily> HfExpertFamilies() { return kFamilies; }

}  // namespace flopledger::flops
