#include "published_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace flopledger::cli {
namespace {

std::string Digits(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.4g", value);
  return text.data();
}

/// Sums over the rows of one source.
struct SourceSummary {
  std::string source;
  int rows = 0;
  int reproduced = 0;
  int differing = 0;
  int faulty = 0;
  double largest_residual_ratio = 0;
  std::string largest_row;
};

std::vector<SourceSummary> Summarize(const std::vector<RowOutcome>& outcomes) {
  std::vector<SourceSummary> summaries;
  for (const RowOutcome& outcome : outcomes) {
    // Releases and tables in brackets belong to one source.
    std::string source = outcome.source.substr(0, outcome.source.find(" ["));
    if (source.empty()) source = "(no source)";
    auto summary = std::find_if(summaries.begin(), summaries.end(),
                                [&source](const SourceSummary& s) { return s.source == source; });
    if (summary == summaries.end()) {
      summary = summaries.insert(summaries.end(), SourceSummary{.source = source});
    }
    ++summary->rows;
    if (!outcome.behaves) {
      ++summary->faulty;
      continue;
    }
    if (outcome.verdict == "differs") {
      ++summary->differing;
      continue;
    }
    ++summary->reproduced;
    const double ratio =
        outcome.printed.value_or(0) == 0 ? 0 : std::abs(*outcome.residual / *outcome.printed);
    if (ratio >= summary->largest_residual_ratio) {
      summary->largest_residual_ratio = ratio;
      summary->largest_row = outcome.row_id;
    }
  }
  return summaries;
}

std::string CountLine(const std::vector<RowOutcome>& outcomes) {
  int reproduced = 0;
  int differing = 0;
  int faulty = 0;
  for (const RowOutcome& outcome : outcomes) {
    if (!outcome.behaves) {
      ++faulty;
    } else if (outcome.verdict == "differs") {
      ++differing;
    } else {
      ++reproduced;
    }
  }
  return std::to_string(outcomes.size()) + " rows: " + std::to_string(reproduced) +
         " reproduced, " + std::to_string(differing) + " differ as stated, " +
         std::to_string(faulty) + " do not behave\n";
}

std::string EscapePipes(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    if (c == '|') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

}  // namespace

std::string WriteText(const std::vector<RowOutcome>& outcomes) {
  std::string text;
  for (const RowOutcome& outcome : outcomes) {
    const std::string name =
        outcome.row_id.empty() ? "line " + std::to_string(outcome.line) : outcome.row_id;
    if (!outcome.behaves) {
      text +=
          "FAULT " + name + " (line " + std::to_string(outcome.line) + "): " + outcome.fault + "\n";
    } else if (outcome.verdict == "differs") {
      text += "differs " + name + ": printed " + Digits(*outcome.printed) + ", formula " +
              Digits(*outcome.value) + "; " + outcome.explanation + "\n";
    }
  }
  return text + CountLine(outcomes);
}

std::string WriteJson(const std::vector<RowOutcome>& outcomes) {
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  bool behaves = true;
  for (const RowOutcome& outcome : outcomes) {
    nlohmann::ordered_json row;
    row["row_id"] = outcome.row_id;
    row["line"] = outcome.line;
    row["formula_id"] = outcome.formula_id;
    row["verdict"] = outcome.verdict;
    row["behaves"] = outcome.behaves;
    if (outcome.value.has_value()) {
      row["value"] = *outcome.value;
      row["printed"] = *outcome.printed;
      row["residual"] = *outcome.residual;
    }
    if (!outcome.explanation.empty()) row["explanation"] = outcome.explanation;
    if (!outcome.fault.empty()) row["fault"] = outcome.fault;
    rows.push_back(std::move(row));
    behaves = behaves && outcome.behaves;
  }
  nlohmann::ordered_json document;
  document["behaves"] = behaves;
  document["rows"] = std::move(rows);
  return document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

std::string WriteMarkdown(const std::vector<RowOutcome>& outcomes) {
  std::string text =
      "| source | rows | reproduced | differ as stated | largest residual of those reproduced |\n"
      "|---|---|---|---|---|\n";
  for (const SourceSummary& summary : Summarize(outcomes)) {
    text += "| " + EscapePipes(summary.source) + " | " + std::to_string(summary.rows) + " | " +
            std::to_string(summary.reproduced) + " | " + std::to_string(summary.differing) + " | " +
            (summary.reproduced == 0 ? std::string("-")
                                     : Digits(100 * summary.largest_residual_ratio) + " % (" +
                                           EscapePipes(summary.largest_row) + ")") +
            " |\n";
  }
  text += "\n" + CountLine(outcomes);
  text += "\n| row | printed | computed | explained by |\n|---|---|---|---|\n";
  for (const RowOutcome& outcome : outcomes) {
    if (outcome.verdict != "differs" || !outcome.behaves) continue;
    text += "| " + EscapePipes(outcome.row_id) + " | " + Digits(*outcome.printed) + " | " +
            Digits(*outcome.value) + " | " + EscapePipes(outcome.explanation) + " |\n";
  }
  return text;
}

}  // namespace flopledger::cli
