#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "flopledger/status.h"

struct sqlite3;
struct sqlite3_stmt;

namespace flopledger {

class SqliteFile;

/// A query whose rows are read one by one. Columns count from 0; a NULL reads as 0 or "".
///
///     Result<SqliteRows> rows = file->Query("KERNEL", "SELECT start FROM KERNEL");
///     for (Result<bool> more = rows->Next(); more.has_value() && *more; more = rows->Next()) ...
///
/// Thread: one. Ownership: keeps the file open. Fails: kDataLoss with the file, the table and the
/// number of the row at which it is corrupt.
class SqliteRows {
 public:
  /// The next row; false after the last one.
  Result<bool> Next();
  bool IsNull(int column) const;
  std::int64_t Integer(int column) const;
  double Real(int column) const;
  /// Valid until the next row.
  std::string_view Text(int column) const;
  std::int64_t row() const { return row_; }

  /// To run it again with other values (`?1`, `?2`).
  void Rewind();
  void Bind(int parameter, std::int64_t value);
  /// The value of another query's column, with its type.
  void BindValue(int parameter, const SqliteRows& row, int column);

 private:
  friend class SqliteFile;
  struct Finalizer {
    void operator()(sqlite3_stmt* statement) const;
  };
  SqliteRows(std::shared_ptr<SqliteFile> file, std::string what, sqlite3_stmt* statement);

  std::shared_ptr<SqliteFile> file_;
  std::string what_;
  std::unique_ptr<sqlite3_stmt, Finalizer> statement_;
  std::int64_t row_ = 0;
};

/// A SQLite file that may be anything: opened to be read, as it lies (no journal, no lock), with
/// everything off by which a schema could act: extensions, triggers, views, functions. Sorting and
/// joining spill into temporary files, so that memory does not grow with the file.
///
/// Thread: one. Fails: kNotFound, kDataLoss; messages name the file.
class SqliteFile : public std::enable_shared_from_this<SqliteFile> {
 public:
  static Result<std::shared_ptr<SqliteFile>> Open(const std::string& path);
  ~SqliteFile();
  SqliteFile(const SqliteFile&) = delete;
  SqliteFile& operator=(const SqliteFile&) = delete;

  const std::string& path() const { return path_; }
  std::uint64_t bytes() const { return bytes_; }
  /// Names of the columns of an ordinary table; empty if there is none of this name.
  Result<std::set<std::string>> Columns(std::string_view table);
  /// `what` names the table in messages.
  Result<SqliteRows> Query(std::string what, const std::string& sql);
  /// For temporary tables.
  Result<bool> Execute(std::string_view what, const std::string& sql);

 private:
  friend class SqliteRows;
  explicit SqliteFile(std::string path) : path_(std::move(path)) {}
  tl::unexpected<Status> Failure(std::string_view what, std::int64_t row) const;
  static int Tick(void* self);

  std::string path_;
  std::uint64_t bytes_ = 0;
  sqlite3* db_ = nullptr;
  std::uint64_t ticks_ = 0;
  std::uint64_t tick_limit_ = 0;
};

}  // namespace flopledger
