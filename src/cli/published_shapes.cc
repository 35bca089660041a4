#include "published_shapes.h"

#include <array>
#include <utility>

namespace flopledger::cli {
namespace {

TransformerDescription Llama(std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                             std::int64_t ffn) {
  return {.layers = layers,
          .hidden = hidden,
          .query_heads = heads,
          .key_value_heads = 8,
          .head_dim = 128,
          .ffn = ffn,
          .gated_ffn = true,
          .vocabulary = 128256};
}

TransformerDescription Qwen3Experts(std::int64_t layers, std::int64_t hidden, std::int64_t heads,
                                    std::int64_t expert_ffn) {
  TransformerDescription d{.layers = layers,
                           .hidden = hidden,
                           .query_heads = heads,
                           .key_value_heads = 4,
                           .head_dim = 128,
                           .gated_ffn = true,
                           .vocabulary = 151936};
  d.experts = ExpertShape{.experts = 128, .active = 8, .expert_ffn = expert_ffn};
  return d;
}

/// Latent attention with 128/64/128 head dimensions and rank 512, dense layers first.
TransformerDescription DeepSeek(std::int64_t layers, std::int64_t dense, std::int64_t hidden,
                                std::int64_t heads, std::int64_t query_rank,
                                const ExpertShape& experts) {
  TransformerDescription d{
      .layers = layers, .hidden = hidden, .query_heads = heads, .gated_ffn = true};
  d.latent_attention = LatentAttention{.query_rank = query_rank,
                                       .key_value_rank = 512,
                                       .nope_head_dim = 128,
                                       .rope_head_dim = 64,
                                       .value_head_dim = 128};
  d.experts = experts;
  d.runs = {{.count = dense}, {.count = layers - dense, .feed_forward = FfnKind::kExperts}};
  return d;
}

TransformerDescription DeepSeekV3() {
  TransformerDescription d = DeepSeek(
      61, 3, 7168, 128, 1536, {.experts = 256, .active = 8, .expert_ffn = 2048, .shared = 1});
  d.ffn = 18432;
  d.vocabulary = 129280;
  d.prediction_modules = 1;
  return d;
}

TransformerDescription KimiK2() {
  TransformerDescription d = DeepSeek(
      61, 1, 7168, 64, 1536, {.experts = 384, .active = 8, .expert_ffn = 2048, .shared = 1});
  d.ffn = 18432;
  d.vocabulary = 163840;
  return d;
}

TransformerDescription DeepSeek2Lite() {
  TransformerDescription d =
      DeepSeek(27, 1, 2048, 16, 0, {.experts = 64, .active = 6, .expert_ffn = 1408, .shared = 2});
  d.ffn = 10944;
  d.vocabulary = 102400;
  return d;
}

TransformerDescription GptOss() {
  TransformerDescription d{.layers = 36,
                           .hidden = 2880,
                           .query_heads = 64,
                           .key_value_heads = 8,
                           .head_dim = 64,
                           .gated_ffn = true,
                           .vocabulary = 201088};
  d.experts = ExpertShape{.experts = 128, .active = 4, .expert_ffn = 2880};
  for (int pair = 0; pair < 18; ++pair) {
    d.runs.push_back({.count = 1,
                      .span = AttentionSpan::kWindow,
                      .span_size = 128,
                      .feed_forward = FfnKind::kExperts});
    d.runs.push_back({.count = 1, .feed_forward = FfnKind::kExperts});
  }
  return d;
}

}  // namespace

std::optional<TransformerDescription> FindPublicShape(std::string_view name) {
  if (name == "llama3_8b") return Llama(32, 4096, 32, 14336);
  if (name == "llama3_70b") return Llama(80, 8192, 64, 28672);
  if (name == "llama31_405b") return Llama(126, 16384, 128, 53248);
  if (name == "qwen30") return Qwen3Experts(48, 2048, 32, 768);
  if (name == "qwen235") return Qwen3Experts(94, 4096, 64, 1536);
  if (name == "dsv3") return DeepSeekV3();
  if (name == "kimi") return KimiK2();
  if (name == "deepseek2-16b") return DeepSeek2Lite();
  if (name == "gptoss") return GptOss();
  return std::nullopt;
}

}  // namespace flopledger::cli
