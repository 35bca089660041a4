// Corrupt pages of an export: rows or a status, in bounded time, never a crash.
#include <sqlite3.h>

#include "patched_file.h"

namespace flopledger {
namespace {

constexpr const char* kExport =
    "PRAGMA page_size=512; CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, deviceId INTEGER, "
    "streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER);"
    "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER, end INTEGER, globalTid INTEGER, "
    "correlationId INTEGER);"
    "CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER, eventType INTEGER, text TEXT, "
    "globalTid INTEGER, textId INTEGER);"
    "INSERT INTO StringIds VALUES(1,'gemm'),(2,'forward');"
    "WITH RECURSIVE c(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM c WHERE i<60) "
    "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL SELECT i*10,i*10+5,0,7,i,16777216,1 FROM c;"
    "WITH RECURSIVE c(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM c WHERE i<60) "
    "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME SELECT i*10-5,i*10-4,16777217,i FROM c;"
    "WITH RECURSIVE c(i) AS (VALUES(1) UNION ALL SELECT i+1 FROM c WHERE i<20) "
    "INSERT INTO NVTX_EVENTS SELECT i*30,i*30+29,59,'step '||i,16777217,2 FROM c;";

std::string MakeExport() {
  sqlite3* db = nullptr;
  if (sqlite3_open(":memory:", &db) != SQLITE_OK) std::abort();
  if (sqlite3_exec(db, kExport, nullptr, nullptr, nullptr) != SQLITE_OK) std::abort();
  sqlite3_int64 size = 0;
  unsigned char* bytes = sqlite3_serialize(db, "main", &size, 0);
  std::string file(reinterpret_cast<char*>(bytes), static_cast<std::size_t>(size));
  sqlite3_free(bytes);
  sqlite3_close(db);
  return file;
}

}  // namespace
}  // namespace flopledger

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string* const file = new std::string(flopledger::MakeExport());
  flopledger::ReadTrace(flopledger::Patched(*file, data, size));
  return 0;
}
