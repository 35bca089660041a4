#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "flopledger/status.h"

namespace flopledger::cli {

/// One record of a table, and the line of the file where it begins (1 is the first).
struct CsvRecord {
  std::size_t line = 0;
  std::vector<std::string> fields;
};

/// Reads comma-separated values: quoted fields with doubled quotes and line breaks, CRLF or LF, a
/// byte-order mark, empty lines (left out). Fails: kInvalidArgument with the line of a quote that
/// never ends or that stands where none may.
Result<std::vector<CsvRecord>> ReadCsv(std::string_view text);

}  // namespace flopledger::cli
