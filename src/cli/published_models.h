#pragma once

#include <optional>
#include <string_view>

#include "flopledger/convention.h"
#include "flopledger/model_flops.h"
#include "flopledger/status.h"
#include "published_row.h"

namespace flopledger::cli {

/// How a formula id counts: a formula text over the row's columns, or a model under a convention.
struct DeclaredFormula {
  ModelFlops model;
  FlopConvention convention;
  /// The same model as a shape under a named convention, for formulas that are texts, where the row
  /// prints enough of it. What differs between conventions is looked for here.
  std::optional<ModelFlops> shape;
  FlopConvention shape_convention;
};

/// Reads the model of a row by its formula id. Fails: kNotFound for an id that is not known (with
/// the nearest known one); kInvalidArgument with the inputs that are missing or wrong.
Result<DeclaredFormula> ReadDeclaredFormula(std::string_view formula_id, const PublishedRow& row);

/// Whether the id names a model or formula of FLOPs per token (others are plain arithmetic).
bool IsDeclaredFormula(std::string_view formula_id);

/// Nearest id to one that is not known.
std::string_view NearestFormulaId(std::string_view formula_id);

}  // namespace flopledger::cli
