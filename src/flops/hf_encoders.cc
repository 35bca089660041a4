#include <algorithm>
#include <array>
#include <string>

#include "flopledger/families.h"
#include "hf_families.h"

namespace flopledger::flops {
namespace {

/// Labels of a classifier: `num_labels`, or as many as `id2label` has.
std::int64_t ReadLabels(ConfigReader& config) {
  if (config.Has("num_labels")) return config.Require("num_labels");
  const std::int64_t labels = config.Count("id2label");
  if (labels == 0) config.Complain("num_labels or id2label is missing (a classifier needs one)");
  return labels;
}

/// First entry of `architectures`, which decides the head.
std::string ReadArchitecture(ConfigReader& config) {
  const std::vector<std::string> names = config.Texts("architectures");
  if (names.empty()) {
    config.Complain("architectures is missing (it decides the head)");
    return "";
  }
  return names.front();
}

bool EndsWith(const std::string& text, std::string_view end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

TransformerDescription ReadBert(ConfigReader& config) {
  TransformerDescription d = ReadCommonShape(config);
  d.key_value_heads = 0;  // the family has no such field; a stray one says nothing
  d.head_dim = 0;
  d.causal = config.BooleanOr("is_decoder", false);
  d.tied_embeddings = config.BooleanOr("tie_word_embeddings", true);
  d.minor = {.norm_bias = true,
             .attention_bias = true,
             .output_bias = true,
             .ffn_bias = true,
             .positions = config.Require("max_position_embeddings")};
  const std::string architecture = ReadArchitecture(config);
  if (EndsWith(architecture, "ForMaskedLM") || EndsWith(architecture, "LMHeadModel")) {
    d.head_transforms = 1;
  } else if (EndsWith(architecture, "ForPreTraining")) {
    d.head_transforms = 1;
    d.poolers = 1;
    d.classes = 2;
  } else if (EndsWith(architecture, "ForSequenceClassification")) {
    d.language_model_head = false;
    d.poolers = 1;
    d.classes = ReadLabels(config);
  } else if (EndsWith(architecture, "Model")) {
    d.language_model_head = false;
    d.poolers = 1;
  } else if (!architecture.empty()) {
    config.Complain("architectures has '" + architecture +
                    "' (accepted: ...ForMaskedLM, ...ForPreTraining, ...ForSequenceClassification, "
                    "...LMHeadModel, ...Model)");
  }
  return d;
}

TransformerDescription ReadFalcon(ConfigReader& config) {
  TransformerDescription d;
  d.layers = config.Require("num_hidden_layers");
  d.hidden = config.Require("hidden_size");
  d.query_heads = config.Require("num_attention_heads");
  d.vocabulary = config.Require("vocab_size");
  d.ffn = config.IntegerOr("ffn_hidden_size", 4 * d.hidden);
  d.tied_embeddings = config.BooleanOr("tie_word_embeddings", true);
  if (config.BooleanOr("new_decoder_architecture", false)) {
    d.key_value_heads = config.IntegerOr("num_kv_heads", d.query_heads);
  } else {
    d.key_value_heads = config.BooleanOr("multi_query", true) ? 1 : d.query_heads;
  }
  const bool bias = config.BooleanOr("bias", false);
  const bool parallel = config.BooleanOr("parallel_attn", true);
  const bool two_norms = config.BooleanOr("new_decoder_architecture", false) || !parallel;
  d.minor = {.norms_per_layer = two_norms ? 2 : 1,
             .norm_bias = true,
             .attention_bias = bias,
             .output_bias = bias,
             .ffn_bias = bias};
  return d;
}

constexpr std::array kFamilies = {HfFamily{"bert", &ReadBert}, HfFamily{"falcon", &ReadFalcon}};

}  // namespace

std::span<const HfFamily> HfEncoderFamilies() { return kFamilies; }

Result<ModelFlops> ReadT5(ConfigReader& config) {
  TransformerDescription encoder;
  encoder.hidden = config.Require("d_model");
  encoder.head_dim = config.Require("d_kv");
  encoder.query_heads = config.Require("num_heads");
  encoder.layers = config.Require("num_layers");
  encoder.ffn = config.Require("d_ff");
  encoder.vocabulary = config.Require("vocab_size");
  const std::string activation = config.Text("feed_forward_proj").value_or("relu");
  encoder.gated_ffn = activation.rfind("gated", 0) == 0;
  encoder.causal = false;
  TransformerDescription decoder = encoder;
  decoder.causal = true;
  decoder.layers = config.IntegerOr("num_decoder_layers", encoder.layers);
  decoder.tied_embeddings = config.BooleanOr("tie_word_embeddings", true);
  decoder.minor.norms_per_layer = 3;
  const std::int64_t buckets = config.IntegerOr("relative_attention_num_buckets", 32);
  encoder.minor.other = decoder.minor.other = buckets * encoder.query_heads;
  Result<void> read = config.Verdict();
  if (!read.has_value()) return tl::unexpected(read.error());
  return ModelFlops::FromEncoderDecoder({.encoder = encoder, .decoder = decoder});
}

Result<ModelFlops> ReadVit(ConfigReader& config) {
  VisionTransformerDescription vit{.image_size = config.Require("image_size"),
                                   .patch_size = config.Require("patch_size"),
                                   .channels = config.IntegerOr("num_channels", 3),
                                   .layers = config.Require("num_hidden_layers"),
                                   .hidden = config.Require("hidden_size"),
                                   .heads = config.Require("num_attention_heads"),
                                   .ffn = config.Require("intermediate_size")};
  const std::string architecture = ReadArchitecture(config);
  if (EndsWith(architecture, "ForImageClassification")) {
    vit.classes = ReadLabels(config);
  } else if (EndsWith(architecture, "Model")) {
    vit.poolers = 1;
  } else if (!architecture.empty()) {
    config.Complain("architectures has '" + architecture +
                    "' (accepted: ...ForImageClassification, ...Model)");
  }
  Result<void> read = config.Verdict();
  if (!read.has_value()) return tl::unexpected(read.error());
  return ModelFlops::FromVisionTransformer(vit);
}

}  // namespace flopledger::flops
