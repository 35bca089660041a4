#include "collect/trace/sqlite_file.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include <array>
#include <cctype>
#include <utility>

namespace flopledger {
namespace {

constexpr int kTickInstructions = 4096;
// A row takes at least this many bytes in a page, and no more instructions than this in any of our
// queries: a corrupt tree whose pages point at each other would give rows without end.
constexpr std::uint64_t kLeastRowBytes = 16;
constexpr std::uint64_t kMostInstructionsPerRow = 400;
constexpr std::uint64_t kFreeTicks = 100;

struct Limit {
  int id;
  int value;
};
constexpr std::array kLimits = {Limit{SQLITE_LIMIT_LENGTH, 64 << 20},
                                Limit{SQLITE_LIMIT_SQL_LENGTH, 1 << 16},
                                Limit{SQLITE_LIMIT_COLUMN, 512},
                                Limit{SQLITE_LIMIT_EXPR_DEPTH, 100},
                                Limit{SQLITE_LIMIT_COMPOUND_SELECT, 8},
                                Limit{SQLITE_LIMIT_VDBE_OP, 100000},
                                Limit{SQLITE_LIMIT_ATTACHED, 0},
                                Limit{SQLITE_LIMIT_VARIABLE_NUMBER, 16},
                                Limit{SQLITE_LIMIT_TRIGGER_DEPTH, 1},
                                Limit{SQLITE_LIMIT_WORKER_THREADS, 0},
                                Limit{SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 64}};

constexpr const char* kSettings =
    "PRAGMA trusted_schema=OFF; PRAGMA cell_size_check=ON; PRAGMA mmap_size=0;"
    "PRAGMA main.cache_size=-8192; PRAGMA temp_store=FILE; PRAGMA temp.cache_size=-16384;"
    "PRAGMA temp.journal_mode=OFF;";

std::string UriOf(const std::string& path) {
  std::string uri = "file:";
  for (const char c : path) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0 || c == '/' || c == '.' || c == '_' || c == '-') {
      uri += c;
    } else {
      constexpr std::string_view kDigits = "0123456789ABCDEF";
      uri += '%';
      uri += kDigits[byte >> 4];
      uri += kDigits[byte & 0xf];
    }
  }
  return uri + "?mode=ro&immutable=1";
}

}  // namespace

void SqliteRows::Finalizer::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

SqliteRows::SqliteRows(std::shared_ptr<SqliteFile> file, std::string what, sqlite3_stmt* statement)
    : file_(std::move(file)), what_(std::move(what)), statement_(statement) {}

Result<bool> SqliteRows::Next() {
  const int result = sqlite3_step(statement_.get());
  if (result == SQLITE_ROW) {
    ++row_;
    return true;
  }
  if (result == SQLITE_DONE) return false;
  return file_->Failure(what_, row_ + 1);
}

bool SqliteRows::IsNull(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

std::int64_t SqliteRows::Integer(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

double SqliteRows::Real(int column) const {
  return sqlite3_column_double(statement_.get(), column);
}

std::string_view SqliteRows::Text(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  if (text == nullptr) return {};
  return {text, static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

void SqliteRows::Rewind() { sqlite3_reset(statement_.get()); }

void SqliteRows::Bind(int parameter, std::int64_t value) {
  sqlite3_bind_int64(statement_.get(), parameter, value);
}

void SqliteRows::BindValue(int parameter, const SqliteRows& row, int column) {
  sqlite3_bind_value(statement_.get(), parameter,
                     sqlite3_column_value(row.statement_.get(), column));
}

SqliteFile::~SqliteFile() { sqlite3_close_v2(db_); }

int SqliteFile::Tick(void* self) {
  auto* file = static_cast<SqliteFile*>(self);
  return ++file->ticks_ > file->tick_limit_ ? 1 : 0;
}

Result<std::shared_ptr<SqliteFile>> SqliteFile::Open(const std::string& path) {
  struct stat status{};
  if (stat(path.c_str(), &status) != 0) {
    return Fail(StatusCode::kNotFound, path + ": cannot be opened");
  }
  std::shared_ptr<SqliteFile> file(new SqliteFile(path));
  file->bytes_ = static_cast<std::uint64_t>(status.st_size);
  file->tick_limit_ =
      kFreeTicks + file->bytes_ / kLeastRowBytes * kMostInstructionsPerRow / kTickInstructions;
  const int opened = sqlite3_open_v2(
      UriOf(path).c_str(), &file->db_,
      SQLITE_OPEN_READONLY | SQLITE_OPEN_URI | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE,
      nullptr);
  if (opened != SQLITE_OK) return file->Failure("header", 0);
  sqlite3_db_config(file->db_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(file->db_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(file->db_, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, nullptr);
  sqlite3_db_config(file->db_, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(file->db_, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  for (const Limit& limit : kLimits) sqlite3_limit(file->db_, limit.id, limit.value);
  sqlite3_progress_handler(file->db_, kTickInstructions, &SqliteFile::Tick, file.get());
  if (Result<bool> set = file->Execute("header", kSettings); !set.has_value()) {
    return tl::unexpected(set.error());
  }
  return file;
}

tl::unexpected<Status> SqliteFile::Failure(std::string_view what, std::int64_t row) const {
  std::string where = path_ + ": " + std::string(what);
  if (row > 0) where += ", row " + std::to_string(row);
  if (db_ == nullptr) return Fail(StatusCode::kInternal, where + ": out of memory");
  const int code = sqlite3_errcode(db_);
  if (code == SQLITE_INTERRUPT) {
    return Fail(StatusCode::kDataLoss, where + ": corrupt: it gives more rows than " +
                                           std::to_string(bytes_) + " bytes can hold");
  }
  const StatusCode status = code == SQLITE_CANTOPEN ? StatusCode::kNotFound
                            : code == SQLITE_FULL || code == SQLITE_IOERR || code == SQLITE_NOMEM
                                ? StatusCode::kUnavailable
                                : StatusCode::kDataLoss;
  return Fail(status, where + ": " + sqlite3_errmsg(db_));
}

Result<bool> SqliteFile::Execute(std::string_view what, const std::string& sql) {
  if (sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    return Failure(what, 0);
  }
  return true;
}

Result<SqliteRows> SqliteFile::Query(std::string what, const std::string& sql) {
  sqlite3_stmt* statement = nullptr;
  ticks_ = 0;
  if (sqlite3_prepare_v2(db_, sql.c_str(), static_cast<int>(sql.size()), &statement, nullptr) !=
      SQLITE_OK) {
    return Failure(what, 0);
  }
  return SqliteRows(shared_from_this(), std::move(what), statement);
}

Result<std::set<std::string>> SqliteFile::Columns(std::string_view table) {
  // Ordinary tables alone: a view or a virtual table of a name that we know is not what we know.
  Result<SqliteRows> rows =
      Query("schema",
            "SELECT c.name FROM main.sqlite_schema s, pragma_table_info(s.name) c "
            "WHERE s.type='table' AND s.rootpage>0 AND s.name='" +
                std::string(table) + "'");
  if (!rows.has_value()) return tl::unexpected(rows.error());
  std::set<std::string> columns;
  Result<bool> more = rows->Next();
  for (; more.has_value() && *more; more = rows->Next()) columns.emplace(rows->Text(0));
  if (!more.has_value()) return tl::unexpected(more.error());
  return columns;
}

}  // namespace flopledger
