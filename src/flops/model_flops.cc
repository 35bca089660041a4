#include "flopledger/model_flops.h"

#include <utility>

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
