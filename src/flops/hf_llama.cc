#include <array>

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

constexpr std::array kFamilies = {HfFamily{"llama", &ReadLlama}};

}  // namespace

std::span<const HfFamily> HfLlamaFamilies() { return kFamilies; }

}  // namespace flopledger::flops
