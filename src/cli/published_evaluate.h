#pragma once

#include <optional>
#include <string>

#include "flopledger/status.h"
#include "published_models.h"
#include "published_row.h"

namespace flopledger::cli {

/// What a row's formula gives for the row's inputs.
struct EvaluatedRow {
  double value = 0;                        ///< in the unit of the row's metric
  std::optional<DeclaredFormula> formula;  ///< none: plain arithmetic on rates
};

/// Evaluates `formula_id` on the inputs of the row. Fails: with what is missing, wrong or not
/// known.
Result<EvaluatedRow> EvaluateRow(const PublishedRow& row);

/// The row's metric if its model is counted by another convention.
Result<double> EvaluateUnder(const PublishedRow& row, const ModelFlops& model,
                             const FlopConvention& convention);

/// `HFU_pct(printed as % of peak)` -> `HFU_pct`.
std::string MetricName(const PublishedRow& row);

}  // namespace flopledger::cli
