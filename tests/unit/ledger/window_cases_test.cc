#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include "fakes/books.h"
#include "flopledger/run_totals.h"
#include "ledger/reconcile.h"
#include "timeline/step_builder.h"

// The cases of kind `window`: which interval a step's work is divided by. Each goes from records to
// reports. Figures are those of the cases.

namespace flopledger {
namespace {

using fakes::Declared;
using fakes::Peak;

const ConventionId kHouse{.name = "house", .hash = 1};
constexpr double kPeak = 312e12;

std::int64_t Ns(double seconds) { return std::llround(seconds * 1e9); }

MarkerRecord Begin(double seconds, std::int64_t step) {
  return {.time_ns = Ns(seconds), .step = step, .kind = MarkerRecord::Kind::kStepBegin};
}
MarkerRecord End(double seconds) {
  return {.time_ns = Ns(seconds), .kind = MarkerRecord::Kind::kStepEnd};
}

StepDeclaration Useful(double flops) {
  StepDeclaration declaration = Declared(0, 0);
  declaration.flops->useful_forward = Flops::FromInteger(static_cast<std::int64_t>(flops));
  return declaration;
}

EligiblePeak OnePeak() {
  return {.rates = {Peak(DType::kFloat32, kPeak)}, .dtype = DType::kFloat32};
}

std::vector<StepReport> Reports(StepBuilder& builder, double flops_per_step) {
  std::vector<StepReport> reports;
  while (auto step = builder.Take()) {
    reports.push_back(Reconcile(*step, {}, Useful(flops_per_step), kHouse, OnePeak()));
  }
  return reports;
}

double Mfu(const std::vector<StepReport>& reports) {
  RunTotals totals;
  for (const StepReport& report : reports) totals.Add(report);
  return *totals.MfuRatio();
}

// The host returns from asynchronous launches at once and waits every second step.
TEST(WindowCasesTest, C24TimingBeforeTheGpuHasFinished) {
  const std::vector<double> host_end = {0.02, 2.0, 2.02, 4.0};
  const std::vector<double> device_end = {1.0, 2.0, 3.0, 4.0};
  RecordBatch batch;
  for (int i = 0; i < 4; ++i) {
    const double begin = i == 0 ? 0.0 : host_end[i - 1];
    batch.markers.push_back(Begin(begin, i));
    batch.fences.push_back({.boundary_ns = Ns(begin), .launch_order = i * 10});
    batch.kernels.push_back({.start_ns = Ns(device_end[i] - 1.0),
                             .end_ns = Ns(device_end[i]),
                             .launch_order = i * 10 + 5,
                             .kernel = 1,
                             .op_class = OpClass::kMatmul,
                             .launch_known = true});
  }
  batch.markers.push_back(End(4.0));
  StepBuilder builder({});
  builder.Add(batch);
  builder.Finish(Ns(4.0));
  const std::vector<StepReport> reports = Reports(builder, 156e12);
  ASSERT_EQ(reports.size(), 4u);
  for (const StepReport& report : reports) {
    EXPECT_EQ(report.boundary, StepBoundary::kDevice);
    EXPECT_EQ(report.wall.ns(), 1'000'000'000);
    EXPECT_NEAR(*report.utilization.mfu_ratio, 0.5, 1e-9);
  }
  EXPECT_NEAR(Mfu(reports), 0.5, 1e-9);
}

TEST(WindowCasesTest, C25ResumeLifetimeTokensOverSessionTime) {
  // The process counts what it ran itself: five steps of 6,480 tokens in 107 s after the restart,
  // whatever the checkpoint says of the past.
  constexpr std::int64_t kDelta = 24'081'040 - 24'048'640;
  StepBuilder builder({});
  RecordBatch batch;
  for (int i = 0; i < 5; ++i) {
    batch.markers.push_back(Begin(21.4 * i, 3801 + i));
    batch.tokens.push_back(
        {.time_ns = Ns(21.4 * i) + 1, .count = kDelta / 5, .length = 1, .useful_length = 1});
  }
  builder.Add(batch);
  EXPECT_FALSE(builder.Take()) << "no sample before one full step of this process is complete";
  builder.Add({});
  EXPECT_TRUE(builder.Take());
  builder.Add({.markers = {End(107)}});
  builder.Finish(Ns(107));
  std::int64_t tokens = 6480;
  double seconds = 21.4;
  while (auto step = builder.Take()) {
    for (const TokenRecord& rows : step->tokens) tokens += rows.count * rows.useful_length;
    seconds += step->wall().seconds();
  }
  EXPECT_EQ(tokens, 32'400);
  EXPECT_NEAR(static_cast<double>(tokens) / seconds, 302.80, 0.005);
  const double mfu = 6 * 1.1e9 * static_cast<double>(tokens) / (kPeak * seconds);
  EXPECT_NEAR(mfu, 0.00641, 5e-6);
}

TEST(WindowCasesTest, C26CounterNotResetBetweenSteps) {
  StepBuilder builder({});
  RecordBatch batch;
  for (int i = 0; i < 5; ++i) {
    batch.markers.push_back(Begin(4.0 * i, i));
    batch.declared.push_back(
        {.time_ns = Ns(4.0 * i) + 1, .forward = Flops::FromInteger(1'000'000'000'000'000)});
  }
  batch.markers.push_back(End(20));
  builder.Add(batch);
  builder.Finish(Ns(20));
  std::vector<StepReport> reports;
  while (auto step = builder.Take()) {
    const StepDeclaration declaration = EvaluateDeclaration({}, {}, *step);
    reports.push_back(Reconcile(*step, {}, declaration, kHouse, OnePeak()));
  }
  ASSERT_EQ(reports.size(), 5u);
  for (const StepReport& report : reports) {
    EXPECT_NEAR(*report.utilization.mfu_ratio, 0.80128, 5e-6) << "constant over the steps";
  }
  EXPECT_NEAR(Mfu(reports), 0.80128, 5e-6);
}

TEST(WindowCasesTest, C27CompileAndFirstStepTimeInTheWindow) {
  StepBuilder builder({});
  RecordBatch batch;
  double at = 0;
  for (int i = 0; i < 20; ++i) {
    batch.markers.push_back(Begin(at, i));
    at += i == 0 ? 60.0 : 1.0;
  }
  batch.markers.push_back(Begin(at, 20));  // a recompilation: 10 s
  batch.markers.push_back(End(at + 10));
  builder.Add(batch);
  builder.Finish(Ns(at + 10));
  std::vector<StepReport> reports = Reports(builder, 140e12);
  ASSERT_EQ(reports.size(), 21u);
  reports[0].result = StepResult::kWarmup;
  RunTotals totals;
  for (int i = 0; i < 20; ++i) totals.Add(reports[i]);
  EXPECT_NEAR(*totals.MfuRatio(), 0.44872, 5e-6);
  EXPECT_NEAR(*totals.GoodputRatio(), 0.11360, 5e-6);
  EXPECT_EQ(totals.excluded.at("warmup").ns(), 60'000'000'000);
  EXPECT_EQ(reports[20].result, StepResult::kComplete) << "not silently left out";
  EXPECT_NEAR(*reports[20].utilization.mfu_ratio, 0.044872, 5e-7);
}

TEST(WindowCasesTest, C29WallClockStepsBackwards) {
  // Monotonic 50, 51, 52, 53; the wall clock goes back by 2 s between the second and the third, and
  // with it the stamps of the device's records.
  RecordBatch batch;
  for (int i = 0; i < 3; ++i) {
    batch.markers.push_back(Begin(50.0 + i, i));
    batch.fences.push_back({.boundary_ns = Ns(50.0 + i), .launch_order = i * 10});
    batch.kernels.push_back({.start_ns = Ns(50.1 + i) - (i == 1 ? 2'000'000'000 : 0),
                             .end_ns = Ns(51.0 + i) - (i == 1 ? 2'000'000'000 : 0),
                             .launch_order = i * 10 + 5,
                             .kernel = 1,
                             .op_class = OpClass::kMatmul,
                             .launch_known = true});
  }
  batch.markers.push_back(End(53.0));
  batch.clock_steps = {{.time_ns = Ns(51.5), .jump_ns = -2'000'000'000}};
  StepBuilder builder({});
  builder.Add(batch);
  builder.Finish(Ns(53.0));
  const std::vector<StepReport> reports = Reports(builder, 156e12);
  ASSERT_EQ(reports.size(), 3u);
  for (const StepReport& report : reports) {
    EXPECT_EQ(report.wall.ns(), 1'000'000'000);
    EXPECT_NEAR(*report.utilization.mfu_ratio, 0.5, 1e-9);
  }
  ASSERT_FALSE(reports[1].findings.empty());
  EXPECT_EQ(reports[1].findings.back().id, "clock_stepped");
}

}  // namespace
}  // namespace flopledger
