#include <array>
#include <cmath>
#include <cstdio>

#include "published_report.h"

namespace flopledger::cli {
namespace {

/// Of `recomputed`, which has six digits.
constexpr double kRecomputedTolerance = 2e-4;
/// Of `residual`, which has four digits, beside what `recomputed` may be off.
constexpr double kResidualTolerance = 1e-3;
/// Decimal inputs at the very edge of a tolerance are inside.
constexpr double kEdge = 1e-9;

std::string Digits(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.6g", value);
  return text.data();
}

/// Why the claim of the row is untrue; empty if it is true.
std::string FindFault(const PublishedRow& row, double value, double printed, double tolerance,
                      const GapExplanation& gap) {
  const std::optional<double> recomputed = row.Number("recomputed");
  if (recomputed.has_value() &&
      std::abs(value - *recomputed) > kRecomputedTolerance * std::abs(*recomputed)) {
    return "the formula gives " + Digits(value) + ", the table says " + Digits(*recomputed);
  }
  const double residual = value - printed;
  const bool inside = std::abs(residual) <= tolerance + kEdge * std::abs(printed);
  const std::string verdict = row.Text("verdict");
  if (verdict == "formula-oracle") return "";
  if (verdict == "reproduces") {
    if (inside) return "";
    return "printed " + Digits(printed) + " +- " + Digits(tolerance) + ", the formula gives " +
           Digits(value) + (gap.text.empty() ? "" : "; " + gap.text + " would explain it");
  }
  if (verdict != "differs") {
    return "verdict is '" + verdict + "' (accepted: reproduces, differs, formula-oracle)";
  }
  if (inside) {
    return "said to differ, but " + Digits(value) + " is within " + Digits(tolerance) +
           " of the printed " + Digits(printed);
  }
  const std::optional<double> stated = row.Number("residual");
  if (stated.has_value() &&
      std::abs(residual - *stated) >
          kResidualTolerance * std::abs(*stated) + kRecomputedTolerance * std::abs(value)) {
    return "differs by " + Digits(residual) + ", the table says " + Digits(*stated);
  }
  return gap.kind == GapExplanation::Kind::kNone ? "no switch and no input explains the gap" : "";
}

}  // namespace

RowOutcome JudgeRow(const PublishedRow& row) {
  RowOutcome outcome{.row_id = row.Text("row_id"),
                     .source = row.Text("source"),
                     .formula_id = row.Text("formula_id"),
                     .verdict = row.Text("verdict"),
                     .line = row.line()};
  const double printed = row.RequireNumber("printed");
  const double tolerance = row.RequireNumber("tolerance");
  Result<EvaluatedRow> evaluated = EvaluateRow(row);
  if (evaluated.has_value()) {
    outcome.value = evaluated->value;
    outcome.printed = printed;
    outcome.residual = evaluated->value - printed;
    GapExplanation gap;
    if (std::abs(*outcome.residual) > tolerance) {
      gap = ExplainGap(row, *evaluated, printed, tolerance);
      outcome.explanation = gap.text;
    }
    outcome.fault = FindFault(row, evaluated->value, printed, tolerance, gap);
    // What the claims themselves could not give (a bad number in `recomputed`).
    if (Result<void> read = row.Verdict(); !read.has_value()) {
      outcome.fault = "cannot be evaluated: " + read.error().message();
    }
  } else {
    outcome.fault = "cannot be evaluated: " + evaluated.error().message();
  }
  outcome.behaves = outcome.fault.empty();
  return outcome;
}

}  // namespace flopledger::cli
