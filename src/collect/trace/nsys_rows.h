#pragma once

#include <functional>
#include <string>

#include "collect/trace/sqlite_file.h"
#include "flopledger/status.h"

namespace flopledger {

/// Which rows of a table, and what of them: SQL, column 0 of what comes is the row's number.
struct NsysSelection {
  std::string table;
  std::string columns;  ///< `start,"end"`
  std::string where;    ///< `1` for all
};

/// What could not be read of a table.
struct NsysLoss {
  int faults = 0;
  std::string text;  ///< the first fault
};

/// Hands out the rows of a table in the order of the file. Strict, a corrupt page is a failure;
/// lenient, it is jumped over, further with each try, and what is behind it is read again.
///
/// Fails: as `SqliteFile` does, and with what `take` returns.
Result<NsysLoss> ForEachNsysRow(SqliteFile& file, const NsysSelection& selection, bool lenient,
                                const std::function<Result<bool>(const SqliteRows& row)>& take);

}  // namespace flopledger
