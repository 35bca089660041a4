#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "hf_families.h"

namespace flopledger::flops {

TransformerDescription ReadCommonShape(ConfigReader& config) {
  TransformerDescription d;
  d.layers = config.Require("num_hidden_layers");
  d.hidden = config.Require("hidden_size");
  d.query_heads = config.Require("num_attention_heads");
  d.key_value_heads = config.IntegerOr("num_key_value_heads", 0);
  d.head_dim = config.IntegerOr("head_dim", 0);
  d.ffn = config.Require("intermediate_size");
  d.vocabulary = config.Require("vocab_size");
  return d;
}

namespace {

constexpr std::int64_t kMostListedLayers = 1 << 20;

/// Runs of alike layers from one flag a layer.
std::vector<LayerRun> RunsOf(const std::vector<LayerRun>& layers) {
  std::vector<LayerRun> runs;
  for (const LayerRun& layer : layers) {
    if (!runs.empty()) {
      LayerRun last = runs.back();
      last.count = layer.count;
      if (last == layer) {
        ++runs.back().count;
        continue;
      }
    }
    runs.push_back(layer);
  }
  return runs;
}

LayerRun LocalLayer(std::int64_t window) {
  return {.count = 1, .span = AttentionSpan::kWindow, .span_size = window};
}

/// One entry a layer from `layer_types`; `pattern` (every n-th is global) where it is not given.
/// No windows: empty.
std::vector<LayerRun> ReadSpans(ConfigReader& config, std::int64_t layers, std::int64_t window,
                                std::int64_t pattern) {
  if (layers > kMostListedLayers) {
    config.Complain("num_hidden_layers is " + std::to_string(layers) +
                    " (accepted with mixed attention: up to 2^20)");
    return {};
  }
  std::vector<LayerRun> list;
  const std::vector<std::string> types = config.Texts("layer_types");
  if (!types.empty() && static_cast<std::int64_t>(types.size()) != layers) {
    config.Complain("layer_types has " + std::to_string(types.size()) +
                    " entries, num_hidden_layers is " + std::to_string(layers));
    return {};
  }
  for (std::int64_t i = 0; i < layers; ++i) {
    bool local = pattern > 0 && (i + 1) % pattern != 0;
    AttentionSpan span = AttentionSpan::kWindow;
    if (!types.empty()) {
      const std::string& type = types[static_cast<std::size_t>(i)];
      local = type == "sliding_attention" || type == "chunked_attention";
      if (type == "chunked_attention") span = AttentionSpan::kChunk;
      if (!local && type != "full_attention") {
        config.Complain("layer_types has '" + type +
                        "' (accepted: full_attention, sliding_attention, chunked_attention)");
        return {};
      }
    }
    LayerRun layer{.count = 1};
    if (local) {
      layer = LocalLayer(window);
      layer.span = span;
    }
    list.push_back(layer);
  }
  if (window == 0) {
    for (const LayerRun& layer : list) {
      if (layer.span == AttentionSpan::kWhole) continue;
      config.Complain("a layer is local, but sliding_window is not given");
      return {};
    }
  }
  return list;
}

TransformerDescription ReadLlama(ConfigReader& config) {
  TransformerDescription d = ReadCommonShape(config);
  d.gated_ffn = true;
  d.tied_embeddings = config.BooleanOr("tie_word_embeddings", false);
  const bool bias = config.BooleanOr("attention_bias", false);
  d.minor.attention_bias = bias;
  d.minor.output_bias = bias;
  d.minor.ffn_bias = config.BooleanOr("mlp_bias", false);
  return d;
}

TransformerDescription ReadMistral(ConfigReader& config) {
  TransformerDescription d = ReadLlama(config);
  d.window = config.IntegerOr("sliding_window", 0);
  return d;
}

TransformerDescription ReadPhi3(ConfigReader& config) { return ReadMistral(config); }

/// Windows of Qwen: off unless `use_sliding_window`; then from `max_window_layers` upwards.
void ReadQwenWindows(ConfigReader& config, TransformerDescription* d) {
  if (!config.BooleanOr("use_sliding_window", false)) return;
  const std::int64_t window = config.Require("sliding_window");
  if (config.Has("layer_types")) {
    d->runs = RunsOf(ReadSpans(config, d->layers, window, 0));
    return;
  }
  const std::int64_t whole = config.Require("max_window_layers");
  if (whole > 0) d->runs.push_back({.count = std::min(whole, d->layers)});
  if (whole < d->layers) {
    LayerRun local = LocalLayer(window);
    local.count = d->layers - whole;
    d->runs.push_back(local);
  }
}

TransformerDescription ReadQwen2(ConfigReader& config) {
  TransformerDescription d = ReadLlama(config);
  d.minor.attention_bias = true;
  d.minor.output_bias = false;
  ReadQwenWindows(config, &d);
  return d;
}

TransformerDescription ReadQwen3(ConfigReader& config) {
  TransformerDescription d = ReadLlama(config);
  d.head_dim = config.Require("head_dim");
  // A norm over each head of queries and keys.
  d.minor.other = CountOf(Exact(2) * d.head_dim * d.layers);
  ReadQwenWindows(config, &d);
  return d;
}

TransformerDescription ReadGemma(ConfigReader& config) {
  TransformerDescription d = ReadCommonShape(config);
  d.head_dim = config.Require("head_dim");
  d.gated_ffn = true;
  d.tied_embeddings = config.BooleanOr("tie_word_embeddings", true);
  return d;
}

TransformerDescription ReadGemma2(ConfigReader& config) {
  TransformerDescription d = ReadGemma(config);
  d.minor.norms_per_layer = 4;
  d.runs = RunsOf(ReadSpans(config, d.layers, config.Require("sliding_window"), 2));
  return d;
}

TransformerDescription ReadGemma3(ConfigReader& config) {
  TransformerDescription d = ReadGemma(config);
  d.minor.norms_per_layer = 4;
  d.minor.other = CountOf(Exact(2) * d.head_dim * d.layers);
  std::int64_t pattern = 0;
  if (!config.Has("layer_types")) {
    pattern = config.Has("_sliding_window_pattern") ? config.Require("_sliding_window_pattern")
                                                    : config.Require("sliding_window_pattern");
  }
  d.runs = RunsOf(ReadSpans(config, d.layers, config.Require("sliding_window"), pattern));
  return d;
}

TransformerDescription ReadGptOss(ConfigReader& config) {
  TransformerDescription d = ReadCommonShape(config);
  d.head_dim = config.Require("head_dim");
  d.gated_ffn = true;
  d.tied_embeddings = config.BooleanOr("tie_word_embeddings", false);
  d.experts = ExpertShape{.experts = config.Require("num_local_experts"),
                          .active = config.Require("num_experts_per_tok"),
                          .expert_ffn = d.ffn};
  const bool bias = config.BooleanOr("attention_bias", true);
  d.minor.attention_bias = bias;
  d.minor.output_bias = bias;
  // Per layer: a sink a head, the router's bias, biases of each expert.
  d.minor.other =
      d.layers * (d.query_heads + d.experts->experts + d.experts->experts * (2 * d.ffn + d.hidden));
  const std::int64_t pattern = config.Has("layer_types") ? 0 : 2;
  std::vector<LayerRun> layers =
      ReadSpans(config, d.layers, config.Require("sliding_window"), pattern);
  for (LayerRun& layer : layers) layer.feed_forward = FfnKind::kExperts;
  d.runs = RunsOf(layers);
  return d;
}

TransformerDescription ReadLlama4(ConfigReader& config) {
  TransformerDescription d = ReadLlama(config);
  const std::int64_t dense = config.Require("intermediate_size_mlp");
  const std::int64_t experts = config.Require("num_local_experts");
  d.experts = ExpertShape{.experts = experts,
                          .active = config.Require("num_experts_per_tok"),
                          .expert_ffn = d.ffn,
                          .shared = 1};
  d.ffn = dense;
  const std::int64_t chunk = config.Require("attention_chunk_size");
  std::vector<LayerRun> layers;
  if (config.Has("layer_types")) {
    layers = ReadSpans(config, d.layers, chunk, 0);
  } else {
    layers = ReadSpans(config, d.layers, chunk, config.Require("no_rope_layer_interval"));
    for (LayerRun& layer : layers) {
      if (layer.span == AttentionSpan::kWindow) layer.span = AttentionSpan::kChunk;
    }
  }
  const std::vector<std::int64_t> listed = config.Integers("moe_layers");
  const std::int64_t step = listed.empty() ? config.Require("interleave_moe_layer_step") : 0;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (step > 0 && (static_cast<std::int64_t>(i) + 1) % step == 0) {
      layers[i].feed_forward = FfnKind::kExperts;
    }
  }
  for (std::int64_t index : listed) {
    if (index < 0 || index >= static_cast<std::int64_t>(layers.size())) {
      config.Complain("moe_layers has " + std::to_string(index) + " (accepted: layer indices)");
      break;
    }
    layers[static_cast<std::size_t>(index)].feed_forward = FfnKind::kExperts;
  }
  d.runs = RunsOf(layers);
  return d;
}

constexpr std::array kFamilies = {
    HfFamily{"llama", &ReadLlama},    HfFamily{"mistral", &ReadMistral},
    HfFamily{"phi3", &ReadPhi3},      HfFamily{"qwen2", &ReadQwen2},
    HfFamily{"qwen3", &ReadQwen3},    HfFamily{"gemma", &ReadGemma},
    HfFamily{"gemma2", &ReadGemma2},  HfFamily{"gemma3_text", &ReadGemma3},
    HfFamily{"gpt_oss", &ReadGptOss}, HfFamily{"llama4_text", &ReadLlama4}};

}  // namespace

std::span<const HfFamily> HfLlamaFamilies() { return kFamilies; }

}  // namespace flopledger::flops
