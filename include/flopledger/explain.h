#pragma once

#include <optional>
#include <string>
#include <vector>

#include "flopledger/convention.h"
#include "flopledger/export.h"
#include "flopledger/model_flops.h"
#include "flopledger/status.h"

namespace flopledger {

/// One line of arithmetic: `times` x FLOPs per unit x `units`. Fractions of a pair are not rounded:
/// `units_doubled` is twice the number.
struct ExplainedLine {
  std::string part = {};      ///< `layers.attention.projections`
  std::string shape = {};     ///< `4096 -> 14336`
  std::string quantity = {};  ///< `tokens`, `pairs (causal)`
  Int128 units_doubled = 0;
  Int128 times = 1;
  Flops forward = {};
  Flops backward_input = {};
  Flops backward_weight = {};
};

/// How a figure comes about.
struct Explanation {
  std::string model = {};
  ConventionId convention = {};
  std::vector<ExplainedLine> lines = {};  ///< empty for a formula text or a function
  DeclaredWork work = {};
  ModelSize size = {};
  /// (6 N tokens) / (exact training FLOPs) - 1; none without parameters, or for a forward pass.
  std::optional<double> rule_of_thumb_error = {};
};

/// Explains a model's work line by line, with the error of the rule of thumb 6N against the exact
/// count for this model and these lengths.
///
///     auto explanation = Explain(model, {.sequences = {{.length = 4096, .count = 8}}});
///     std::string text = WriteText(*explanation);
///
/// Thread: pure. Fails: as `ModelFlops::Evaluate`.
FLOPLEDGER_EXPORT Result<Explanation> Explain(const ModelFlops& model, const Workload& workload,
                                              const FlopConvention& convention = {});

/// A table for people, with totals by part and pass.
FLOPLEDGER_EXPORT std::string WriteText(const Explanation& explanation);

/// One switch's share of the difference between two conventions.
struct SwitchDifference {
  std::string name = {};
  std::string from = {};
  std::string to = {};
  Flops change =
      {};  ///< of forward + backward when this switch is turned, in the order of the list
};

struct ConventionComparison {
  ConventionId first = {};
  ConventionId second = {};
  Flops first_total = {};
  Flops second_total = {};
  std::vector<SwitchDifference> switches = {};  ///< only those that differ; their sum is the gap
};

/// Compares two conventions for one model: the switches that differ are turned one after another,
/// so that their changes add up to the whole difference.
FLOPLEDGER_EXPORT Result<ConventionComparison> CompareConventions(const ModelFlops& model,
                                                                  const Workload& workload,
                                                                  const FlopConvention& first,
                                                                  const FlopConvention& second);

FLOPLEDGER_EXPORT std::string WriteText(const ConventionComparison& comparison);

}  // namespace flopledger
