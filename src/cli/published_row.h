#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "csv.h"
#include "flopledger/status.h"
#include "flopledger/units.h"

namespace flopledger::cli {

/// One published figure with the inputs that its source prints. Columns by name; what a cell cannot
/// give is remembered, so that one message names all of it.
class PublishedRow {
 public:
  PublishedRow(std::map<std::string, std::string, std::less<>> columns, std::size_t line)
      : columns_(std::move(columns)), line_(line) {}

  std::size_t line() const { return line_; }
  /// The text of a column without surrounding blanks; empty if it is blank or not there.
  std::string Text(std::string_view column) const;
  bool Has(std::string_view column) const { return !Text(column).empty(); }

  /// A number of a column, else of the same key in `extra_inputs`; none if both are blank.
  std::optional<double> Number(std::string_view column) const;
  std::optional<std::int64_t> Count(std::string_view column) const;
  /// The same, and a missing one is remembered.
  double RequireNumber(std::string_view column) const;
  std::int64_t RequireCount(std::string_view column) const;
  void Complain(std::string text) const { wrong_.push_back(std::move(text)); }

  /// Fails: kInvalidArgument with all that was missing or wrong so far.
  Result<void> Verdict() const;

 private:
  std::map<std::string, std::string, std::less<>> columns_;
  std::size_t line_ = 0;
  mutable std::vector<std::string> missing_;
  mutable std::vector<std::string> wrong_;
};

/// The rows of a table. Rows that have another number of fields than the header are kept, with a
/// verdict that says so. Fails: kInvalidArgument for what is no table, or lacks a needed column.
Result<std::vector<PublishedRow>> ReadPublishedTable(std::string_view csv);

}  // namespace flopledger::cli
