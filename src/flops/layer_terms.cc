#include "layer_terms.h"

namespace flopledger::flops {

void LayerTerms::Add(const LayerSegment& segment) {
  State state{.times = segment.run.count};
  if (segment.trains) {
    state.trainable = description_.trainable;
    state.lora = description_.lora.has_value() && description_.lora->rank > 0;
  } else {
    state.trainable = TrainableParts::None();
  }
  AddNormParameters(state.times);

  const bool below = segment.input_needs_gradient;
  state.input = below || state.trainable.norms;
  bool stream = AddMixer(segment.run, state) || below;
  if (options_.cross_attention) {
    state.input = stream || state.trainable.norms;
    stream = AddCrossAttention(state) || stream;
  }
  state.input = stream || state.trainable.norms;
  AddFfn(segment.run, state);
}

bool LayerTerms::AddWeight(std::string_view part, const State& state, std::int64_t in,
                           std::int64_t out, bool weight_trains, bool has_adapter) {
  const std::string name = Part(part);
  builder_.Linear(name, state.times, {.in = in, .out = out}, Tokens(),
                  {.input = state.input, .weight = weight_trains});
  const bool adapted = state.lora && has_adapter;
  if (adapted) {
    const std::int64_t rank = description_.lora->rank;
    const std::string adapter = Part("adapters");
    builder_.Linear(adapter, state.times, {.in = in, .out = rank}, Tokens(),
                    {.input = state.input, .weight = true});
    builder_.Linear(adapter, state.times, {.in = rank, .out = out}, Tokens(),
                    {.input = true, .weight = true});
  }
  return state.input || weight_trains || adapted;
}

bool LayerTerms::AddMixer(const LayerRun& run, const State& state) {
  switch (run.mixer) {
    case MixerKind::kAttention:
      return description_.latent_attention.has_value() ? AddLatentAttention(run, state)
                                                       : AddAttention(run, state);
    case MixerKind::kMamba2:
      return AddMamba2(state);
    case MixerKind::kGatedDelta:
      return AddGatedDelta(state);
    case MixerKind::kNone:
      return false;
  }
  return false;
}

bool LayerTerms::AddAttention(const LayerRun& run, const State& state) {
  const TransformerDescription& d = description_;
  const LoraShape lora = d.lora.value_or(LoraShape{});
  const bool trains = state.trainable.attention;
  const std::int64_t query_width = d.query_heads * d.head_dim;
  const std::int64_t key_width = d.key_value_heads * d.head_dim;
  const std::int64_t value_width = d.key_value_heads * d.value_head_dim;
  const std::int64_t output_width = d.query_heads * d.value_head_dim;
  constexpr std::string_view kPart = "attention.projections";

  const bool query = AddWeight(kPart, state, d.hidden, query_width, trains, lora.query);
  const bool key = AddWeight(kPart, state, d.hidden, key_width, trains, lora.key);
  const bool value = AddWeight(kPart, state, d.hidden, value_width, trains, lora.value);
  bool gate = false;
  if (d.output_gate) gate = AddWeight(kPart, state, d.hidden, output_width, trains, false);
  AddCore(run, state.times,
          {.heads = d.query_heads,
           .score_dim = d.head_dim,
           .value_dim = d.value_head_dim,
           .query_gradient = query,
           .key_gradient = key,
           .value_gradient = value});
  State output = state;
  output.input = query || key || value || gate;
  return AddWeight(kPart, output, output_width, d.hidden, trains, lora.output);
}

bool LayerTerms::AddLatentAttention(const LayerRun& run, const State& state) {
  const TransformerDescription& d = description_;
  const LatentAttention& latent = *d.latent_attention;
  const bool trains = state.trainable.attention;
  const LoraShape lora = d.lora.value_or(LoraShape{});
  const std::int64_t heads = d.query_heads;
  const std::int64_t score_dim = latent.nope_head_dim + latent.rope_head_dim;
  constexpr std::string_view kPart = "attention.projections";

  bool query = false;
  if (latent.query_rank > 0) {
    State down = state;
    down.input = AddWeight(kPart, state, d.hidden, latent.query_rank, trains, lora.query) ||
                 state.trainable.norms;
    query = AddWeight(kPart, down, latent.query_rank, heads * score_dim, trains, lora.query);
  } else {
    query = AddWeight(kPart, state, d.hidden, heads * score_dim, trains, lora.query);
  }
  State latent_state = state;
  latent_state.input = AddWeight(kPart, state, d.hidden,
                                 latent.key_value_rank + latent.rope_head_dim, trains, lora.key) ||
                       state.trainable.norms;
  // Absorbed or not, the up-projections of keys and values cost the same a token.
  const bool key_value =
      AddWeight(kPart, latent_state, latent.key_value_rank,
                heads * (latent.nope_head_dim + latent.value_head_dim), trains, lora.value);
  if (run.span == AttentionSpan::kTopK) AddIndexer(state);
  AddCore(run, state.times,
          {.heads = heads,
           .score_dim = latent.absorbed ? latent.key_value_rank + latent.rope_head_dim : score_dim,
           .value_dim = latent.absorbed ? latent.key_value_rank : latent.value_head_dim,
           .query_gradient = query,
           .key_gradient = key_value,
           .value_gradient = key_value});
  State output = state;
  output.input = query || key_value;
  return AddWeight(kPart, output, heads * latent.value_head_dim, d.hidden, trains, lora.output);
}

bool LayerTerms::AddCrossAttention(const State& state) {
  const TransformerDescription& d = description_;
  const bool trains = state.trainable.attention;
  const std::int64_t query_width = d.query_heads * d.head_dim;
  const std::int64_t value_width = d.query_heads * d.value_head_dim;
  constexpr std::string_view kPart = "cross_attention.projections";
  const bool query = AddWeight(kPart, state, d.hidden, query_width, trains, false);
  // Keys and values come from the encoder's output, which needs a gradient if the encoder trains.
  const Gradients source{.input = options_.source_needs_gradient, .weight = trains};
  const Quantity source_tokens{.kind = QuantityKind::kSourceTokens};
  const std::int64_t source_width = options_.source_hidden > 0 ? options_.source_hidden : d.hidden;
  for (std::int64_t width :
       {d.key_value_heads * d.head_dim, d.key_value_heads * d.value_head_dim}) {
    builder_.Linear(Part(kPart), state.times, {.in = source_width, .out = width}, source_tokens,
                    source);
  }
  const bool key = trains || source.input;
  Quantity pairs{.kind = QuantityKind::kCrossHalfPairs};
  const std::string part = Part("cross_attention.core");
  builder_.Core(part, state.times, pairs,
                {.heads = d.query_heads,
                 .score_dim = d.head_dim,
                 .value_dim = d.value_head_dim,
                 .query_gradient = query,
                 .key_gradient = key,
                 .value_gradient = key});
  State output = state;
  output.input = query || key;
  return AddWeight(kPart, output, value_width, d.hidden, trains, false);
}

void LayerTerms::AddIndexer(const State& state) {
  if (!description_.indexer.has_value()) return;
  const SparseIndexer& indexer = *description_.indexer;
  const std::int64_t query_rank =
      description_.latent_attention.has_value() ? description_.latent_attention->query_rank : 0;
  const std::int64_t query_in = query_rank > 0 ? query_rank : description_.hidden;
  const bool trains = state.trainable.attention;
  const Gradients detached{.input = false, .weight = trains};
  const std::string part = Part("attention.indexer");
  builder_.Linear(part, state.times, {.in = query_in, .out = indexer.heads * indexer.head_dim},
                  Tokens(), detached);
  builder_.Linear(part, state.times, {.in = description_.hidden, .out = indexer.head_dim}, Tokens(),
                  detached);
  builder_.Linear(part, state.times, {.in = description_.hidden, .out = indexer.heads}, Tokens(),
                  detached);
  const Int128 score = Int128{indexer.heads} * indexer.head_dim;
  builder_.Add({.part = part,
                .shape = "scores " + std::to_string(indexer.heads) + " x " +
                         std::to_string(indexer.head_dim),
                .term_class = TermClass::kIndexer,
                .quantity = {.kind = options_.pairs,
                             .counting = builder_.convention().attention_mask,
                             .causal = description_.causal},
                .times = state.times,
                .forward = score,
                .backward_input = trains ? score * 2 : 0});
}

void LayerTerms::AddCore(const LayerRun& run, std::int64_t times, const AttentionCore& core) {
  const Quantity pairs{.kind = options_.pairs,
                       .counting = builder_.convention().attention_mask,
                       .causal = description_.causal,
                       .span = run.span,
                       .size = run.span_size};
  builder_.Core(Part("attention.core"), times, pairs, core);
}

void LayerTerms::AddNormParameters(std::int64_t times) {
  const MinorParameters& minor = description_.minor;
  const Exact one = Exact(minor.norms_per_layer) * description_.hidden * (minor.norm_bias ? 2 : 1);
  builder_.Parameters(one * times, one * times);
}

}  // namespace flopledger::flops
