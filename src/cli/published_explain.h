#pragma once

#include <string>

#include "published_evaluate.h"
#include "published_row.h"

namespace flopledger::cli {

/// Why a computed figure lies apart from the printed one.
struct GapExplanation {
  enum class Kind { kNone, kSwitch, kRecompute, kInput };
  Kind kind = Kind::kNone;
  std::string text;  ///< `attention_mask=full`, `params 1.0095e+12 (given 1e+12)`
  double value = 0;  ///< the metric with the switch set; the printed one for an input
};

/// Looks for what brings the figure within the row's tolerance: one switch of the convention, a
/// fraction of recomputation, two switches that belong together; failing these, the inputs that
/// would have to be others. Reads the formula and the inputs alone.
GapExplanation ExplainGap(const PublishedRow& row, const EvaluatedRow& evaluated, double printed,
                          double tolerance);

}  // namespace flopledger::cli
