#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "export/exit_summary.h"
#include "export/jsonl_reader.h"
#include "export/jsonl_sink.h"
#include "export/report_json.h"
#include "fakes/fake_run.h"

namespace flopledger {
namespace {

using Json = nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

class JsonlTest : public ::testing::Test {
 protected:
  JsonlTest() {
    std::string name = (std::filesystem::temp_directory_path() / "flopledger-XXXXXX").string();
    folder_ = mkdtemp(name.data());
    path_ = (folder_ / "run.jsonl").string();
  }
  ~JsonlTest() override { std::filesystem::remove_all(folder_); }

  // Writes steps of a fake run; returns what was written.
  std::vector<StepReport> Write(JsonlSink* sink, int steps, bool finish = true) {
    fakes::FakeRun run;
    RunTotals totals;
    std::vector<StepReport> reports;
    sink->Open(run.description());
    for (int i = 0; i < steps; ++i) {
      reports.push_back(run.NextStep());
      totals.Add(reports.back());
      sink->Publish(reports.back(), totals);
    }
    if (finish) {
      totals.Exclude("after_last_step", DurationNs(1'500'000'000));
      sink->Finish(totals);
    }
    return reports;
  }

  std::filesystem::path folder_;
  std::string path_;
};

// Every field of a step, with values that are easy to get wrong.
StepReport HardStep() {
  StepReport report = fakes::FakeRun(3).NextStep();
  report.result = StepResult::kComplete;
  report.step = 9'007'199'254'740'993;
  report.start_ns = 9'007'199'254'740'993;
  report.end_ns = report.start_ns + report.wall.ns();
  report.executed.total = Flops::FromInteger(Int128{10'000'000'000} * 1'000'000'000'000 + 1);
  report.executed.excess = -Flops::FromInteger(5);
  report.unexplained = -Flops::FromInteger(77);
  report.tokens.even_split = true;
  report.values = {{"loss", std::nan("")},
                   {"grad", std::numeric_limits<double>::infinity()},
                   {"low", -std::numeric_limits<double>::infinity()},
                   {"quote\"\\\n\x01", 0.1}};
  report.findings = {{"above_peak", 1.25, "wrong peak: \"sparse\""}};
  report.gaps.front().name = "kernel<int, (anonymous)> \xE2\x82\xAC\t";
  LossRecord loss;
  loss.where = LossRecord::Where::kMarkerRing;
  loss.reason = LossRecord::Reason::kInvalidTime;
  loss.count = 3;
  report.losses = {loss};
  report.late_records = 4;
  report.op_time_by_phase[static_cast<std::size_t>(Phase::kRecompute)] = DurationNs(12);
  report.utilization.mfu_ratio = std::nullopt;
  report.utilization.mfu_refusal = RefusalReason::kDeclarationLost;
  return report;
}

TEST_F(JsonlTest, WhatIsReadIsWhatWasWritten) {
  const fakes::FakeRun run;
  for (StepReport report : {HardStep(), fakes::FakeRun(5).NextStep(), StepReport()}) {
    const std::string line = StepJson(report, run.description().identity);
    EXPECT_EQ(line.find('\n'), std::string::npos);
    const auto log = ReadStepLog(RunJson(run.description()) + "\n" + line + "\n");
    ASSERT_TRUE(log.has_value()) << log.error().message();
    ASSERT_EQ(log->unreadable_lines, 0);
    ASSERT_EQ(log->steps.size(), 1U);
    // A second writing of what was read is the same text, field by field.
    EXPECT_EQ(StepJson(log->steps[0], log->run.identity), line);
    EXPECT_EQ(RunJson(log->run), RunJson(run.description()));
    EXPECT_TRUE(log->steps[0].executed.total == report.executed.total);
    EXPECT_EQ(log->steps[0].start_ns, report.start_ns);
  }
}

TEST_F(JsonlTest, FiguresThatPass2To53AreDigits) {
  const Json json = Json::parse(StepJson(HardStep(), {}));
  EXPECT_EQ(json["executed_flops"], "10000000000000000000001");
  EXPECT_EQ(json["unexplained_flops"], "-77");
  EXPECT_EQ(json["start_ns"], "9007199254740993");
  EXPECT_TRUE(json["mfu_ratio"].is_null());
  EXPECT_EQ(json["mfu_refusal"], "declaration_lost");
  EXPECT_EQ(json["values"]["loss"], "nan");
  EXPECT_EQ(json["values"]["low"], "-inf");
}

TEST_F(JsonlTest, BytesThatAreNoTextAreRepaired) {
  StepReport report = HardStep();
  report.gaps.front().name = "bad \xff name";
  EXPECT_EQ(Json::parse(StepJson(report, {}))["gaps"][0]["name"], "bad \xEF\xBF\xBD name");
}

TEST_F(JsonlTest, GapsAreTheLargestAndTheRestIsCounted) {
  StepReport report = HardStep();
  report.gaps.clear();
  for (int i = 0; i < 5000; ++i) {
    CoverageGap gap;
    gap.name = "k" + std::to_string(i);
    gap.time = DurationNs(i);
    report.gaps.push_back(gap);
  }
  const Json json = Json::parse(StepJson(report, {}));
  EXPECT_EQ(json["gaps"].size(), kMaxJsonGaps);
  EXPECT_EQ(json["gaps"][0]["name"], "k4999");
  EXPECT_EQ(json["gaps_left_out"], 5000 - kMaxJsonGaps);
}

TEST_F(JsonlTest, ARunIsItsDescriptionItsStepsAndItsSummary) {
  auto sink = JsonlSink::Create({.path = path_});
  const std::vector<StepReport> reports = Write(sink->get(), 20);
  const std::vector<std::string> lines = Lines(ReadFile(path_));
  ASSERT_EQ(lines.size(), 22U);
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const Json json = Json::parse(lines[i]);
    EXPECT_EQ(json["schema_version"], kJsonSchemaVersion);
    EXPECT_EQ(json["run_id"], "gpt-small-1");
    EXPECT_EQ(json["rank"], 0);
    EXPECT_EQ(json["type"], i == 0 ? "run" : i == 21 ? "summary" : "step");
  }
  const auto log = ReadStepLog(ReadFile(path_));
  ASSERT_TRUE(log.has_value());
  EXPECT_TRUE(log->has_summary);
  EXPECT_FALSE(log->has_cut_line);
  EXPECT_EQ(log->steps.size(), 20U);
  RunTotals totals;
  for (const StepReport& report : reports) totals.Add(report);
  totals.Exclude("after_last_step", DurationNs(1'500'000'000));
  EXPECT_EQ(RenderSummary(log->run, log->totals),
            RenderSummary(fakes::FakeRun().description(), totals));
}

TEST_F(JsonlTest, ACutLastLineIsNormal) {
  auto sink = JsonlSink::Create({.path = path_});
  Write(sink->get(), 5, /*finish=*/false);
  const std::string whole = ReadFile(path_);
  const std::size_t last_line = whole.rfind('\n', whole.size() - 2) + 1;
  for (std::size_t size = last_line; size < whole.size(); size += 97) {
    const auto log = ReadStepLog(whole.substr(0, size));
    ASSERT_TRUE(log.has_value()) << size;
    EXPECT_EQ(log->steps.size(), 4U);
    EXPECT_EQ(log->has_cut_line, size > last_line);
    EXPECT_EQ(log->unreadable_lines, 0);
    EXPECT_FALSE(log->has_summary);
  }
  // The next run of the same file does not join the cut line.
  std::filesystem::resize_file(path_, whole.size() - 10);
  sink = JsonlSink::Create({.path = path_});
  Write(sink->get(), 2);
  const auto log = ReadStepLog(ReadFile(path_));
  ASSERT_TRUE(log.has_value());
  EXPECT_EQ(log->unreadable_lines, 1);
  EXPECT_TRUE(log->has_summary);
}

TEST_F(JsonlTest, ReaderSaysWhatIsWrong) {
  const std::string run = RunJson(fakes::FakeRun().description());
  auto none = ReadStepLog("hello\n{}\n");
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code(), StatusCode::kDataLoss);
  EXPECT_THAT(none.error().message(), HasSubstr("no run line in 9 bytes"));
  Json later = Json::parse(run);
  later["schema_version"] = kJsonSchemaVersion + 1;
  auto unsupported = ReadStepLog(later.dump() + "\n");
  ASSERT_FALSE(unsupported.has_value());
  EXPECT_EQ(unsupported.error().code(), StatusCode::kUnsupported);
  const auto odd = ReadStepLog(run + "\n[]\n{\"schema_version\":1,\"type\":\"step\"}\nnull\n" +
                               "{\"schema_version\":1,\"type\":\"new\"}\n");
  ASSERT_TRUE(odd.has_value());
  EXPECT_EQ(odd->unreadable_lines, 4);
}

// Nothing that was closed is lost when the process is killed: a line is in the file when `Publish`
// returns.
TEST_F(JsonlTest, AKilledProcessLosesNoClosedStep) {
  int told[2];
  ASSERT_EQ(pipe2(told, O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    auto sink = JsonlSink::Create({.path = path_});
    Write(sink->get(), 7, /*finish=*/false);
    if (write(told[1], "x", 1) != 1) _exit(1);
    while (true) pause();
  }
  char byte = 0;
  ASSERT_EQ(read(told[0], &byte, 1), 1);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  const auto log = ReadStepLog(ReadFile(path_));
  ASSERT_TRUE(log.has_value());
  EXPECT_EQ(log->steps.size(), 7U);
  EXPECT_FALSE(log->has_cut_line);
}

TEST_F(JsonlTest, RotationKeepsEveryFileWholeAndTheDiskBounded) {
  auto sink = JsonlSink::Create({.path = path_, .max_bytes = 64 << 10, .max_files = 3});
  Write(sink->get(), 150);
  std::size_t files = 0;
  std::set<std::int64_t> steps;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    ++files;
    EXPECT_LE(entry.file_size(), 64U << 10) << entry.path();
    const auto log = ReadStepLog(ReadFile(entry.path()));
    ASSERT_TRUE(log.has_value()) << "each file begins with the run";
    EXPECT_EQ(log->unreadable_lines, 0);
    EXPECT_FALSE(log->has_cut_line);
    for (const StepReport& step : log->steps) EXPECT_TRUE(steps.insert(step.step).second);
  }
  EXPECT_EQ(files, 3U);
  EXPECT_EQ(*steps.rbegin(), 149);
  EXPECT_EQ(static_cast<std::int64_t>(steps.size()), 150 - *steps.begin()) << "no step is missing";
}

TEST_F(JsonlTest, AFullDiskIsReportedOnceAndLeavesWholeLines) {
  // A limit on the file's size stands in for a full disk: a write is cut short, then refused.
  const pid_t child = fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_IGN);
    int reports = 0;
    auto sink = JsonlSink::Create({.path = path_, .on_failure = [&](const Status& status) {
                                     ++reports;
                                     if (status.message().find("run.jsonl") == std::string::npos) {
                                       _exit(2);
                                     }
                                   }});
    const rlimit limit{.rlim_cur = 20'000, .rlim_max = RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &limit);
    Write(sink->get(), 30);
    if (reports != 1) _exit(3);
    if ((*sink)->lines_lost() < 5 || (*sink)->lines_written() < 3) _exit(4);
    if ((*sink)->lines_lost() + (*sink)->lines_written() != 32) _exit(5);
    _exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
  const auto log = ReadStepLog(ReadFile(path_));
  ASSERT_TRUE(log.has_value());
  EXPECT_FALSE(log->has_cut_line);
  EXPECT_EQ(log->unreadable_lines, 0);
  EXPECT_GE(log->steps.size(), 2U);
}

TEST_F(JsonlTest, CreateRefusesWithThePathAndTheReason) {
  const std::string missing = (folder_ / "missing" / "run.jsonl").string();
  auto refused = JsonlSink::Create({.path = missing});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), StatusCode::kUnavailable);
  EXPECT_THAT(refused.error().message(), HasSubstr(missing));
  EXPECT_THAT(refused.error().message(), HasSubstr("No such file or directory"));
  EXPECT_THAT(JsonlSink::Create({.path = folder_.string()}).error().message(),
              HasSubstr("Is a directory"));
  EXPECT_FALSE(JsonlSink::Create({}).has_value());
  EXPECT_THAT(JsonlSink::Create({.path = path_, .max_bytes = 5}).error().message(),
              HasSubstr("max_bytes is 5; accepted: 65536 or more"));
  EXPECT_THAT(JsonlSink::Create({.path = path_, .max_files = 0}).error().message(),
              HasSubstr("1 to 100"));
}

// Keys of an object and of everything in it, without those that are data.
void AddKeys(const Json& json, std::set<std::string>* keys) {
  if (json.is_array()) {
    for (const Json& each : json) AddKeys(each, keys);
  }
  if (!json.is_object()) return;
  for (const auto& [key, value] : json.items()) {
    keys->insert(key);
    static const std::set<std::string> kDataKeys = {"values",      "state_ns",
                                                    "waterfall",   "state_section_ns",
                                                    "excluded_ns", "op_time_by_phase_ns",
                                                    "device_ns",   "steps"};
    if (value.is_array() || kDataKeys.count(key) == 0) AddKeys(value, keys);
  }
}

TEST_F(JsonlTest, EveryKeyIsInTheDocument) {
  RunTotals totals;
  totals.Add(HardStep());
  std::set<std::string> keys;
  for (const std::string& line : {RunJson(fakes::FakeRun().description()), StepJson(HardStep(), {}),
                                  SummaryJson(totals, {})}) {
    AddKeys(Json::parse(line), &keys);
  }
  EXPECT_GT(keys.size(), 60U);
  const std::string document =
      ReadFile(std::filesystem::path(FLOPLEDGER_SOURCE_FOLDER) / "docs" / "jsonl.md");
  std::vector<std::string> missing;
  for (const std::string& key : keys) {
    if (document.find("`" + key + "`") == std::string::npos) missing.push_back(key);
  }
  EXPECT_THAT(missing, IsEmpty());
  EXPECT_THAT(document,
              HasSubstr("schema_version` | integer | " + std::to_string(kJsonSchemaVersion)));
}

}  // namespace
}  // namespace flopledger
