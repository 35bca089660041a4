#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "flopledger/convention.h"
#include "flopledger/export.h"
#include "flopledger/status.h"
#include "flopledger/units.h"

namespace flopledger {

/// `count` sequences of `length` tokens. Sequences of a pack do not see each other.
struct SequenceGroup {
  std::int64_t length = 0;
  std::int64_t count = 0;

  friend bool operator==(const SequenceGroup&, const SequenceGroup&) = default;
};

/// The work that one step was given: what a formula is evaluated on.
struct Workload {
  std::vector<SequenceGroup> sequences;

  friend bool operator==(const Workload&, const Workload&) = default;
};

/// FLOPs of one named part of a model (`layers.attention.projections`) by pass.
struct DeclaredPart {
  std::string name;
  Flops forward;
  Flops backward_input;   ///< gradients of activations
  Flops backward_weight;  ///< gradients of weights
};

/// The declared work of a workload, its parts and their sum.
struct DeclaredWork {
  Flops forward;
  Flops backward;
  std::vector<DeclaredPart> parts;
};

/// A decoder transformer by its shape. Every field without a default has to be given.
struct TransformerDescription {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t query_heads = 0;
  std::int64_t key_value_heads = 0;  ///< 0: as many as query heads
  std::int64_t head_dim = 0;         ///< 0: hidden / query_heads
  std::int64_t ffn = 0;              ///< width of the feed-forward part
  bool gated_ffn = false;            ///< three matrices (SwiGLU) instead of two
  std::int64_t vocabulary = 0;
  bool tied_embeddings = false;  ///< moves parameters, not FLOPs
  bool causal = true;
  std::int64_t window = 0;  ///< 0: none; else tokens that a query sees, itself included
};

/// A model's FLOP formula: what a step's tokens need, by the convention, exactly.
///
///     auto model = ModelFlops::FromTransformer({.layers = 2, .hidden = 8, .query_heads = 4,
///                                               .ffn = 12, .vocabulary = 16});
///     auto work = model->Evaluate({.sequences = {{.length = 4, .count = 1}}});
///
/// Thread: immutable, may be shared. Ownership: a cheap-to-copy value.
/// Fails: at creation if something is missing or wrong (the message names every field); evaluation
/// fails with kOverflow, never wraps.
class FLOPLEDGER_EXPORT ModelFlops {
 public:
  static Result<ModelFlops> FromTransformer(const TransformerDescription& description);
  /// Reads a Hugging Face `config.json`. Fails: kUnsupported for an architecture that is not known,
  /// with a list of those that are; kInvalidArgument with the names of missing fields.
  static Result<ModelFlops> FromHfConfig(std::string_view json);

  Result<DeclaredWork> Evaluate(const Workload& workload,
                                const FlopConvention& convention = {}) const;
  /// Does the work depend on how the tokens are cut into sequences (attention)?
  bool NeedsSequenceLengths() const;
  /// Short text for logs and labels: `transformer L=4 h=256 heads=8/8 ffn=1024 V=103`.
  std::string Describe() const;

 private:
  struct Formula;
  explicit ModelFlops(std::shared_ptr<const Formula> formula);
  std::shared_ptr<const Formula> formula_;
};

}  // namespace flopledger
