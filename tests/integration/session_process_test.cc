// How a process with a session ends, seen from outside.

#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

namespace flopledger {
namespace {

using Json = nlohmann::json;

/// A stand-in that runs, with its output to read from.
class StandIn {
 public:
  explicit StandIn(const std::string& mode) {
    std::string pattern = (std::filesystem::temp_directory_path() / "flopledger-XXXXXX").string();
    folder_ = mkdtemp(pattern.data());
    int output[2];
    EXPECT_EQ(pipe(output), 0);
    pid_ = fork();
    if (pid_ == 0) {
      dup2(output[1], STDOUT_FILENO);
      close(output[0]);
      close(output[1]);
      execl(FLOPLEDGER_STAND_IN, FLOPLEDGER_STAND_IN, mode.c_str(), Path().c_str(), nullptr);
      _exit(127);
    }
    close(output[1]);
    output_ = fdopen(output[0], "r");
  }
  ~StandIn() {
    if (!ended_) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    fclose(output_);
    std::filesystem::remove_all(folder_);
  }

  std::string Path() const { return folder_ + "/steps.jsonl"; }

  bool WaitFor(const std::string& line) {
    char buffer[256];
    while (fgets(buffer, sizeof(buffer), output_) != nullptr) {
      if (line + "\n" == buffer) return true;
    }
    return false;
  }

  void Send(int signal_number) const { kill(pid_, signal_number); }

  /// Its wait status; -1 if it had to be killed after the limit.
  int WaitForEnd(std::chrono::seconds limit = std::chrono::seconds(20)) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    int status = 0;
    while (std::chrono::steady_clock::now() < deadline) {
      if (waitpid(pid_, &status, WNOHANG) == pid_) {
        ended_ = true;
        return status;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return -1;
  }

  std::vector<Json> Lines() const {
    std::vector<Json> lines;
    std::ifstream file(Path());
    for (std::string line; std::getline(file, line);) {
      lines.push_back(Json::parse(line, nullptr, false));
      EXPECT_FALSE(lines.back().is_discarded()) << line;
    }
    return lines;
  }

 private:
  std::string folder_;
  pid_t pid_ = -1;
  FILE* output_ = nullptr;
  bool ended_ = false;
};

std::vector<std::int64_t> StepsOf(const std::vector<Json>& lines) {
  std::vector<std::int64_t> steps;
  for (const Json& line : lines) {
    if (line.value("type", "") == "step") steps.push_back(line.at("step"));
  }
  return steps;
}

TEST(SessionProcessTest, SigtermInMidStepFlushesWhatWasClosedAndEndsAsItWouldHave) {
  StandIn process("signal");
  ASSERT_TRUE(process.WaitFor("ready"));
  process.Send(SIGTERM);
  const int status = process.WaitForEnd();
  ASSERT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
  const std::vector<Json> lines = process.Lines();
  const std::vector<std::int64_t> steps = StepsOf(lines);
  ASSERT_GE(steps.size(), 5u);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i], static_cast<std::int64_t>(i)) << "no step is missing";
  }
  EXPECT_EQ(lines.back().value("type", ""), "summary");
}

TEST(SessionProcessTest, TheHostsOwnHandlerIsLeftAlone) {
  StandIn process("own-handler");
  ASSERT_TRUE(process.WaitFor("ready"));
  process.Send(SIGTERM);
  const int status = process.WaitForEnd();
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 42);
}

TEST(SessionProcessTest, AnIgnoredSigtermStaysIgnored) {
  StandIn process("ignored");
  const int status = process.WaitForEnd();
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(StepsOf(process.Lines()).size(), 10u);
}

// C43: children end by themselves, own no socket and write nothing; the parent counts on.
TEST(SessionProcessTest, C43ForkAfterStart) {
  StandIn process("fork");
  const int status = process.WaitForEnd();
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
  const std::vector<std::int64_t> expected = {0, 1, 2, 3, 4, 5};
  EXPECT_EQ(StepsOf(process.Lines()), expected);
}

TEST(SessionProcessTest, ASinkThatNeverReturnsDoesNotHoldTheTraining) {
  StandIn process("stuck");
  EXPECT_TRUE(process.WaitFor("trained to the end"));
  const int status = process.WaitForEnd();
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(SessionProcessTest, SigtermEndsAProcessWhoseWorkerIsStuck) {
  StandIn process("stuck-signal");
  ASSERT_TRUE(process.WaitFor("ready"));
  process.Send(SIGTERM);
  const int status = process.WaitForEnd();
  ASSERT_TRUE(WIFSIGNALED(status)) << status;
  EXPECT_EQ(WTERMSIG(status), SIGTERM);
}

}  // namespace
}  // namespace flopledger
