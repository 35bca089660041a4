#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flopledger/convention.h"
#include "flopledger/export.h"
#include "flopledger/status.h"
#include "flopledger/transformer.h"
#include "flopledger/units.h"
#include "flopledger/workload.h"

namespace flopledger {

struct ConvNetDescription;
struct DiffusionTransformerDescription;
struct EncoderDecoderDescription;
struct RecommenderDescription;
struct UNetDescription;
struct VisionTransformerDescription;

/// What a part is, for recomputation: a replay of the layers leaves the head out.
enum class PartKind : std::uint8_t { kLayers, kCoreAttention, kHead };

/// FLOPs of one named part of a model (`layers.attention.projections`) by pass.
struct DeclaredPart {
  std::string name = {};
  Flops forward = {};
  Flops
      backward_input;  ///< gradients of activations; replayed forward where a convention counts it
  Flops backward_weight = {};  ///< gradients of weights
  PartKind kind = PartKind::kLayers;
};

/// The declared work of a workload, its parts and their sum.
struct DeclaredWork {
  Flops forward = {};
  Flops backward = {};
  std::vector<DeclaredPart> parts = {};
  bool approximate = false;  ///< some part has no exact count (recurrent mixers)
};

/// The same without parts: what a step needs. Allocates nothing.
struct DeclaredTotal {
  Flops forward = {};
  Flops backward = {};
};

/// What is known of a model besides its work. 0 where a formula does not say.
struct ModelSize {
  Int128 parameters = 0;
  Int128 active_parameters = 0;  ///< those that one token meets
};

/// Values of a formula's own names: `{{"N", 124'000'000}, {"L", 12}}`.
using FormulaVariables = std::map<std::string, Int128, std::less<>>;
/// The named parts of a step's work, from the caller's own code.
using PartsFunction = std::function<Result<std::vector<DeclaredPart>>(const Workload&)>;

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
  /// with a list of those that are; kInvalidArgument with the names of missing fields, or with the
  /// position of what is not JSON.
  static Result<ModelFlops> FromHfConfig(std::string_view json);
  static Result<ModelFlops> FromEncoderDecoder(const EncoderDecoderDescription& description);
  static Result<ModelFlops> FromVisionTransformer(const VisionTransformerDescription& description);
  static Result<ModelFlops> FromConvNet(const ConvNetDescription& description);
  static Result<ModelFlops> FromDiffusionTransformer(
      const DiffusionTransformerDescription& description);
  static Result<ModelFlops> FromUNet(const UNetDescription& description);
  static Result<ModelFlops> FromRecommender(const RecommenderDescription& description);
  /// Training FLOPs by a text such as `6*N*T + 12*L*H*Q*S*T`. Bound per step: T tokens and S length
  /// of one sequence (the formula is summed over the sequences, so packs come out right), or, where
  /// neither occurs, B samples. A third counts as forward. Exact fractions; the sum of a sequence
  /// is rounded to a whole FLOP. Fails: with the column; kInvalidArgument for a name without a
  /// value.
  static Result<ModelFlops> FromFormula(std::string_view text, const FormulaVariables& variables);
  /// Work that the caller's code returns for each step, under the given name. The function may be
  /// called from the worker thread; a convention has no say in it.
  static Result<ModelFlops> FromFunction(std::string_view name, PartsFunction function);

  /// This model's step with forward passes of another one beside it: a teacher (distillation), a
  /// reference policy (preference training). The parts of the other have `name.` in front.
  Result<ModelFlops> WithForwardPassesOf(const ModelFlops& other, std::string_view name,
                                         std::int64_t passes = 1) const;

  Result<DeclaredWork> Evaluate(const Workload& workload,
                                const FlopConvention& convention = {}) const;
  Result<DeclaredTotal> EvaluateTotal(const Workload& workload,
                                      const FlopConvention& convention = {}) const;

  /// Short text for logs and labels: `transformer L=4 h=256 heads=8/8 ffn=1024 V=103`.
  std::string Describe() const;
  /// Whether the work depends on how the tokens are split into sequences, so that a step has to
  /// say its sequence lengths.
  bool NeedsSequenceLengths() const;
  ModelSize Size() const;

  /// How a model is kept inside; made by the functions above.
  struct Formula;
  explicit ModelFlops(std::shared_ptr<const Formula> formula);
  const Formula& formula() const { return *formula_; }

 private:
  std::shared_ptr<const Formula> formula_;
};

}  // namespace flopledger
