#include "flopledger/model_flops.h"

#include <utility>

#include "family_terms.h"
#include "flopledger/families.h"
#include "model_formula.h"
#include "transformer_terms.h"

namespace flopledger {

ModelFlops::ModelFlops(std::shared_ptr<const Formula> formula) : formula_(std::move(formula)) {}

Result<ModelFlops> ModelFlops::FromTransformer(const TransformerDescription& description) {
  Result<void> valid = flops::Validate(description);
  if (!valid.has_value()) return tl::unexpected(valid.error());
  return flops::TermFormula::Create(flops::Describe(description),
                                    [description](const FlopConvention& convention) {
                                      return flops::CompileTransformer(description, convention);
                                    });
}

namespace {

template <typename Description>
Result<ModelFlops> FromFamily(std::string name, const Description& description,
                              Result<flops::TermList> (*compile)(const Description&,
                                                                 const FlopConvention&),
                              flops::TermFormula::Expander expander = nullptr) {
  Result<void> valid = flops::Validate(description);
  if (!valid.has_value()) return tl::unexpected(valid.error());
  return flops::TermFormula::Create(
      std::move(name),
      [description, compile](const FlopConvention& convention) {
        return compile(description, convention);
      },
      std::move(expander));
}

}  // namespace

Result<ModelFlops> ModelFlops::FromEncoderDecoder(const EncoderDecoderDescription& description) {
  const std::string name = "encoder-decoder: " + flops::Describe(description.encoder) + "; " +
                           flops::Describe(description.decoder);
  return FromFamily(name, description, &flops::CompileEncoderDecoder);
}

Result<ModelFlops> ModelFlops::FromVisionTransformer(
    const VisionTransformerDescription& description) {
  const std::string name = "vision transformer L=" + std::to_string(description.layers) +
                           " h=" + std::to_string(description.hidden) +
                           " heads=" + std::to_string(description.heads) +
                           " patch=" + std::to_string(description.patch_size) +
                           " image=" + std::to_string(description.image_size);
  return FromFamily(name, description, &flops::CompileVisionTransformer,
                    [description](const Workload& workload) {
                      return flops::ExpandImages(description, workload);
                    });
}

Result<ModelFlops> ModelFlops::FromConvNet(const ConvNetDescription& description) {
  const std::string name = "convolution net of " + std::to_string(description.convolutions.size()) +
                           " convolutions, " + std::to_string(description.dense.size()) + " dense";
  return FromFamily(name, description, &flops::CompileConvNet);
}

Result<ModelFlops> ModelFlops::FromDiffusionTransformer(
    const DiffusionTransformerDescription& description) {
  const std::string name = "diffusion transformer L=" + std::to_string(description.layers) +
                           " h=" + std::to_string(description.hidden) +
                           " heads=" + std::to_string(description.heads);
  return FromFamily(name, description, &flops::CompileDiffusionTransformer);
}

Result<ModelFlops> ModelFlops::FromUNet(const UNetDescription& description) {
  const std::string name = "UNet of " + std::to_string(description.convolutions.size()) +
                           " convolutions, " + std::to_string(description.attention.size()) +
                           " attention blocks";
  return FromFamily(name, description, &flops::CompileUNet);
}

Result<ModelFlops> ModelFlops::FromRecommender(const RecommenderDescription& description) {
  return FromFamily("recommendation model", description, &flops::CompileRecommender);
}

Result<DeclaredWork> ModelFlops::Evaluate(const Workload& workload,
                                          const FlopConvention& convention) const {
  return formula_->Evaluate(workload, convention);
}

Result<DeclaredTotal> ModelFlops::EvaluateTotal(const Workload& workload,
                                                const FlopConvention& convention) const {
  return formula_->EvaluateTotal(workload, convention);
}

std::string ModelFlops::Describe() const { return formula_->description; }

bool ModelFlops::NeedsSequenceLengths() const { return formula_->needs_sequence_lengths; }

ModelSize ModelFlops::Size() const { return formula_->size; }

}  // namespace flopledger
