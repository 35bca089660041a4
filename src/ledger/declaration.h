#pragma once

#include <optional>

#include "flopledger/convention.h"
#include "flopledger/model_flops.h"
#include "flopledger/step_report.h"
#include "timeline/step_timeline.h"

namespace flopledger {

/// What a step declared: its tokens and the FLOPs of its useful and of all its rows, or why not.
struct StepDeclaration {
  TokenCount tokens;
  std::optional<DeclaredFlops> flops;
  RefusalReason refusal = RefusalReason::kNone;
};

/// Evaluates the declared formula on the step's rows. Pure. A step whose marks were lost, or whose
/// row lengths nobody gave to a formula that needs them, is refused, never estimated.
StepDeclaration EvaluateDeclaration(const std::optional<ModelFlops>& model,
                                    const FlopConvention& convention, const StepTimeline& timeline);

}  // namespace flopledger
