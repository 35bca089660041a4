#include "collect/trace/nsys_rows.h"

#include <limits>

namespace flopledger {
namespace {

constexpr int kMostFaults = 256;
constexpr std::int64_t kFirstJump = 8;

}  // namespace

Result<NsysLoss> ForEachNsysRow(SqliteFile& file, const NsysSelection& selection, bool lenient,
                                const std::function<Result<bool>(const SqliteRows& row)>& take) {
  Result<SqliteRows> rows =
      file.Query(selection.table, "SELECT rowid," + selection.columns + " FROM main." +
                                      selection.table + " WHERE rowid>?1 AND " + selection.where);
  if (!rows.has_value()) return tl::unexpected(rows.error());
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  NsysLoss loss;
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  std::int64_t jump = kFirstJump;
  rows->Bind(1, last);
  for (;;) {
    const Result<bool> more = rows->Next();
    if (more.has_value() && !*more) return loss;
    if (more.has_value()) {
      last = rows->Integer(0);
      jump = kFirstJump;
      if (Result<bool> taken = take(*rows); !taken.has_value()) {
        return tl::unexpected(taken.error());
      }
      continue;
    }
    if (!lenient || more.error().code() != StatusCode::kDataLoss) {
      return tl::unexpected(more.error());
    }
    if (loss.faults++ == 0) loss.text = more.error().message();
    // Numbers of rows begin at 1.
    if (last < 0) last = 0;
    if (loss.faults == kMostFaults || last > kMost - jump) return loss;
    last += jump;
    jump = jump > kMost / 2 ? jump : jump * 2;
    rows->Rewind();
    rows->Bind(1, last);
  }
}

}  // namespace flopledger
