#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

namespace flopledger {

/// A small export of our own, made with SQL. The tables have the columns of recent versions.
class NsysFile {
 public:
  static constexpr std::int64_t kProcess = 16777360;  // globalPid >> 24 of a process 144
  static constexpr std::int64_t kOther = 16777361;

  explicit NsysFile(const std::string& name = "own")
      : path_((std::filesystem::temp_directory_path() /
               ("flopledger_nsys_" + name + std::to_string(getpid()) + ".sqlite"))
                  .string()) {
    std::filesystem::remove(path_);
  }
  ~NsysFile() { std::filesystem::remove(path_); }

  const std::string& path() const { return path_; }

  static std::vector<std::string> Tables() {
    return {
        "CREATE TABLE StringIds(id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL)",
        "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, deviceId INTEGER, "
        "streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, "
        "shortName INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, blockX INTEGER, "
        "blockY INTEGER, blockZ INTEGER, staticSharedMemory INTEGER, dynamicSharedMemory INTEGER, "
        "graphNodeId INTEGER)",
        "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY(start INTEGER, end INTEGER, deviceId INTEGER, "
        "streamId INTEGER, correlationId INTEGER, globalPid INTEGER, copyKind INTEGER)",
        "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET(start INTEGER, end INTEGER, deviceId INTEGER, "
        "streamId INTEGER, correlationId INTEGER, globalPid INTEGER)",
        "CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER, end INTEGER, globalTid INTEGER, "
        "correlationId INTEGER)",
        "CREATE TABLE NVTX_EVENTS(start INTEGER, end INTEGER, eventType INTEGER, text TEXT, "
        "globalTid INTEGER, textId INTEGER, domainId INTEGER, uint64Value INTEGER, "
        "int64Value INTEGER)",
        "CREATE TABLE ENUM_CUDA_MEMCPY_OPER(id INTEGER, name TEXT, label TEXT)",
        "INSERT INTO ENUM_CUDA_MEMCPY_OPER VALUES(1,'HTOD','Host-to-Device')",
        "INSERT INTO StringIds VALUES(1,'gemm'),(2,'ncclDevKernel_AllReduce'),(3,'step 9')",
    };
  }

  static std::int64_t Thread(std::int64_t process, int thread) { return (process << 24) + thread; }

  static std::string Kernel(std::int64_t start, std::int64_t end, std::int64_t correlation,
                            std::int64_t process = kProcess, int device = 0, int stream = 7,
                            int name = 1) {
    return "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(" + std::to_string(start) + "," +
           std::to_string(end) + "," + std::to_string(device) + "," + std::to_string(stream) + "," +
           std::to_string(correlation) + "," + std::to_string(process << 24) + "," +
           std::to_string(name) + "," + std::to_string(name) + ",2,3,4,32,1,1,16,32,NULL)";
  }
  static std::string Call(std::int64_t start, std::int64_t end, std::int64_t correlation,
                          std::int64_t process = kProcess, int thread = 5) {
    return "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(" + std::to_string(start) + "," +
           std::to_string(end) + "," + std::to_string(Thread(process, thread)) + "," +
           std::to_string(correlation) + ")";
  }
  static std::string Range(std::int64_t start, const std::string& end, const std::string& text,
                           int thread = 5, const std::string& payload = "NULL", int type = 59,
                           std::int64_t process = kProcess) {
    return "INSERT INTO NVTX_EVENTS VALUES(" + std::to_string(start) + "," + end + "," +
           std::to_string(type) + "," + text + "," + std::to_string(Thread(process, thread)) +
           ",NULL,0,NULL," + payload + ")";
  }

  void Run(const std::vector<std::string>& statements) {
    sqlite3* db = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &db), SQLITE_OK);
    sqlite3_exec(db, "PRAGMA synchronous=OFF; PRAGMA journal_mode=OFF", nullptr, nullptr, nullptr);
    for (const std::string& statement : statements) {
      char* error = nullptr;
      EXPECT_EQ(sqlite3_exec(db, statement.c_str(), nullptr, nullptr, &error), SQLITE_OK)
          << statement << ": " << (error != nullptr ? error : "");
      sqlite3_free(error);
    }
    sqlite3_close(db);
  }

 private:
  const std::string path_;
};

}  // namespace flopledger
