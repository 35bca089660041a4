#include "export/prometheus_sink.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <thread>

#include "fakes/fake_run.h"
#include "flopledger/causes.h"
#include "unit/export/exposition.h"

namespace flopledger {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing_text::Exposition;
using testing_text::ReadExposition;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

Flops Count(std::int64_t count) { return Flops::FromInteger(count); }

RunDescription Described(bool with_peak = true, bool with_model = true) {
  RunDescription run;
  run.identity.run_id = "r1";
  run.identity.rank = 3;
  run.identity.world_size = 8;
  run.convention = {.name = "house", .hash = 0xabc};
  run.version = "0.1.0";
  if (with_model) run.model = "a model";
  if (with_peak) {
    PeakRate peak;
    peak.device_model = "dev";
    peak.rate = FlopsPerSecond(1e12);
    peak.source = "sheet";
    peak.evidence = PeakEvidence::kPublished;
    run.peaks = {peak};
  }
  return run;
}

// U 420, E 560 (R 140) of a peak of 1000 within one second.
StepReport Step(std::int64_t number) {
  StepReport report;
  report.step = number;
  report.wall = DurationNs(1'000'000'000);
  report.end_unix_seconds = 1e9 + static_cast<double>(number);
  report.tokens = {.useful = 90, .padded = 100};
  report.declared = DeclaredFlops{.useful_forward = Count(140), .useful_backward = Count(280)};
  report.executed.total = Count(560);
  report.executed.recomputed = Count(140);
  ExecutedPart part;
  part.flops = Count(560);
  report.executed.parts = {part};
  report.unexplained = Flops();
  report.executed_equivalent = Count(560);
  report.peak_flops = Count(1000);
  report.utilization = {.mfu_ratio = 0.42, .hfu_low_ratio = 0.56, .hfu_high_ratio = 0.57};
  KernelTime known, unknown;
  known.op_class = OpClass::kMatmul;
  known.coverage = CoverageKind::kCounted;
  known.launches = 49;
  known.time = DurationNs(980'000'000);
  unknown.launches = 1;
  unknown.time = DurationNs(20'000'000);
  report.kernels = {known, unknown};
  report.coverage = {.time_ratio = 0.98, .launch_ratio = 0.98};
  return report;
}

class PrometheusSinkTest : public ::testing::Test {
 protected:
  std::unique_ptr<PrometheusSink> sink_ = *PrometheusSink::Create();
  RunTotals totals_;

  void Publish(const StepReport& report) {
    totals_.Add(report);
    sink_->Publish(report, totals_);
  }
  Exposition Page() {
    Exposition page = ReadExposition(*sink_->page()->Text());
    EXPECT_THAT(page.faults, IsEmpty());
    return page;
  }
};

TEST_F(PrometheusSinkTest, RendersTotalsAndTheLastStep) {
  sink_->Open(Described());
  sink_->Announce({.collector = SessionState::Collector::kCounting});
  for (int i = 0; i < 3; ++i) Publish(Step(i));
  const Exposition page = Page();
  EXPECT_EQ(page.Value("flopledger_useful_flops_total", {{"pass", "forward"}}), "420");
  EXPECT_EQ(page.Value("flopledger_useful_flops_total", {{"pass", "backward"}}), "840");
  EXPECT_EQ(
      page.Value("flopledger_executed_flops_total", {{"dtype", "fp32"}, {"source", "op_shapes"}}),
      "1680");
  EXPECT_EQ(page.Value("flopledger_recomputed_flops_total"), "420");
  EXPECT_EQ(page.Value("flopledger_eligible_peak_flops_total", {{"dtype", "fp32"}}), "3000");
  EXPECT_EQ(page.Value("flopledger_step_wall_seconds_total"), "3");
  EXPECT_EQ(page.Value("flopledger_kernel_seconds_total",
                       {{"op_class", "matmul"}, {"coverage", "counted"}}),
            "2.94");
  EXPECT_EQ(page.Value("flopledger_kernels_total", {{"coverage", "unknown"}}), "3");
  EXPECT_EQ(page.Value("flopledger_tokens_total", {{"kind", "useful"}}), "270");
  EXPECT_EQ(page.Value("flopledger_tokens_total", {{"kind", "padding"}}), "30");
  EXPECT_EQ(page.Value("flopledger_steps_total", {{"result", "complete"}}), "3");
  EXPECT_EQ(page.Value("flopledger_step_duration_seconds_count"), "3");
  EXPECT_EQ(page.Value("flopledger_step_duration_seconds_bucket", {{"le", "0.5"}}), "0");
  EXPECT_EQ(page.Value("flopledger_step_duration_seconds_bucket", {{"le", "1"}}), "3");
  EXPECT_DOUBLE_EQ(std::stod(page.Value("flopledger_window_mfu_ratio")), 0.42);
  EXPECT_DOUBLE_EQ(std::stod(page.Value("flopledger_window_hfu_ratio")), 0.56);
  EXPECT_DOUBLE_EQ(std::stod(page.Value("flopledger_window_coverage_ratio")), 0.98);
  EXPECT_EQ(page.Value("flopledger_last_step"), "2");
  EXPECT_EQ(page.Value("flopledger_last_step_end_timestamp_seconds"), "1000000002");
  EXPECT_EQ(page.Value("flopledger_world_size"), "8");
  EXPECT_EQ(page.Value("flopledger_collector_state", {{"state", "counting"}}), "1");
  EXPECT_EQ(page.Value("flopledger_collector_state", {{"state", "disabled"}}), "0");
  EXPECT_EQ(page.Value("flopledger_convention_info", {{"convention", "house"},
                                                      {"convention_hash", "0000000000000abc"},
                                                      {"dtype", "fp32"},
                                                      {"peak_evidence", "published"}}),
            "1");
  for (const auto& series : page.series) {
    EXPECT_EQ(series.labels.at("run_id"), "r1");
    EXPECT_EQ(series.labels.at("rank"), "3");
  }
}

TEST_F(PrometheusSinkTest, EveryCounterIsThereAtZeroBeforeTheFirstStep) {
  sink_->Open(Described());
  sink_->Announce({.collector = SessionState::Collector::kCounting});
  const Exposition before = Page();
  fakes::FakeRun run;
  for (int i = 0; i < 200; ++i) Publish(run.NextStep());
  std::size_t counters = 0;
  for (const auto& series : Page().series) {
    const auto type = before.types.find(series.name);
    if (type == before.types.end()) continue;  // a gauge that is absent before the first step
    if (type->second != "counter") continue;
    ++counters;
    auto labels = series.labels;
    labels["run_id"] = "r1";
    labels["rank"] = "3";
    const std::string at_start = before.Value(series.name, labels);
    if (series.name == "flopledger_overhead_seconds_total") continue;  // our own time has begun
    EXPECT_EQ(at_start, "0") << series.name;
  }
  EXPECT_GT(counters, 80U);
  std::size_t lost = before.Count("flopledger_lost_peak_flops_total");
  EXPECT_EQ(lost, kLostCauses.size()) << "all but `useful`, and `above_peak`";
}

TEST_F(PrometheusSinkTest, C53WhatIsNotKnownIsAbsent) {
  // Before the first step, peak unknown, nothing observed.
  sink_->Open(Described(/*with_peak=*/false, /*with_model=*/false));
  sink_->Announce({.collector = SessionState::Collector::kStepsOnly});
  StepReport bare;
  bare.step = 1;
  bare.wall = DurationNs(5);
  bare.utilization = {.mfu_refusal = RefusalReason::kNoPeak,
                      .hfu_refusal = RefusalReason::kNoEvidence};
  for (int state = 0; state < 2; ++state) {
    const Exposition page = Page();
    for (const char* name :
         {"flopledger_window_mfu_ratio", "flopledger_window_hfu_ratio",
          "flopledger_window_coverage_ratio", "flopledger_useful_flops_total",
          "flopledger_executed_flops_total", "flopledger_eligible_peak_flops_total",
          "flopledger_lost_peak_flops_total", "flopledger_kernel_seconds_total",
          "flopledger_eligible_peak_flops_per_second", "flopledger_device_info"}) {
      EXPECT_EQ(page.Count(name), 0U) << name << " in state " << state;
      EXPECT_EQ(page.types.count(name), 0U) << name;
    }
    EXPECT_EQ(page.Value("flopledger_collector_state", {{"state", "steps_only"}}), "1");
    EXPECT_EQ(page.Value("flopledger_convention_info", {{"peak_evidence", "unknown"}}), "1");
    Publish(bare);
  }
  EXPECT_EQ(Page().Value("flopledger_last_step"), "1");
  // Counting: there. Paused by a fault: the ratios of old steps go, the counters stay.
  auto counting = *PrometheusSink::Create();
  std::swap(sink_, counting);
  totals_ = RunTotals();
  sink_->Open(Described());
  sink_->Announce({.collector = SessionState::Collector::kCounting});
  Publish(Step(0));
  EXPECT_EQ(Page().Value("flopledger_window_mfu_ratio"), "0.42");
  sink_->Announce({.collector = SessionState::Collector::kDisabled});
  EXPECT_EQ(Page().Count("flopledger_window_mfu_ratio"), 0U);
  EXPECT_EQ(Page().Value("flopledger_useful_flops_total", {{"pass", "forward"}}), "140");
  EXPECT_EQ(Page().Value("flopledger_collector_state", {{"state", "disabled"}}), "1");
}

TEST_F(PrometheusSinkTest, C53ValuesThatAreNotFiniteAreAbsent) {
  sink_->Open(Described());
  StepReport report = Step(0);
  report.values = {{"loss", kNan}, {"grad_norm", INFINITY}, {"lr", -0.0}, {"ok", 2.5}};
  report.end_unix_seconds = 0;
  Publish(report);
  const Exposition page = Page();
  EXPECT_EQ(page.Count("flopledger_training_value"), 2U);
  EXPECT_EQ(page.Value("flopledger_training_value", {{"name", "ok"}}), "2.5");
  EXPECT_EQ(page.Count("flopledger_last_step_end_timestamp_seconds"), 0U);
}

TEST_F(PrometheusSinkTest, C58NamesOfTheUserAreEscapedNotTrusted) {
  RunDescription run = Described();
  run.identity.run_id = "exp/7 \"quoted\"\nline2 \\ end\xff";
  sink_->Open(run);
  StepReport report = Step(0);
  report.values = {{"gpu-name", 1}, {"__reserved", 2},         {"1st", 3},
                   {"le", 4},       {"a\"b\\c\nd\x01\xc3", 5}, {std::string(300, 'x'), 6}};
  Publish(report);
  const Exposition page = Page();
  EXPECT_EQ(page.Count("flopledger_training_value"), 6U);
  EXPECT_EQ(page.Value("flopledger_training_value", {{"name", "gpu-name"}}), "1");
  EXPECT_EQ(page.Value("flopledger_training_value", {{"name", "a\"b\\c\nd \xEF\xBF\xBD"}}), "5");
  EXPECT_EQ(page.Value("flopledger_training_value", {{"name", std::string(64, 'x')}}), "6");
  EXPECT_EQ(page.series.front().labels.at("run_id"), "exp/7 \"quoted\"\nline2 \\ end\xEF\xBF\xBD");
}

TEST_F(PrometheusSinkTest, C54ReadingChangesNothingAndTypesAreCounters) {
  sink_->Open(Described());
  Publish(Step(0));
  const std::string first = *sink_->page()->Text();
  EXPECT_EQ(*sink_->page()->Text(), first);
  for (const auto& [name, type] : ReadExposition(first).types) {
    EXPECT_EQ(type == "counter", name.ends_with("_total")) << name;
  }
}

TEST_F(PrometheusSinkTest, TotalsBeyond1e22StayExactToTheDouble) {
  sink_->Open(Described());
  StepReport report = Step(0);
  // 10^22 + 1 is no double; the page has the nearest one, to 16 digits.
  report.declared->useful_forward =
      Flops::FromInteger(Int128{10'000'000'000} * 1'000'000'000'000 + 1);
  Publish(report);
  EXPECT_EQ(Page().Value("flopledger_useful_flops_total", {{"pass", "forward"}}), "1e+22");
  Publish(report);
  EXPECT_EQ(Page().Value("flopledger_useful_flops_total", {{"pass", "forward"}}), "2e+22");
}

TEST_F(PrometheusSinkTest, FindingsAreFlagsOfTheLastStep) {
  sink_->Open(Described());
  StepReport report = Step(0);
  report.findings = {{.id = "above_peak", .ratio = 1.2, .suspect = "wrong peak"}};
  Publish(report);
  EXPECT_EQ(Page().Value("flopledger_finding", {{"id", "above_peak"}}), "1");
  EXPECT_EQ(Page().Value("flopledger_finding", {{"id", "mfu_above_hfu"}}), "0");
  Publish(Step(1));
  EXPECT_EQ(Page().Value("flopledger_finding", {{"id", "above_peak"}}), "0");
}

TEST_F(PrometheusSinkTest, FinishSaysSo) {
  sink_->Open(Described());
  EXPECT_EQ(Page().Value("flopledger_run_finished"), "0");
  sink_->Finish(totals_);
  EXPECT_EQ(Page().Value("flopledger_run_finished"), "1");
}

TEST_F(PrometheusSinkTest, WarmupAndIncompleteStepsStayOutOfTheRatios) {
  sink_->Open(Described());
  for (StepResult result : {StepResult::kWarmup, StepResult::kIncomplete}) {
    StepReport report = Step(0);
    report.result = result;
    Publish(report);
  }
  const Exposition page = Page();
  EXPECT_EQ(page.Count("flopledger_window_mfu_ratio"), 0U);
  EXPECT_EQ(page.Value("flopledger_step_duration_seconds_count"), "0");
  EXPECT_EQ(page.Value("flopledger_excluded_seconds_total", {{"reason", "warmup"}}), "1");
  EXPECT_EQ(page.Value("flopledger_steps_total", {{"result", "incomplete"}}), "1");
}

TEST_F(PrometheusSinkTest, ReadersSeeWholeSnapshots) {
  sink_->Open(Described());
  sink_->Announce({.collector = SessionState::Collector::kCounting});
  std::atomic<bool> done{false};
  std::thread reader([&] {
    const auto page = sink_->page();
    while (!done) {
      const Exposition read = ReadExposition(*page->Text());
      EXPECT_THAT(read.faults, IsEmpty());
      // Numerator and denominator are of the same steps in every page.
      const double useful =
          std::atof(read.Value("flopledger_useful_flops_total", {{"pass", "forward"}}).c_str());
      const double peak = std::atof(read.Value("flopledger_eligible_peak_flops_total").c_str());
      EXPECT_DOUBLE_EQ(useful * 1000, peak * 140);
    }
  });
  for (int i = 0; i < 300; ++i) Publish(Step(i));
  done = true;
  reader.join();
}

TEST(PrometheusSinkOptionsTest, WrongOptionsAreNamed) {
  for (int steps : {0, -1, 100'001}) {
    auto refused = PrometheusSink::Create({.window_steps = steps});
    ASSERT_FALSE(refused.has_value());
    EXPECT_THAT(refused.error().message(), HasSubstr(std::to_string(steps)));
    EXPECT_THAT(refused.error().message(), HasSubstr("1 to 100000"));
  }
  auto falling = PrometheusSink::Create({.duration_bounds = {1, 0.5}});
  ASSERT_FALSE(falling.has_value());
  EXPECT_THAT(falling.error().message(), HasSubstr("duration_bounds[1] is 0.5"));
  EXPECT_FALSE(PrometheusSink::Create({.duration_bounds = {kNan}}).has_value());
  EXPECT_FALSE(PrometheusSink::Create({.duration_bounds = std::vector<double>(13, 1)}).has_value());
}

}  // namespace
}  // namespace flopledger
