#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace flopledger {

/// Multi-head latent attention. Dimensions per head; ranks of the low-rank projections.
struct LatentAttention {
  std::int64_t query_rank = 0;  ///< 0: queries are projected directly
  std::int64_t key_value_rank = 0;
  std::int64_t nope_head_dim = 0;
  std::int64_t rope_head_dim = 0;
  std::int64_t value_head_dim = 0;
  bool absorbed = false;  ///< inference: scores and values in the latent space

  friend bool operator==(const LatentAttention&, const LatentAttention&) = default;
};

/// A small scorer that picks, for each query, the keys the core attends to. Its input is detached:
/// it trains, but sends no gradient down.
struct SparseIndexer {
  std::int64_t heads = 0;
  std::int64_t head_dim = 0;

  friend bool operator==(const SparseIndexer&, const SparseIndexer&) = default;
};

/// Mixture of experts instead of one feed-forward part.
struct ExpertShape {
  std::int64_t experts = 0;
  std::int64_t active = 0;      ///< routed experts a token visits
  std::int64_t expert_ffn = 0;  ///< width of one routed expert
  std::int64_t shared = 0;      ///< experts that every token visits
  std::int64_t shared_ffn = 0;  ///< width of one shared expert; 0: expert_ffn
  bool shared_gate = false;     ///< one more row of the router weighs the shared experts
  std::int64_t latent = 0;      ///< experts run at this width behind projections; 0: hidden
  std::int64_t capacity_percent =
      0;  ///< slots = experts x ceil(T active percent / 100 experts); 0: no limit

  friend bool operator==(const ExpertShape&, const ExpertShape&) = default;
};

/// Mamba-2 mixer. Approximate: the recurrence is counted, not the chunked algorithm.
struct Mamba2Shape {
  std::int64_t inner = 0;   ///< width of the state-space part (usually 2 x hidden)
  std::int64_t state = 0;   ///< state per channel
  std::int64_t groups = 1;  ///< of the input and output maps
  std::int64_t heads = 0;

  friend bool operator==(const Mamba2Shape&, const Mamba2Shape&) = default;
};

/// Gated delta rule mixer. Approximate: the recurrence is counted, not the chunked algorithm.
struct GatedDeltaShape {
  std::int64_t key_heads = 0;
  std::int64_t value_heads = 0;
  std::int64_t key_head_dim = 0;
  std::int64_t value_head_dim = 0;
  std::int64_t convolution = 4;  ///< width of the short causal convolution

  friend bool operator==(const GatedDeltaShape&, const GatedDeltaShape&) = default;
};

/// How far a query sees inside of its sequence.
enum class AttentionSpan : std::uint8_t {
  kWhole,   ///< everything that the mask leaves
  kWindow,  ///< the last `span_size` tokens, itself included
  kChunk,   ///< its own block of `span_size` tokens
  kTopK,    ///< the `span_size` keys that an indexer picks
};

enum class MixerKind : std::uint8_t { kAttention, kMamba2, kGatedDelta, kNone };
enum class FfnKind : std::uint8_t { kDense, kExperts, kNone };

/// `count` layers in a row that are alike. Widths left 0 are those of the description.
struct LayerRun {
  std::int64_t count = 0;
  MixerKind mixer = MixerKind::kAttention;
  AttentionSpan span = AttentionSpan::kWhole;
  std::int64_t span_size = 0;
  FfnKind feed_forward = FfnKind::kDense;
  std::int64_t ffn = 0;  ///< width of a dense part, where it differs

  friend bool operator==(const LayerRun&, const LayerRun&) = default;
};

/// What trains. Everything by default; adapters train in any case.
struct TrainableParts {
  bool embedding = true;
  bool attention = true;
  bool ffn = true;  ///< experts included
  bool router = true;
  bool norms = true;
  bool head = true;
  std::int64_t frozen_layers = 0;  ///< the lowest layers, with the embedding, are frozen whole

  /// Nothing trains (but adapters).
  static constexpr TrainableParts None() {
    return {.embedding = false,
            .attention = false,
            .ffn = false,
            .router = false,
            .norms = false,
            .head = false};
  }
  friend bool operator==(const TrainableParts&, const TrainableParts&) = default;
};

/// Low-rank adapters beside frozen or trained matrices.
struct LoraShape {
  std::int64_t rank = 0;
  bool query = true;
  bool key = true;
  bool value = true;
  bool output = true;
  bool ffn = true;  ///< every matrix of a dense feed-forward part or of a shared expert
  bool head = false;

  friend bool operator==(const LoraShape&, const LoraShape&) = default;
};

/// Parameters that are no matrix multiplication: they move N (and 6N), not FLOPs.
struct MinorParameters {
  std::int64_t norms_per_layer = 2;  ///< vectors of `hidden` weights
  bool norm_bias = false;
  bool final_norm = true;
  bool attention_bias = false;  ///< query, key and value
  bool output_bias = false;
  bool ffn_bias = false;
  std::int64_t positions = 0;  ///< rows of a learned position table
  std::int64_t other = 0;      ///< anything else, in all

  friend bool operator==(const MinorParameters&, const MinorParameters&) = default;
};

/// A transformer (decoder, or encoder with `causal = false`) by its shape. Give layers, hidden,
/// query_heads, ffn (or experts) and vocabulary; the rest has defaults.
///
///     TransformerDescription llama{.layers = 32, .hidden = 4096, .query_heads = 32,
///                                  .key_value_heads = 8, .ffn = 14336, .gated_ffn = true,
///                                  .vocabulary = 128256};
///
/// Thread: a value.
struct TransformerDescription {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t query_heads = 0;
  std::int64_t key_value_heads = 0;  ///< 0: as many as query heads
  std::int64_t head_dim = 0;         ///< 0: hidden / query_heads
  std::int64_t ffn = 0;              ///< width of the feed-forward part
  bool gated_ffn = false;            ///< three matrices (SwiGLU) instead of two
  std::int64_t vocabulary = 0;       ///< 0: no language-model head, one of those below
  bool tied_embeddings = false;      ///< moves parameters, not FLOPs
  bool causal = true;
  std::int64_t window = 0;  ///< 0: none; else tokens that a query sees, itself included

  std::int64_t value_head_dim = 0;  ///< 0: head_dim
  bool output_gate = false;         ///< a gate as wide as the heads' output
  std::optional<LatentAttention> latent_attention = {};
  std::optional<SparseIndexer> indexer = {};  ///< of layers with `AttentionSpan::kTopK`
  std::optional<ExpertShape> experts = {};    ///< without `runs`: of every layer
  std::optional<Mamba2Shape> mamba2 = {};
  std::optional<GatedDeltaShape> gated_delta = {};
  std::vector<LayerRun> runs = {};  ///< layer by layer, in order; empty: all layers alike

  bool language_model_head = true;      ///< false: the vocabulary is only looked up
  std::int64_t prediction_modules = 0;  ///< multi-token prediction: layers after the last one
  std::int64_t embedding_width = 0;     ///< 0: hidden; else projected in and out
  std::int64_t head_transforms = 0;     ///< hidden x hidden layers before the logits (BERT)
  std::int64_t poolers = 0;             ///< hidden x hidden once a sequence
  std::int64_t classes = 0;             ///< classifier once a sequence

  TrainableParts trainable = {};
  std::optional<LoraShape> lora = {};
  MinorParameters minor = {};
  /// N as its source counts it, where that differs from the count by shapes; 0: by shapes.
  std::int64_t parameters = 0;

  friend bool operator==(const TransformerDescription&, const TransformerDescription&) = default;
};

}  // namespace flopledger
