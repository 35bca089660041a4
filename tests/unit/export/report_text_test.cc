// What people read: the log line, the summary, the flat values.

#include "export/report_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "export/exit_summary.h"
#include "export/flat_values.h"
#include "export/gap_totals.h"
#include "export/log_line.h"
#include "export/step_window.h"
#include "fakes/fake_run.h"
#include "flopledger/causes.h"

namespace flopledger {
namespace {

using ::testing::Contains;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

Flops Count(std::int64_t count) { return Flops::FromInteger(count); }

TEST(KernelTextTest, ASymbolIsReadableAndANameStaysAsItIs) {
  EXPECT_EQ(KernelText("_Z6kernelPfi"), "kernel");
  EXPECT_EQ(KernelText("_ZN2at6native29vectorized_elementwise_kernelILi4EEEvi"),
            "at::native::vectorized_elementwise_kernel<4>");
  EXPECT_EQ(KernelText("ncclDevKernel_AllReduce_Sum"), "ncclDevKernel_AllReduce_Sum");
  EXPECT_EQ(KernelText("_Zno symbol"), "_Zno symbol");
  EXPECT_EQ(KernelText(std::string(300, 'x')), std::string(69, 'x') + "...");
}

// The example of the log line's contract.
StepReport Example() {
  StepReport report;
  report.step = 1200;
  report.wall = DurationNs(512'000'000);
  report.tokens = {.useful = 4045, .padded = 4096};
  report.executed.total = Count(1000);
  report.executed.recomputed = Count(249);
  report.utilization = {.mfu_ratio = 0.418, .hfu_low_ratio = 0.556, .hfu_high_ratio = 0.556};
  report.coverage.time_ratio = 1.0;
  report.values = {{"loss", 2.31}};
  return report;
}

TEST(LogLineTest, SaysAStepInOneLine) {
  EXPECT_EQ(RenderLogLine(Example()),
            "step 1200 | 0.512 s | MFU 41.8 % | HFU 55.6 % | recompute 24.9 % | coverage 100.0 % | "
            "7.90k tok/s | loss 2.31");
}

TEST(LogLineTest, HfuIsABoundWhileWorkIsUncounted) {
  StepReport report = Example();
  report.utilization.hfu_high_ratio = 0.575;
  report.coverage.time_ratio = 0.981;
  EXPECT_THAT(RenderLogLine(report), HasSubstr(" | HFU >= 55.6 % | "));
  EXPECT_THAT(RenderLogLine(report), HasSubstr(" | coverage 98.1 % | "));
}

TEST(LogLineTest, WhatIsNotKnownHasItsReasonAndIsNoZero) {
  StepReport report;
  report.step = 3;
  report.wall = DurationNs(4'100'000);
  report.result = StepResult::kIncomplete;
  report.utilization = {.mfu_refusal = RefusalReason::kNoPeak,
                        .hfu_refusal = RefusalReason::kNoEvidence};
  const std::string line = RenderLogLine(report);
  EXPECT_EQ(line,
            "step 3 (incomplete) | 4.1 ms | MFU N/A (no peak for the dtype) | "
            "HFU N/A (nothing observed) | recompute N/A | coverage N/A");
  for (int i = 0; i <= static_cast<int>(RefusalReason::kNoWall); ++i) {
    report.utilization.mfu_refusal = static_cast<RefusalReason>(i);
    EXPECT_THAT(RenderLogLine(report), HasSubstr("MFU N/A ("));
  }
}

TEST(LogLineTest, FindingsAreNamed) {
  StepReport report = Example();
  report.findings = {{"above_peak", 1.2, "wrong peak"}, {"unexplained", 0.1, "?"}};
  EXPECT_THAT(RenderLogLine(report), EndsWith(" | ! above_peak and 1 more"));
}

TEST(StepWindowTest, RatiosAreOfSumsNotMeansOfRatios) {
  StepWindow window(2);
  EXPECT_FALSE(window.Ratios().mfu_ratio.has_value());
  // 0.40 over 989 and 0.10 over 312: 426.8 / 1301, not 0.25.
  for (auto [useful, peak] : {std::pair{1, 1}, {3956, 9890}, {312, 3120}}) {
    StepReport report;
    report.wall = DurationNs(1'000'000'000);
    report.declared = DeclaredFlops{.useful_forward = Count(useful)};
    report.peak_flops = Count(peak);
    report.utilization.mfu_ratio = 1.0 * useful / peak;
    window.Add(report);
  }
  const WindowRatios ratios = window.Ratios();
  EXPECT_EQ(ratios.steps, 2U) << "the first one is out of the window";
  EXPECT_NEAR(*ratios.mfu_ratio, 0.328055, 1e-6);
  EXPECT_DOUBLE_EQ(*ratios.step_seconds, 1.0);
  EXPECT_FALSE(ratios.hfu_low_ratio.has_value());
  EXPECT_FALSE(ratios.coverage_time_ratio.has_value());
}

TEST(StepWindowTest, AStepWithoutADeclarationLeavesBothSides) {
  StepWindow window(10);
  StepReport with = Example();
  with.declared = DeclaredFlops{.useful_forward = Count(418)};
  with.peak_flops = Count(1000);
  with.executed_equivalent = Count(556);
  window.Add(with);
  StepReport without = with;
  without.declared.reset();
  without.utilization.mfu_ratio.reset();
  window.Add(without);
  without.result = StepResult::kWarmup;
  window.Add(without);
  EXPECT_DOUBLE_EQ(*window.Ratios().mfu_ratio, 0.418);
  EXPECT_DOUBLE_EQ(*window.Ratios().hfu_low_ratio, 0.556);
  EXPECT_EQ(window.Ratios().steps, 2U);
}

TEST(ReportTextTest, FiguresKeepTheirMeaning) {
  EXPECT_EQ(PercentText(0.418), "41.8 %");
  EXPECT_EQ(PercentText(0), "0.0 %");
  EXPECT_EQ(PercentText(0.00012), "0.012 %");
  EXPECT_EQ(IntervalText(0.5, 0.5), "50.0 %");
  EXPECT_EQ(IntervalText(0.556, 0.57), "55.6 - 57.0 %");
  EXPECT_EQ(CountText(999), "999");
  EXPECT_EQ(CountText(999.6), "1.00k");
  EXPECT_EQ(CountText(7900), "7.90k");
  EXPECT_EQ(CountText(12'345'678), "12.3M");
  EXPECT_EQ(TimeText(DurationNs(1'500)), "1.5 us");
  EXPECT_EQ(TimeText(DurationNs(4'100'000)), "4.1 ms");
  EXPECT_EQ(TimeText(DurationNs(61'400'000'000)), "61.4 s");
  EXPECT_EQ(TimeText(DurationNs(7'500'000'000'000)), "2 h 05 min");
  EXPECT_EQ(RateText(989.4e12), "989.4 TFLOP/s");
}

TEST(ReportTextTest, EveryCauseHasAText) {
  for (const LostCause& cause : kLostCauses) EXPECT_EQ(CauseText(cause.id), cause.text);
  EXPECT_THAT(CauseText(kAbovePeakCause), HasSubstr("wrong"));
  EXPECT_EQ(CauseText("a_new_one"), "a new one");
}

// C51: the largest by time, stable, and the sum over all is kept.
TEST(GapTotalsTest, C51KeepsTheLargestAndTheSumOfTheRest) {
  GapTotals gaps(/*max_names=*/1000);
  for (int round = 0; round < 2; ++round) {
    StepReport report;
    for (int i = 0; i < 5000; ++i) {
      CoverageGap gap;
      gap.name = "kernel_" + std::to_string(i);
      gap.launches = 1;
      gap.time = DurationNs(i < 10 ? 1000 : 10);
      report.gaps.push_back(gap);
    }
    gaps.Add(report);
  }
  const std::vector<CoverageGap> largest = gaps.Largest(50);
  ASSERT_EQ(largest.size(), 51U);
  EXPECT_EQ(largest.back().name, "other");
  DurationNs sum;
  std::int64_t launches = 0;
  for (const CoverageGap& gap : largest) {
    sum += gap.time;
    launches += gap.launches;
  }
  EXPECT_EQ(sum.ns(), 2 * (10 * 1000 + 4990 * 10));
  EXPECT_EQ(launches, 10'000);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(largest[static_cast<std::size_t>(i)].time.ns(), 2000);
  EXPECT_EQ(gaps.Largest(50)[20].name, largest[20].name);
}

TEST(ExitSummaryTest, HasEverythingThatARunLeaves) {
  fakes::FakeRun run;
  RunTotals totals;
  GapTotals gaps;
  for (int i = 0; i < 40; ++i) {
    const StepReport report = run.NextStep();
    totals.Add(report);
    gaps.Add(report);
  }
  totals.Exclude("after_last_step", DurationNs(3'000'000'000));
  LossRecord loss;
  totals.dropped[{LossRecord::Where::kHostRing, LossRecord::Reason::kFull}] = 12;
  const std::string text = RenderSummary(run.description(), totals, gaps.Largest(1));
  for (const char* part : {"run gpt-small-1, rank 0 of 1",
                           "39 complete, 1 warmup, 0 incomplete",
                           "after_last_step 3.000 s",
                           "before_first_step 2.400 s",
                           "warmup 1.900 s",
                           "\n  MFU ",
                           "\n  HFU ",
                           "\n  goodput ",
                           "\n  coverage ",
                           "\n  recompute ",
                           "\n  useful U ",
                           "matmul_below_peak: ",
                           "####",
                           "acme::fused_rotary (no_rule)",
                           "other",
                           "214 GFLOP/s fp32 on 8-core x86-64 (AVX2), measured: best of 5 matmuls",
                           "spread 93.0 % to 100.0 %",
                           "house (",
                           "12 host_ring (full)",
                           "of wall time"}) {
    EXPECT_THAT(text, HasSubstr(part));
  }
  EXPECT_THAT(text, HasSubstr(totals.ExecutedTotal().ToString())) << "all digits";
  EXPECT_THAT(text, Not(HasSubstr(" \n"))) << "no space at an end";
}

TEST(ExitSummaryTest, AnEmptyRunSaysWhy) {
  const std::string text = RenderSummary({}, {});
  EXPECT_THAT(text, HasSubstr("MFU          N/A (no complete step)"));
  EXPECT_THAT(text, HasSubstr("HFU          N/A (nothing observed)"));
  EXPECT_THAT(text, HasSubstr("coverage     N/A (nothing observed)"));
  EXPECT_THAT(text, HasSubstr("peak         unknown for fp32"));
  EXPECT_THAT(text, HasSubstr("lost records none"));
  EXPECT_THAT(text, Not(HasSubstr("nan")));
}

TEST(FlatValuesTest, HasTheKnownValuesOnly) {
  const auto flat = FlatValues(fakes::FakeRun().NextStep());
  const std::map<std::string, double> values(flat.begin(), flat.end());
  EXPECT_EQ(values.size(), flat.size()) << "no key twice";
  for (const auto& [key, value] : values) EXPECT_THAT(key, StartsWith("flopledger/"));
  EXPECT_EQ(values.at("flopledger/step"), 0);
  EXPECT_EQ(values.at("flopledger/tokens"), 3886);
  EXPECT_EQ(values.at("flopledger/padding_tokens"), 210);
  EXPECT_EQ(values.at("flopledger/useful_flops"), 3.0 * 11'796'480'000);
  EXPECT_EQ(values.at("flopledger/value/learning_rate"), 3e-4);
  for (const char* key :
       {"mfu", "hfu_low", "hfu_high", "coverage_time", "recompute", "tokens_per_second",
        "executed_flops", "peak_flops", "seconds/compute", "unexplained_flops", "findings"}) {
    EXPECT_THAT(values, Contains(::testing::Key("flopledger/" + std::string(key))));
  }
  StepReport bare;
  bare.utilization.hfu_refusal = RefusalReason::kNoEvidence;
  const auto few = FlatValues(bare);
  std::vector<std::string> keys;
  for (const auto& [key, value] : few) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"flopledger/step", "flopledger/step_seconds",
                                            "flopledger/findings"}));
}

}  // namespace
}  // namespace flopledger
