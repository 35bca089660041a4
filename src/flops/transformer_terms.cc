#include "transformer_terms.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "layer_terms.h"

namespace flopledger::flops {
namespace {

bool LayersTrain(const TransformerDescription& d) {
  const TrainableParts& t = d.trainable;
  return t.attention || t.ffn || t.norms || (t.router && d.experts.has_value()) ||
         (d.lora.has_value() && d.lora->rank > 0);
}

/// Cuts `run`, which begins at layer `first`, where what needs a gradient changes.
void AddRun(const LayerRun& run, std::int64_t first, const StackOptions& options,
            const TransformerDescription& d, LayerTerms* terms) {
  const bool embedding_trains = options.input_needs_gradient;
  const bool source_trains = options.cross_attention && options.source_needs_gradient;
  const std::int64_t frozen = std::clamp<std::int64_t>(d.trainable.frozen_layers, 0, d.layers);
  const bool trains = LayersTrain(d);
  const std::int64_t end = first + run.count;
  const auto add = [&](std::int64_t from, std::int64_t to, bool input, bool segment_trains) {
    LayerRun part = run;
    part.count = std::min(to, end) - std::max(from, first);
    if (part.count <= 0) return;
    terms->Add({.run = part, .input_needs_gradient = input, .trains = segment_trains});
  };
  add(0, frozen, false, false);
  add(frozen, frozen + 1, embedding_trains, trains);
  add(frozen + 1, d.layers, embedding_trains || trains || source_trains, trains);
}

std::int64_t RoundUp(std::int64_t value, std::int64_t multiple) {
  return multiple > 1 ? (value + multiple - 1) / multiple * multiple : value;
}

}  // namespace

bool AddEmbedding(const TransformerDescription& d, TermBuilder* builder) {
  const bool trains = d.trainable.embedding && d.trainable.frozen_layers == 0;
  const std::int64_t width = d.embedding_width > 0 ? d.embedding_width : d.hidden;
  const Exact tables = Exact(d.vocabulary) * width + Exact(d.minor.positions) * d.hidden;
  builder->Parameters(tables, tables);
  if (builder->convention().embedding_as_matmul) {
    builder->Linear("embedding", 1,
                    {.in = d.vocabulary, .out = width, .counts_as_parameter = false}, {},
                    {.input = false, .weight = trains}, TermClass::kHead);
  }
  if (width == d.hidden) return trains;
  builder->Linear("embedding", 1, {.in = width, .out = d.hidden}, {},
                  {.input = trains, .weight = trains}, TermClass::kHead);
  return trains;
}

void AddHead(const TransformerDescription& d, bool below, TermBuilder* builder) {
  const bool trains = d.trainable.head;
  const Quantity rows{.kind = QuantityKind::kLogitRows};
  bool input = below || d.trainable.norms;
  for (std::int64_t i = 0; i < d.head_transforms; ++i) {
    builder->Linear("head", 1, {.in = d.hidden, .out = d.hidden}, rows,
                    {.input = input, .weight = trains}, TermClass::kHead);
    input = input || trains;
  }
  std::int64_t width = d.hidden;
  if (d.embedding_width > 0 && d.embedding_width != d.hidden) {
    width = d.embedding_width;
    builder->Linear("head", 1, {.in = d.hidden, .out = width}, rows,
                    {.input = input, .weight = trains}, TermClass::kHead);
    input = input || trains;
  }
  if (d.vocabulary > 0 && d.language_model_head) {
    builder->Linear("head", 1,
                    {.in = width,
                     .out = RoundUp(d.vocabulary, builder->convention().vocabulary_multiple),
                     .counts_as_parameter = !d.tied_embeddings},
                    rows, {.input = input, .weight = trains}, TermClass::kHead);
    if (d.lora.has_value() && d.lora->rank > 0 && d.lora->head) {
      builder->Linear("head.adapters", 1, {.in = width, .out = d.lora->rank}, rows,
                      {.input = input, .weight = true}, TermClass::kHead);
      builder->Linear("head.adapters", 1, {.in = d.lora->rank, .out = d.vocabulary}, rows, {},
                      TermClass::kHead);
    }
  }
  const Quantity sequences{.kind = QuantityKind::kSequences};
  input = below || d.trainable.norms;
  for (std::int64_t i = 0; i < d.poolers; ++i) {
    builder->Linear("pooler", 1, {.in = d.hidden, .out = d.hidden}, sequences,
                    {.input = input, .weight = trains}, TermClass::kHead);
    input = input || trains;
  }
  if (d.classes > 0) {
    builder->Linear("classifier", 1, {.in = d.hidden, .out = d.classes}, sequences,
                    {.input = input, .weight = trains}, TermClass::kHead);
  }
}

namespace {

void AddPredictionModules(const TransformerDescription& d, TermBuilder* builder) {
  if (d.prediction_modules == 0 || !builder->convention().multi_token_prediction) return;
  const bool below = true;  // the trunk or the module's own norms train
  StackOptions options;
  options.part_prefix = "multi_token_prediction";
  LayerTerms terms(d, options, builder);
  LayerRun run = d.runs.back();
  run.count = d.prediction_modules;
  builder->Linear("multi_token_prediction.projection", d.prediction_modules,
                  {.in = 2 * d.hidden, .out = d.hidden}, {},
                  {.input = below, .weight = d.trainable.attention});
  terms.Add({.run = run, .input_needs_gradient = below, .trains = true});
  builder->Linear("multi_token_prediction.head", d.prediction_modules,
                  {.in = d.hidden,
                   .out = RoundUp(d.vocabulary, builder->convention().vocabulary_multiple),
                   .counts_as_parameter = false},
                  {.kind = QuantityKind::kLogitRows}, {.input = true, .weight = d.trainable.head},
                  TermClass::kHead);
}

}  // namespace

void AddMinorParameters(const TransformerDescription& d, TermBuilder* builder) {
  const MinorParameters& minor = d.minor;
  Exact all = minor.other;
  if (minor.final_norm) all += Exact(d.hidden) * (minor.norm_bias ? 2 : 1);
  Exact per_layer = 0;
  if (minor.attention_bias) {
    per_layer += Exact(d.query_heads + d.key_value_heads) * d.head_dim;
    per_layer += Exact(d.key_value_heads) * d.value_head_dim;
  }
  if (minor.output_bias) per_layer += d.hidden;
  if (minor.ffn_bias) per_layer += Exact(d.ffn) * (d.gated_ffn ? 2 : 1) + d.hidden;
  all += per_layer * d.layers;
  builder->Parameters(all, all);
}

bool AddLayerStack(const TransformerDescription& d, const StackOptions& options,
                   TermBuilder* builder) {
  LayerTerms terms(d, options, builder);
  std::int64_t first = 0;
  for (const LayerRun& run : d.runs) {
    AddRun(run, first, options, d, &terms);
    first += run.count;
  }
  return options.input_needs_gradient || (LayersTrain(d) && d.trainable.frozen_layers < d.layers);
}

TransformerDescription Normalize(const TransformerDescription& description,
                                 const FlopConvention& convention) {
  TransformerDescription d = description;
  if (convention.shape == CountedShape::kClassicGpt) {
    d.key_value_heads = d.query_heads;
    d.head_dim = d.query_heads > 0 ? d.hidden / d.query_heads : 0;
    d.value_head_dim = d.head_dim;
    d.ffn = 4 * d.hidden;
    d.gated_ffn = false;
    d.output_gate = false;
    d.latent_attention.reset();
    d.experts.reset();
    d.indexer.reset();
    d.runs.clear();
    d.window = 0;
  }
  if (d.key_value_heads == 0) d.key_value_heads = d.query_heads;
  if (d.head_dim == 0 && d.query_heads > 0) d.head_dim = d.hidden / d.query_heads;
  if (d.value_head_dim == 0) d.value_head_dim = d.head_dim;
  if (d.runs.empty()) {
    LayerRun run{.count = d.layers};
    if (d.window > 0) {
      run.span = AttentionSpan::kWindow;
      run.span_size = d.window;
    }
    if (d.experts.has_value()) run.feed_forward = FfnKind::kExperts;
    d.runs.push_back(run);
  }
  if (!convention.local_attention) {
    for (LayerRun& run : d.runs) run.span = AttentionSpan::kWhole;
  }
  return d;
}

Result<TermList> CompileTransformer(const TransformerDescription& description,
                                    const FlopConvention& convention) {
  const TransformerDescription d = Normalize(description, convention);
  TermBuilder builder(convention);
  StackOptions options;
  options.input_needs_gradient = AddEmbedding(d, &builder);
  const bool below = AddLayerStack(d, options, &builder);
  AddHead(d, below, &builder);
  AddPredictionModules(d, &builder);
  AddMinorParameters(d, &builder);
  const std::int64_t width = d.embedding_width > 0 ? d.embedding_width : d.hidden;
  const bool lookup_only = !d.tied_embeddings || !d.language_model_head;
  return builder.Finish(d.parameters, lookup_only ? d.vocabulary * width : 0);
}

std::string Describe(const TransformerDescription& description) {
  const TransformerDescription d = Normalize(description, {});
  std::string text = "transformer L=" + std::to_string(d.layers) +
                     " h=" + std::to_string(d.hidden) + " heads=" + std::to_string(d.query_heads);
  if (d.latent_attention.has_value()) {
    text += " latent=" + std::to_string(d.latent_attention->key_value_rank);
  } else {
    text += "/" + std::to_string(d.key_value_heads);
  }
  if (d.ffn > 0) text += " ffn=" + std::to_string(d.ffn);
  if (d.experts.has_value()) {
    text +=
        " experts=" + std::to_string(d.experts->active) + "/" + std::to_string(d.experts->experts);
  }
  text += " V=" + std::to_string(d.vocabulary);
  if (d.lora.has_value()) text += " lora=" + std::to_string(d.lora->rank);
  return text;
}

}  // namespace flopledger::flops
