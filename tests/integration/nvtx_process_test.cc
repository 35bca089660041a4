// Programs with NVTX ranges, seen from outside: with a session of their own, with one from the
// environment, beside another tool.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace flopledger {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Json = nlohmann::json;

using Environment = std::map<std::string, std::string>;

struct Outcome {
  int status = -1;
  std::string output;  // of both streams
  std::vector<Json> steps;
};

int CountOf(const std::string& text, const std::string& part) {
  int count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

struct NvtxProcessTest : testing::Test {
  NvtxProcessTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "flopledger-XXXXXX").string();
    folder = mkdtemp(pattern.data());
    jsonl = folder + "/steps.jsonl";
  }
  ~NvtxProcessTest() override { std::filesystem::remove_all(folder); }

  /// Runs a program to its end; the variables are all that it has besides PATH.
  Outcome Run(const std::vector<std::string>& command, Environment environment) const {
    int output[2];
    EXPECT_EQ(pipe(output), 0);
    const pid_t pid = fork();
    if (pid == 0) {
      dup2(output[1], STDOUT_FILENO);
      dup2(output[1], STDERR_FILENO);
      close(output[0]);
      close(output[1]);
      alarm(60);
      for (char** entry = environ; *entry != nullptr; ++entry) {
        const std::string text(*entry);
        const std::string name = text.substr(0, text.find('='));
        if (name != "NVTX_INJECTION64_PATH" && !name.starts_with("FLOPLEDGER_")) {
          environment.emplace(name, text.substr(name.size() + 1));
        }
      }
      std::vector<std::string> entries;
      for (const auto& [name, value] : environment) entries.push_back(name + "=" + value);
      std::vector<char*> variables;
      for (std::string& entry : entries) variables.push_back(entry.data());
      variables.push_back(nullptr);
      std::vector<std::string> words = command;
      std::vector<char*> arguments;
      for (std::string& word : words) arguments.push_back(word.data());
      arguments.push_back(nullptr);
      execve(arguments[0], arguments.data(), variables.data());
      _exit(127);
    }
    close(output[1]);
    Outcome outcome;
    char buffer[4096];
    for (ssize_t got = 0; (got = read(output[0], buffer, sizeof(buffer))) > 0;) {
      outcome.output.append(buffer, static_cast<std::size_t>(got));
    }
    close(output[0]);
    EXPECT_EQ(waitpid(pid, &outcome.status, 0), pid);
    std::ifstream file(jsonl);
    for (std::string line; std::getline(file, line);) {
      Json parsed = Json::parse(line, nullptr, false);
      EXPECT_FALSE(parsed.is_discarded()) << line;
      if (parsed.value("type", "") == "step") outcome.steps.push_back(std::move(parsed));
    }
    return outcome;
  }

  Environment Autostart() const {
    return {{"NVTX_INJECTION64_PATH", FLOPLEDGER_LIBRARY},
            {"FLOPLEDGER_AUTOSTART", "1"},
            {"FLOPLEDGER_JSONL", jsonl},
            {"FLOPLEDGER_HTTP", "0"},
            {"FLOPLEDGER_WARMUP_STEPS", "0"},
            {"FLOPLEDGER_PEAK", "1 TFLOP/s"},
            {"FLOPLEDGER_MODEL_FLOPS", "6 * 1000 * T"},
            {"FLOPLEDGER_SEQ_LEN", "128"}};
  }

  std::string folder;
  std::string jsonl;
};

std::vector<std::int64_t> Numbers(const Outcome& outcome) {
  std::vector<std::int64_t> numbers;
  for (const Json& step : outcome.steps) numbers.push_back(step.at("step"));
  return numbers;
}

TEST_F(NvtxProcessTest, ThreeCopiesOfNvtxMakeOneStep) {
  const Outcome outcome = Run({FLOPLEDGER_NVTX_PROGRAM, "copies", "4"}, Autostart());
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_THAT(Numbers(outcome), ElementsAre(40, 41, 42, 43)) << outcome.output;
  for (const Json& step : outcome.steps) {
    EXPECT_EQ(step.at("result"), "complete");
    EXPECT_EQ(step.at("tokens").at("useful"), 128);
    // 6 x 1000 x 128, a third of it forward.
    EXPECT_EQ(step.at("useful_flops"), "768000");
    EXPECT_TRUE(step.at("mfu_ratio").is_number());
    EXPECT_THAT(step.at("devices").at(0).at("state_section_ns").dump(), HasSubstr("data"));
  }
  EXPECT_THAT(outcome.output, HasSubstr("the run's books"));  // closed at exit
}

TEST_F(NvtxProcessTest, StepsByTheNameOfAPattern) {
  Environment environment = Autostart();
  environment["FLOPLEDGER_NVTX_STEPS"] = "train step*";
  const Outcome outcome = Run({FLOPLEDGER_NVTX_PROGRAM, "names", "3"}, environment);
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_THAT(Numbers(outcome), ElementsAre(1, 2, 3)) << outcome.output;
}

TEST_F(NvtxProcessTest, WithoutTheVariableNothingIsKept) {
  Environment environment = Autostart();
  environment.erase("FLOPLEDGER_AUTOSTART");
  const Outcome outcome = Run({FLOPLEDGER_NVTX_PROGRAM, "copies", "4"}, environment);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome.output, "");
  EXPECT_FALSE(std::filesystem::exists(jsonl));
}

TEST_F(NvtxProcessTest, AWrongVariableIsSaidOnceAndTheProgramRunsOn) {
  Environment environment = Autostart();
  environment["FLOPLEDGER_WARMUP_STEP"] = "3";
  Outcome outcome = Run({FLOPLEDGER_NVTX_PROGRAM, "copies", "4"}, environment);
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(CountOf(outcome.output,
                    "unknown variable FLOPLEDGER_WARMUP_STEP; did you mean "
                    "FLOPLEDGER_WARMUP_STEPS?"),
            1)
      << outcome.output;
  EXPECT_FALSE(std::filesystem::exists(jsonl));

  const std::vector<std::array<std::string, 3>> wrong = {
      {"FLOPLEDGER_PORT", "http", "FLOPLEDGER_PORT is 'http'; accepted: an integer"},
      {"FLOPLEDGER_HTTP", "maybe", "FLOPLEDGER_HTTP is 'maybe'; accepted: 1 or 0"},
      {"FLOPLEDGER_DEVICE_RECORDS", "on", "FLOPLEDGER_DEVICE_RECORDS is 'on'; accepted: auto, off"},
      {"FLOPLEDGER_DTYPE", "bf17", "FLOPLEDGER_DTYPE is 'bf17'; accepted: fp64"},
      {"FLOPLEDGER_PEAK", "312", "peak '312' is out of range"},
      {"FLOPLEDGER_NVTX_STEPS", "st*ep", "nvtx_steps has 'st*ep'"},
      {"FLOPLEDGER_MODEL_FLOPS", "/no/config.json", "'/no/config.json', which cannot be read"},
      {"FLOPLEDGER_AUTOSTART", "perhaps", "FLOPLEDGER_AUTOSTART is 'perhaps'"}};
  for (const auto& [name, value, message] : wrong) {
    environment = Autostart();
    environment[name] = value;
    outcome = Run({FLOPLEDGER_NVTX_PROGRAM, "copies", "1"}, environment);
    EXPECT_EQ(outcome.status, 0);
    EXPECT_EQ(CountOf(outcome.output, message), 1) << outcome.output;
    EXPECT_EQ(CountOf(outcome.output, "\n"), 1) << outcome.output;
  }
}

TEST_F(NvtxProcessTest, AForkedChildCountsNothing) {
  const Outcome outcome = Run({FLOPLEDGER_NVTX_PROGRAM, "fork", "3"}, Autostart());
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_THAT(Numbers(outcome), ElementsAre(0, 1, 2, 3, 4, 5)) << outcome.output;
}

TEST_F(NvtxProcessTest, ASessionOfOnesOwnClaimsTheSlot) {
  const Outcome outcome = Run({FLOPLEDGER_NVTX_SESSION_PROGRAM, "ranges", jsonl}, {});
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_EQ(Numbers(outcome).size(), 5u);
  EXPECT_THAT(outcome.output, HasSubstr("reason ok\n"));
  EXPECT_THAT(
      outcome.output,
      HasSubstr("variable " + std::filesystem::canonical(FLOPLEDGER_LIBRARY).string() + "\n"));
}

TEST_F(NvtxProcessTest, NvtxMayOpenTheLibraryBeforeTheSession) {
  const Outcome outcome = Run({FLOPLEDGER_NVTX_SESSION_PROGRAM, "ranges-first", jsonl},
                              {{"NVTX_INJECTION64_PATH", FLOPLEDGER_LIBRARY}});
  EXPECT_EQ(Numbers(outcome).size(), 5u) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("reason ok\n"));
  // The variable that came from outside is ours, by another of its names.
  EXPECT_THAT(outcome.output, HasSubstr("variable " FLOPLEDGER_LIBRARY "\n"));
}

TEST_F(NvtxProcessTest, RangesBeforeTheClaimAreTooLateAndTheStateSaysSo) {
  const Outcome outcome = Run({FLOPLEDGER_NVTX_SESSION_PROGRAM, "ranges-first", jsonl}, {});
  EXPECT_THAT(Numbers(outcome), IsEmpty());
  EXPECT_THAT(outcome.output, HasSubstr("reason waiting\n"));
}

TEST_F(NvtxProcessTest, AStepOfBothSidesIsOne) {
  const Outcome outcome = Run({FLOPLEDGER_NVTX_SESSION_PROGRAM, "both", jsonl}, {});
  // Five of NVTX; the sixth was open when the API began and is given up; five of the API.
  EXPECT_THAT(Numbers(outcome), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)) << outcome.output;
  for (const Json& step : outcome.steps) {
    EXPECT_EQ(step.at("result"), step.at("step") == 5 ? "incomplete" : "complete");
  }
  EXPECT_EQ(CountOf(outcome.output, "NVTX step ranges and token marks are ignored"), 1)
      << outcome.output;
}

TEST_F(NvtxProcessTest, C49AnotherToolHoldsTheSlot) {
  const Outcome outcome = Run({FLOPLEDGER_NVTX_SESSION_PROGRAM, "api-after", jsonl},
                              {{"NVTX_INJECTION64_PATH", FLOPLEDGER_OTHER_INJECTION}});
  EXPECT_EQ(outcome.status, 0) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("variable " FLOPLEDGER_OTHER_INJECTION "\n"));
  EXPECT_THAT(outcome.output, HasSubstr("reason busy\n"));
  EXPECT_EQ(CountOf(outcome.output, "NVTX ranges are not seen"), 1) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("other tool saw 5\n"));
  EXPECT_THAT(Numbers(outcome), ElementsAre(0, 1, 2, 3, 4));  // those of the API
  for (const Json& step : outcome.steps) EXPECT_TRUE(step.at("mfu_ratio").is_number());

  const Outcome ranges = Run({FLOPLEDGER_NVTX_SESSION_PROGRAM, "ranges", folder + "/none.jsonl"},
                             {{"NVTX_INJECTION64_PATH", FLOPLEDGER_OTHER_INJECTION}});
  EXPECT_THAT(ranges.output, HasSubstr("other tool saw 5\n"));
  std::ifstream file(folder + "/none.jsonl");
  const std::string log((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  EXPECT_THAT(log, Not(HasSubstr("\"type\":\"step\"")));
  EXPECT_THAT(log, HasSubstr("\"mfu_ratio\":null"));  // of the summary: absent, not 0
}

TEST_F(NvtxProcessTest, ASlotHeldByAnotherCopyOfOursIsTaken) {
  // As a child process inherits it from a parent with an installation of its own.
  const std::string copy = folder + "/libflopledger.so";
  std::filesystem::copy_file(std::filesystem::canonical(FLOPLEDGER_LIBRARY), copy);
  const Outcome outcome =
      Run({FLOPLEDGER_NVTX_SESSION_PROGRAM, "ranges", jsonl}, {{"NVTX_INJECTION64_PATH", copy}});
  EXPECT_EQ(Numbers(outcome).size(), 5u) << outcome.output;
  EXPECT_THAT(outcome.output, HasSubstr("reason ok\n"));
}

}  // namespace
}  // namespace flopledger
