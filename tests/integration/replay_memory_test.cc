// A trace of 2 GiB is replayed in 256 MiB, and comes out as it was made.
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "fakes/big_kineto_trace.h"
#include "fakes/kineto_file.h"

extern char** environ;

namespace flopledger {
namespace {

constexpr std::uint64_t kBytes = std::uint64_t{2} << 30;
constexpr long kLimitKib = 256 * 1024;

struct Outcome {
  int status = -1;
  long peak_kib = 0;
};

Outcome RunReplay(const std::string& trace, const std::string& output) {
  const std::string command = std::string("exec '") + FLOPLEDGER_PROGRAM + "' replay --json '" +
                              trace + "' > '" + output + "'";
  const char* const arguments[] = {"sh", "-c", command.c_str(), nullptr};
  pid_t child = 0;
  Outcome outcome;
  if (posix_spawn(&child, "/bin/sh", nullptr, nullptr, const_cast<char* const*>(arguments),
                  environ) != 0) {
    return outcome;
  }
  int status = 0;
  rusage usage{};
  if (wait4(child, &status, 0, &usage) == child && WIFEXITED(status)) {
    outcome = {.status = WEXITSTATUS(status), .peak_kib = usage.ru_maxrss};
  }
  return outcome;
}

TEST(ReplayMemory, TwoGibibytesInABoundedPart) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer's memory is not the program's";
#endif
  const fakes::TemporaryFile file("");
  const std::filesystem::space_info space = std::filesystem::space(file.path());
  if (space.available < kBytes * 3 / 2) {
    GTEST_SKIP() << "3 GiB of temporary space are needed, " << (space.available >> 20)
                 << " MiB are free";
  }
  fakes::BigTraceTruth truth;
  ASSERT_TRUE(fakes::WriteBigTrace(file.path(), kBytes, &truth));
  ASSERT_GE(std::filesystem::file_size(file.path()), kBytes);
  const std::string output = file.path() + ".out";
  const Outcome outcome = RunReplay(file.path(), output);
  ASSERT_EQ(outcome.status, 0);
  EXPECT_LE(outcome.peak_kib, kLimitKib);
  RecordProperty("peak_kib", static_cast<int>(outcome.peak_kib));

  std::ifstream read(output);
  const nlohmann::json trace = nlohmann::json::parse(read).at("files").at(0);
  EXPECT_EQ(trace.at("events"), truth.events);
  EXPECT_EQ(trace.at("kernels"), truth.kernels);
  EXPECT_EQ(trace.at("busy_all_ns"), truth.busy_ns);
  EXPECT_EQ(trace.at("flops_counted"), truth.flops);
  EXPECT_EQ(static_cast<std::int64_t>(trace.at("steps").size()), truth.steps);
}

}  // namespace
}  // namespace flopledger
