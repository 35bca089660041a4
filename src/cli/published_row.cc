#include "published_row.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <utility>

namespace flopledger::cli {
namespace {

constexpr std::array<std::string_view, 6> kNeededColumns = {"row_id",    "metric",     "printed",
                                                            "tolerance", "formula_id", "verdict"};

std::string_view Trim(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return "";
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

std::optional<double> ParseNumber(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

/// The value of `key` in `a=1;b=2`.
std::string ExtraInput(std::string_view text, std::string_view key) {
  while (!text.empty()) {
    const std::size_t end = text.find(';');
    const std::string_view item = text.substr(0, end);
    text = end == std::string_view::npos ? "" : text.substr(end + 1);
    const std::size_t equals = item.find('=');
    if (equals != std::string_view::npos && Trim(item.substr(0, equals)) == key) {
      return std::string(Trim(item.substr(equals + 1)));
    }
  }
  return "";
}

}  // namespace

std::string PublishedRow::Text(std::string_view column) const {
  const auto found = columns_.find(column);
  if (found != columns_.end()) {
    const std::string_view text = Trim(found->second);
    if (!text.empty()) return std::string(text);
  }
  const auto extra = columns_.find("extra_inputs");
  return extra == columns_.end() ? "" : ExtraInput(extra->second, column);
}

std::optional<double> PublishedRow::Number(std::string_view column) const {
  const std::string text = Text(column);
  if (text.empty()) return std::nullopt;
  const std::optional<double> value = ParseNumber(text);
  if (!value.has_value()) {
    Complain(std::string(column) + " is '" + text + "' (accepted: a finite number)");
  }
  return value;
}

std::optional<std::int64_t> PublishedRow::Count(std::string_view column) const {
  const std::optional<double> value = Number(column);
  if (!value.has_value()) return std::nullopt;
  // Digits are read as an integer, so that a count above 2^53 keeps its last ones.
  const Result<Int128> exact = ParseInt128(Text(column));
  const bool whole = *value >= 1 && *value <= 9e18 && std::floor(*value) == *value;
  if (!whole) {
    Complain(std::string(column) + " is '" + Text(column) +
             "' (accepted: a whole number from 1 to 9e18)");
    return std::nullopt;
  }
  return exact.has_value() ? static_cast<std::int64_t>(*exact) : static_cast<std::int64_t>(*value);
}

double PublishedRow::RequireNumber(std::string_view column) const {
  if (!Has(column)) missing_.emplace_back(column);
  const double value = Number(column).value_or(0);
  if (Has(column) && value < 0) {
    Complain(std::string(column) + " is '" + Text(column) + "' (accepted: more than 0)");
  }
  return value;
}

std::int64_t PublishedRow::RequireCount(std::string_view column) const {
  if (!Has(column)) missing_.emplace_back(column);
  return Count(column).value_or(0);
}

Result<void> PublishedRow::Verdict() const {
  if (missing_.empty() && wrong_.empty()) return {};
  std::string text;
  std::vector<std::string> said;
  const auto say = [&text, &said](const std::string& what, const char* first) {
    if (std::find(said.begin(), said.end(), what) != said.end()) return;
    text += (said.empty() ? first : (first[0] == 0 ? "; " : ", ")) + what;
    said.push_back(what);
  };
  for (const std::string& name : missing_) say(name, "missing ");
  for (const std::string& what : wrong_) say(what, "");
  return InvalidArgument(text);
}

Result<std::vector<PublishedRow>> ReadPublishedTable(std::string_view csv) {
  Result<std::vector<CsvRecord>> records = ReadCsv(csv);
  if (!records.has_value()) return tl::unexpected(records.error());
  if (records->empty()) return InvalidArgument("the file has no header line");
  std::vector<std::string> header;
  for (const std::string& name : records->front().fields) header.emplace_back(Trim(name));
  std::string missing;
  for (std::string_view needed : kNeededColumns) {
    if (std::find(header.begin(), header.end(), needed) == header.end()) {
      missing += (missing.empty() ? "" : ", ") + std::string(needed);
    }
  }
  if (!missing.empty()) return InvalidArgument("the header lacks the columns " + missing);
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (std::find(header.begin(), header.begin() + static_cast<std::ptrdiff_t>(i), header[i]) !=
        header.begin() + static_cast<std::ptrdiff_t>(i)) {
      return InvalidArgument("the header has the column '" + header[i] + "' twice");
    }
  }
  std::vector<PublishedRow> rows;
  for (std::size_t i = 1; i < records->size(); ++i) {
    const CsvRecord& record = (*records)[i];
    std::map<std::string, std::string, std::less<>> columns;
    const std::size_t fields = std::min(record.fields.size(), header.size());
    for (std::size_t j = 0; j < fields; ++j) columns[header[j]] = record.fields[j];
    PublishedRow row(std::move(columns), record.line);
    if (record.fields.size() != header.size()) {
      row.Complain("the row has " + std::to_string(record.fields.size()) +
                   " fields, the header has " + std::to_string(header.size()));
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace flopledger::cli
