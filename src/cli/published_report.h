#pragma once

#include <optional>
#include <string>
#include <vector>

#include "published_explain.h"
#include "published_row.h"

namespace flopledger::cli {

/// The outcome of one row.
struct RowOutcome {
  std::string row_id;
  std::string source;
  std::string formula_id;
  std::string verdict;  ///< as the table claims
  std::size_t line = 0;
  std::optional<double> value;
  std::optional<double> printed;
  std::optional<double> residual;  ///< value - printed
  bool behaves = false;
  std::string explanation;  ///< of a row that differs
  std::string fault;        ///< why the row does not behave; empty if it does
};

/// Evaluates a row and checks its claim: `reproduces` within the tolerance of the printed figure,
/// `differs` outside of it by the stated residual and with a cause, `formula-oracle` its
/// `recomputed` value alone.
RowOutcome JudgeRow(const PublishedRow& row);

std::string WriteText(const std::vector<RowOutcome>& outcomes);
std::string WriteJson(const std::vector<RowOutcome>& outcomes);
/// The table by source for `docs/published.md`.
std::string WriteMarkdown(const std::vector<RowOutcome>& outcomes);

}  // namespace flopledger::cli
