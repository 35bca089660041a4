#include "family_terms.h"
#include "findings.h"

namespace flopledger::flops {
namespace {

TransformerDescription Body(const VisionTransformerDescription& description) {
  TransformerDescription body{.layers = description.layers,
                              .hidden = description.hidden,
                              .query_heads = description.heads,
                              .ffn = description.ffn,
                              .gated_ffn = description.gated_ffn,
                              .causal = false};
  body.language_model_head = false;
  body.poolers = description.poolers;
  body.classes = description.classes;
  body.trainable = description.trainable;
  body.minor = {.norm_bias = true,
                .attention_bias = true,
                .output_bias = true,
                .ffn_bias = true,
                .other = description.special_tokens * description.hidden};
  return body;
}

std::int64_t PatchesOf(const VisionTransformerDescription& description) {
  const std::int64_t side = description.image_size / description.patch_size;
  return side * side;
}

}  // namespace

Result<void> Validate(const VisionTransformerDescription& description) {
  Findings findings("vision transformer");
  findings.Require("image_size", description.image_size);
  findings.Require("patch_size", description.patch_size);
  findings.Require("channels", description.channels);
  findings.Require("layers", description.layers);
  findings.Require("hidden", description.hidden);
  findings.Require("heads", description.heads);
  findings.Require("ffn", description.ffn);
  findings.Range("special_tokens", description.special_tokens);
  findings.Range("classes", description.classes);
  if (description.image_size > 1 << 20) {
    findings.Wrong("image_size is " + std::to_string(description.image_size) +
                   " (accepted: up to 2^20)");
  }
  if (description.channels > 1 << 16) {
    findings.Wrong("channels is " + std::to_string(description.channels) +
                   " (accepted: up to 2^16)");
  }
  if (description.patch_size > 0 && description.image_size < description.patch_size) {
    findings.Wrong("patch_size " + std::to_string(description.patch_size) +
                   " is larger than image_size " + std::to_string(description.image_size));
  }
  Result<void> verdict = findings.Verdict();
  if (!verdict.has_value()) return verdict;
  return Validate(Body(description));
}

Workload ExpandImages(const VisionTransformerDescription& description, const Workload& workload) {
  Workload expanded = workload;
  if (workload.samples > 0) {
    expanded.sequences.push_back(
        {.length = PatchesOf(description) + description.special_tokens, .count = workload.samples});
    expanded.samples = 0;
  }
  return expanded;
}

Result<TermList> CompileVisionTransformer(const VisionTransformerDescription& description,
                                          const FlopConvention& convention) {
  const TransformerDescription body = Normalize(Body(description), convention);
  TermBuilder builder(convention);
  const bool trains = body.trainable.embedding && body.trainable.frozen_layers == 0;
  const std::int64_t patch_values =
      description.patch_size * description.patch_size * description.channels;
  builder.Linear("patches", 1, {.in = patch_values, .out = body.hidden},
                 {.kind = QuantityKind::kBodyTokens, .size = description.special_tokens},
                 {.input = false, .weight = trains}, TermClass::kHead);
  const Exact positions =
      Exact(PatchesOf(description) + description.special_tokens + 1) * body.hidden;
  builder.Parameters(positions, positions);
  StackOptions options;
  options.input_needs_gradient = trains;
  const bool below = AddLayerStack(body, options, &builder);
  AddHead(body, below, &builder);
  AddMinorParameters(body, &builder);
  return builder.Finish(body.parameters, 0);
}

}  // namespace flopledger::flops
