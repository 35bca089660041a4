#include "family_terms.h"
#include "findings.h"

namespace flopledger::flops {

Result<void> Validate(const DiffusionTransformerDescription& description) {
  Findings findings("diffusion transformer");
  findings.Require("layers", description.layers);
  findings.Require("hidden", description.hidden);
  findings.Require("heads", description.heads);
  findings.Require("ffn", description.ffn);
  findings.Require("patch_values", description.patch_values);
  findings.Range("output_values", description.output_values);
  findings.Range("time_features", description.time_features);
  findings.Range("text_width", description.text_width);
  for (const auto& [name, value] : {std::pair{"modulation_chunks", description.modulation_chunks},
                                    std::pair{"final_chunks", description.final_chunks}}) {
    if (value < 0 || value > 1024) {
      findings.Wrong(std::string(name) + " is " + std::to_string(value) + " (accepted: 0 to 1024)");
    }
  }
  if (description.heads > 0 && description.hidden % description.heads != 0) {
    findings.Wrong("hidden " + std::to_string(description.hidden) + " is no multiple of heads " +
                   std::to_string(description.heads));
  }
  return findings.Verdict();
}

Result<TermList> CompileDiffusionTransformer(const DiffusionTransformerDescription& d,
                                             const FlopConvention& convention) {
  TransformerDescription body{.layers = d.layers,
                              .hidden = d.hidden,
                              .query_heads = d.heads,
                              .ffn = d.ffn,
                              .causal = false};
  body = Normalize(body, convention);
  TermBuilder builder(convention);
  const Quantity sequences{.kind = QuantityKind::kSequences};
  const Gradients first{.input = false, .weight = true};
  builder.Linear("patches", 1, {.in = d.patch_values, .out = d.hidden}, {}, first,
                 TermClass::kHead);
  if (d.time_features > 0) {
    builder.Linear("time", 1, {.in = d.time_features, .out = d.hidden}, sequences, first,
                   TermClass::kHead);
    builder.Linear("time", 1, {.in = d.hidden, .out = d.hidden}, sequences, {}, TermClass::kHead);
  }
  StackOptions options;
  options.cross_attention = d.text_width > 0;
  options.source_needs_gradient = false;  // the text encoder is frozen
  options.source_hidden = d.text_width;
  AddLayerStack(body, options, &builder);
  // Modulation starts from the time embedding of the sample: once a sample, whatever its length.
  const Gradients modulation{.input = d.time_features > 0, .weight = true};
  if (d.modulation_chunks > 0) {
    builder.Linear("layers.modulation", d.layers,
                   {.in = d.hidden, .out = d.modulation_chunks * d.hidden}, sequences, modulation);
  }
  if (d.final_chunks > 0) {
    builder.Linear("output", 1, {.in = d.hidden, .out = d.final_chunks * d.hidden}, sequences,
                   modulation, TermClass::kHead);
  }
  const std::int64_t out = d.output_values > 0 ? d.output_values : d.patch_values;
  builder.Linear("output", 1, {.in = d.hidden, .out = out}, {}, {}, TermClass::kHead);
  return builder.Finish(0, 0);
}

Result<void> Validate(const UNetDescription& description) {
  Findings findings("UNet");
  if (description.convolutions.empty()) findings.Require("convolutions", 0);
  CheckConvolutions(description.convolutions, &findings);
  CheckDense(description.dense, &findings);
  for (std::size_t i = 0; i < description.attention.size(); ++i) {
    const UNetAttention& block = description.attention[i];
    const std::string name = "attention[" + std::to_string(i) + "].";
    findings.Require(name + "tokens", block.tokens);
    findings.Require(name + "hidden", block.hidden);
    findings.Require(name + "heads", block.heads);
    findings.Range(name + "ffn", block.ffn);
    findings.Range(name + "text_tokens", block.text_tokens);
    if (block.text_tokens > 0) findings.Require(name + "text_width", block.text_width);
    findings.Range(name + "projections", block.projections);
    findings.Require(name + "count", block.count);
    if (block.heads > 0 && block.hidden % block.heads != 0) {
      findings.Wrong(name + "hidden is no multiple of heads");
    }
  }
  return findings.Verdict();
}

namespace {

void AddUNetAttention(const UNetAttention& block, TermBuilder* builder) {
  const Quantity samples{.kind = QuantityKind::kSamples};
  const std::int64_t h = block.hidden;
  const Exact self = Exact(2) * block.tokens * block.tokens;
  const Exact cross = Exact(2) * block.tokens * block.text_tokens;
  const AttentionCore core{
      .heads = block.heads, .score_dim = h / block.heads, .value_dim = h / block.heads};
  const auto linear = [&](std::string_view part, std::int64_t in, std::int64_t out,
                          std::int64_t rows, bool input, std::int64_t times) {
    builder->Linear(part, block.count * times, {.in = in, .out = out, .rows = rows}, samples,
                    {.input = input, .weight = true});
  };
  linear("attention.projections", h, h, block.tokens, true, 4 + block.projections);
  AttentionCore self_core = core;
  self_core.half_pairs_per_unit = self;
  builder->Core("attention.core", block.count, samples, self_core);
  if (block.text_tokens > 0) {
    linear("cross_attention.projections", h, h, block.tokens, true, 2);
    linear("cross_attention.projections", block.text_width, h, block.text_tokens, false, 2);
    AttentionCore cross_core = core;
    cross_core.half_pairs_per_unit = cross;
    builder->Core("cross_attention.core", block.count, samples, cross_core);
  }
  if (block.ffn > 0) {
    const bool gate = block.gated_ffn && builder->convention().ffn_gate;
    linear("ffn", h, block.ffn, block.tokens, true, gate ? 2 : 1);
    linear("ffn", block.ffn, h, block.tokens, true, 1);
  }
}

}  // namespace

Result<TermList> CompileUNet(const UNetDescription& description, const FlopConvention& convention) {
  TermBuilder builder(convention);
  bool below = false;
  AddConvolutions(description.convolutions, &below, &builder);
  for (const UNetAttention& block : description.attention) AddUNetAttention(block, &builder);
  bool time_below = false;
  AddDense("time", description.dense, &time_below, &builder);
  return builder.Finish(0, 0);
}

}  // namespace flopledger::flops
