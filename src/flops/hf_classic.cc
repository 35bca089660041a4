#include <array>

#include "hf_families.h"

namespace flopledger::flops {
namespace {

TransformerDescription ReadGpt2(ConfigReader& config) {
  TransformerDescription d;
  d.layers = config.Require("n_layer");
  d.hidden = config.Require("n_embd");
  d.query_heads = config.Require("n_head");
  d.vocabulary = config.Require("vocab_size");
  // `n_inner: null` is how the family writes 4 x hidden.
  d.ffn = config.IntegerOr("n_inner", 4 * d.hidden);
  d.tied_embeddings = config.BooleanOr("tie_word_embeddings", true);
  d.minor = {.norm_bias = true,
             .attention_bias = true,
             .output_bias = true,
             .ffn_bias = true,
             .positions = config.Require("n_positions")};
  return d;
}

TransformerDescription ReadGptNeoX(ConfigReader& config) {
  TransformerDescription d = ReadCommonShape(config);
  d.key_value_heads = 0;  // the family has no such field; a stray one says nothing
  d.head_dim = 0;
  d.tied_embeddings = config.BooleanOr("tie_word_embeddings", false);
  const bool bias = config.BooleanOr("attention_bias", true);
  d.minor = {.norm_bias = true, .attention_bias = bias, .output_bias = bias, .ffn_bias = true};
  return d;
}

TransformerDescription ReadOpt(ConfigReader& config) {
  TransformerDescription d;
  d.layers = config.Require("num_hidden_layers");
  d.hidden = config.Require("hidden_size");
  d.query_heads = config.Require("num_attention_heads");
  d.ffn = config.Require("ffn_dim");
  d.vocabulary = config.Require("vocab_size");
  d.embedding_width = config.IntegerOr("word_embed_proj_dim", 0);
  d.tied_embeddings = config.BooleanOr("tie_word_embeddings", true);
  const bool bias = config.BooleanOr("enable_bias", true);
  d.minor = {.norm_bias = true,
             .final_norm = config.BooleanOr("do_layer_norm_before", true),
             .attention_bias = bias,
             .output_bias = bias,
             .ffn_bias = bias,
             // The family keeps two rows for padding in front of its position table.
             .positions = config.Require("max_position_embeddings") + 2};
  return d;
}

constexpr std::array kFamilies = {HfFamily{"gpt2", &ReadGpt2}, HfFamily{"gpt_neox", &ReadGptNeoX},
                                  HfFamily{"opt", &ReadOpt}};

}  // namespace

std::span<const HfFamily> HfClassicFamilies() { return kFamilies; }

}  // namespace flopledger::flops
