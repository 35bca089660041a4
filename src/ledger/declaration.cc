#include "ledger/declaration.h"

#include "flopledger/units.h"

namespace flopledger {
namespace {

StepDeclaration Refuse(StepDeclaration declaration, RefusalReason reason) {
  declaration.flops.reset();
  declaration.refusal = reason;
  return declaration;
}

}  // namespace

StepDeclaration EvaluateDeclaration(const std::optional<ModelFlops>& model,
                                    const FlopConvention& convention,
                                    const StepTimeline& timeline) {
  StepDeclaration result;
  Workload useful;
  Workload padded;
  bool unknown_length = false;
  bool any_padding = false;
  for (const TokenRecord& rows : timeline.tokens) {
    result.tokens.useful += rows.count * rows.useful_length;
    result.tokens.padded += rows.count * rows.length;
    result.tokens.even_split = result.tokens.even_split || rows.even_split;
    unknown_length = unknown_length || rows.unknown_length;
    any_padding = any_padding || rows.length != rows.useful_length;
    if (rows.useful_length > 0) {
      useful.sequences.push_back({.length = rows.useful_length, .count = rows.count});
    }
    if (rows.length > 0) padded.sequences.push_back({.length = rows.length, .count = rows.count});
  }
  if (timeline.declaration_lost) return Refuse(result, RefusalReason::kDeclarationLost);

  if (timeline.declared) {
    // The user's own formula gave FLOPs, so rows only say how many tokens there were.
    if (timeline.tokens.empty()) {
      result.tokens.useful = result.tokens.padded = timeline.declared->tokens;
    }
    result.flops = DeclaredFlops{.useful_forward = timeline.declared->forward,
                                 .useful_backward = timeline.declared->backward,
                                 .padding = Flops()};
    return result;
  }
  if (!model) return Refuse(result, RefusalReason::kNoDeclaration);
  if (timeline.tokens.empty()) return Refuse(result, RefusalReason::kNoTokens);
  if (unknown_length && model->NeedsSequenceLengths()) {
    return Refuse(result, RefusalReason::kNoSequenceLength);
  }

  const Result<DeclaredTotal> needed = model->EvaluateTotal(useful, convention);
  if (!needed) return Refuse(result, RefusalReason::kEvaluationFailed);
  DeclaredFlops flops{
      .useful_forward = needed->forward, .useful_backward = needed->backward, .padding = Flops()};
  if (any_padding) {
    const Result<DeclaredTotal> computed = model->EvaluateTotal(padded, convention);
    if (!computed) return Refuse(result, RefusalReason::kEvaluationFailed);
    flops.padding = computed->forward + computed->backward - flops.useful();
  }
  result.flops = flops;
  return result;
}

}  // namespace flopledger
