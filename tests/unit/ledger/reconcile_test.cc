#include "ledger/reconcile.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "fakes/books.h"
#include "flopledger/run_totals.h"

namespace flopledger {
namespace {

using fakes::Counted;
using fakes::Declared;
using fakes::Peak;
using fakes::Step;
using fakes::Uncounted;

const ConventionId kHouse{.name = "house", .hash = 1};
constexpr std::int64_t kSecond = 1'000'000'000;

EligiblePeak OnePeak(double flops_per_second) {
  return {.rates = {Peak(DType::kFloat32, flops_per_second)}, .dtype = DType::kFloat32};
}

std::map<std::string, std::string> Lines(const StepReport& report) {
  std::map<std::string, std::string> lines;
  for (const WaterfallLine& line : report.waterfall) lines[line.cause] = line.flops.ToString();
  return lines;
}

TEST(ReconcileTest, TheIdentityOfACheckpointedStepHasNoRest) {
  // Forward 100, replay 100, backward 200 plus 30 of score recompute, optimizer matmuls 7.
  ResolvedOp backward = Counted(230, Phase::kBackward, 1, 40);
  backward.cost.excess = {{.cause = "attention_score_recompute", .flops = Flops::FromInteger(30)}};
  const std::vector<ResolvedOp> ops = {Counted(50, Phase::kForward, 2, 20),
                                       Counted(100, Phase::kRecompute, 1, 20), backward,
                                       Counted(7, Phase::kOptimizer, 1, 2)};
  const StepReport report =
      Reconcile(Step(kSecond, 82), ops, Declared(100, 200), kHouse, OnePeak(1e9));
  EXPECT_EQ(report.executed.total.ToString(), "437");
  EXPECT_EQ(report.executed.recomputed.ToString(), "100");
  EXPECT_EQ(report.executed.auxiliary.ToString(), "7");
  EXPECT_EQ(report.executed.excess.ToString(), "30");
  ASSERT_EQ(report.executed.excess_parts.size(), 1u);
  EXPECT_EQ(report.executed.excess_parts[0].cause, "attention_score_recompute");
  ASSERT_TRUE(report.unexplained.has_value());
  EXPECT_EQ(report.unexplained->ToString(), "0");
  EXPECT_DOUBLE_EQ(*report.utilization.mfu_ratio, 300e-9);
  EXPECT_DOUBLE_EQ(*report.utilization.hfu_low_ratio, 437e-9);
  EXPECT_DOUBLE_EQ(*report.utilization.hfu_high_ratio, 437e-9) << "a point at full coverage";
  EXPECT_DOUBLE_EQ(*report.RecomputeRatio(), 100.0 / 437.0);
}

TEST(ReconcileTest, AnUncountedKernelWidensHfuAndLeavesMfuAlone) {
  const std::vector<ResolvedOp> before = {Counted(300, Phase::kForward, 10, 700),
                                          Uncounted(CoverageKind::kOutside, "aten::add", 5, 300)};
  std::vector<ResolvedOp> after = before;
  after.push_back(Uncounted(CoverageKind::kUnknown, "mine::op", 5, 250));
  const EligiblePeak peak = OnePeak(1e9);
  const StepReport a = Reconcile(Step(10'000, 1000), before, Declared(100, 200), kHouse, peak);
  const StepReport b = Reconcile(Step(10'000, 1250), after, Declared(100, 200), kHouse, peak);
  EXPECT_EQ(a.utilization.mfu_ratio, b.utilization.mfu_ratio);
  EXPECT_EQ(a.utilization.hfu_low_ratio, b.utilization.hfu_low_ratio);
  EXPECT_DOUBLE_EQ(*a.coverage.time_ratio, 1.0);
  EXPECT_DOUBLE_EQ(*b.coverage.time_ratio, 1.0 - 250.0 / 1250.0);
  EXPECT_DOUBLE_EQ(*b.coverage.launch_ratio, 1.0 - 5.0 / 20.0);
  EXPECT_DOUBLE_EQ(*b.utilization.hfu_high_ratio, (3000.0 + 250.0) / 10'000)
      << "at most the peak rate while it ran";
  ASSERT_EQ(b.gaps.size(), 1u);
  EXPECT_EQ(b.gaps[0].name, "mine::op");
  EXPECT_EQ(b.gaps[0].launches, 5);
  EXPECT_EQ(b.gaps[0].time.ns(), 250);
}

// C30: attention without a formula is a gap by name, norms and collectives are not.
TEST(ReconcileTest, C30AttentionKernelWithoutACount) {
  ResolvedOp nccl = Uncounted(CoverageKind::kOutside, "ncclDevKernel_AllReduce", 1, 20'000);
  nccl.cost.op_class = OpClass::kCommunication;
  const std::vector<ResolvedOp> ops = {
      Counted(120'000'000'000, Phase::kForward, 1, 400'000),
      Uncounted(CoverageKind::kUnknown, "flash_fwd_kernel", 1, 300'000),
      Counted(90'000'000'000, Phase::kForward, 1, 250'000),
      Uncounted(CoverageKind::kOutside, "rmsnorm", 1, 30'000), nccl};
  const StepReport report =
      Reconcile(Step(1'200'000, 1'000'000), ops, {}, kHouse, OnePeak(989.4e12));
  EXPECT_NEAR(*report.utilization.hfu_low_ratio, 0.17687, 2e-5);
  EXPECT_GT(*report.utilization.hfu_high_ratio, *report.utilization.hfu_low_ratio);
  EXPECT_DOUBLE_EQ(1.0 - *report.coverage.time_ratio, 0.3);
  ASSERT_FALSE(report.gaps.empty());
  EXPECT_EQ(report.gaps[0].name, "flash_fwd_kernel");
}

// C42: lost records make HFU a lower bound; nothing is scaled up to hide them.
TEST(ReconcileTest, C42DroppedRecords) {
  StepTimeline step = Step(kSecond / 2, 100'000'000);
  step.losses = {{.count = 1500, .where = LossRecord::Where::kDevice}};
  StepDeclaration declaration = Declared(0, 0);
  declaration.flops->useful_forward = Flops::FromInteger(100'000'000'000'000);
  const std::vector<ResolvedOp> ops = {Counted(10'000'000'000, Phase::kForward, 8500, 100'000'000)};
  const StepReport report = Reconcile(step, ops, declaration, kHouse, OnePeak(312e12));
  EXPECT_NEAR(*report.coverage.launch_ratio, 0.85, 1e-12);
  EXPECT_NEAR(*report.utilization.hfu_low_ratio, 0.54487, 1e-5);
  EXPECT_NEAR(*report.utilization.mfu_ratio, 0.64103, 1e-5);
  EXPECT_GT(*report.utilization.hfu_high_ratio, *report.utilization.mfu_ratio);
  ASSERT_EQ(report.gaps.size(), 1u);
  EXPECT_EQ(report.gaps[0].reason, GapReason::kRecordLost);
  EXPECT_EQ(report.gaps[0].launches, 1500);
}

// C16: the replay is in HFU and not in MFU; the head is not replayed.
TEST(ReconcileTest, C16FullActivationCheckpointing) {
  const std::int64_t layers = 800'000'000'000'000;
  const std::int64_t head = 50'000'000'000'000;
  const std::vector<ResolvedOp> ops = {Counted(layers + head, Phase::kForward, 1, 1),
                                       Counted(layers, Phase::kRecompute, 1, 1),
                                       Counted(2 * (layers + head), Phase::kBackward, 1, 1)};
  const StepReport report =
      Reconcile(Step(5 * kSecond, 3), ops, Declared(layers + head, 2 * (layers + head)), kHouse,
                OnePeak(989.4e12));
  EXPECT_NEAR(*report.utilization.mfu_ratio, 0.51546, 1e-5);
  EXPECT_NEAR(*report.utilization.hfu_low_ratio, 0.67718, 1e-5);
  EXPECT_NEAR(*report.RecomputeRatio(), 0.23881, 1e-5);
  EXPECT_EQ(report.unexplained->ToString(), "0");
}

// C20: matmuls of the optimizer have a bucket of their own.
TEST(ReconcileTest, C20MatmulsInTheOptimizer) {
  const std::vector<ResolvedOp> ops = {
      Counted(1'000'000'000'000, Phase::kForward, 1, 1),
      Counted(2'000'000'000'000, Phase::kBackward, 1, 1),
      Counted(8'589'934'592 + 2'147'483'648 + 8'589'934'592, Phase::kOptimizer, 5, 1)};
  const StepReport report =
      Reconcile(Step(20'000'000, 3), ops, Declared(1'000'000'000'000, 2'000'000'000'000), kHouse,
                OnePeak(989.4e12));
  EXPECT_NEAR(*report.utilization.mfu_ratio, 0.15161, 1e-5);
  EXPECT_NEAR(*report.utilization.hfu_low_ratio, 0.15649, 1e-5);
  EXPECT_EQ(report.executed.auxiliary.ToString(), "96636764160");
  EXPECT_EQ(report.executed.recomputed.ToString(), "0");
}

// C35: an executed surplus without a replay is not recomputation.
TEST(ReconcileTest, C35TilePaddingIsUnexplainedNotRecompute) {
  const std::vector<ResolvedOp> ops = {Counted(137'438'953'472, Phase::kForward, 1, 1),
                                       Counted(141'733'920'768, Phase::kForward, 1, 1)};
  const StepReport report = Reconcile(
      Step(kSecond, 2), ops, Declared(137'438'953'472 + 137'472'507'904, 0), kHouse, OnePeak(1e15));
  EXPECT_EQ(report.executed.recomputed.ToString(), "0");
  EXPECT_EQ(report.unexplained->ToString(), "4261412864");
}

TEST(ReconcileTest, PaddingLowersUsefulAndFillsPWhileExecutedStays) {
  const std::vector<ResolvedOp> ops = {Counted(300, Phase::kForward, 1, 10)};
  const EligiblePeak peak = OnePeak(1e9);
  const StepReport full = Reconcile(Step(1000, 10), ops, Declared(100, 200), kHouse, peak);
  const StepReport padded = Reconcile(Step(1000, 10), ops, Declared(80, 160, 60), kHouse, peak);
  EXPECT_EQ(full.executed.total, padded.executed.total);
  EXPECT_LT(*padded.utilization.mfu_ratio, *full.utilization.mfu_ratio);
  EXPECT_EQ(padded.utilization.hfu_low_ratio, full.utilization.hfu_low_ratio);
  EXPECT_EQ(padded.unexplained->ToString(), "0");
  EXPECT_EQ(padded.declared->padding.ToString(), "60");
}

TEST(ReconcileTest, WhatIsNotKnownIsRefusedWithAReason) {
  const std::vector<ResolvedOp> ops = {Counted(300, Phase::kForward, 1, 10)};
  StepDeclaration missing;
  missing.refusal = RefusalReason::kNoTokens;
  const StepReport a = Reconcile(Step(1000, 10), ops, missing, kHouse, OnePeak(1e9));
  EXPECT_FALSE(a.utilization.mfu_ratio.has_value());
  EXPECT_EQ(a.utilization.mfu_refusal, RefusalReason::kNoTokens);
  EXPECT_TRUE(a.utilization.hfu_low_ratio.has_value());
  EXPECT_FALSE(a.unexplained.has_value());
  EXPECT_TRUE(a.waterfall.empty());

  const StepReport b = Reconcile(Step(1000, 10), ops, Declared(1, 1), kHouse, EligiblePeak{});
  EXPECT_FALSE(b.utilization.mfu_ratio.has_value());
  EXPECT_EQ(b.utilization.mfu_refusal, RefusalReason::kNoPeak);
  EXPECT_EQ(b.utilization.hfu_refusal, RefusalReason::kNoPeak);

  // MFU works at zero coverage: it needs the declaration, the interval and the peak alone.
  const StepReport c = Reconcile(Step(1000, 0), {}, Declared(100, 200), kHouse, OnePeak(1e9));
  EXPECT_DOUBLE_EQ(*c.utilization.mfu_ratio, 0.3);
  EXPECT_EQ(c.utilization.hfu_refusal, RefusalReason::kNoEvidence);
  EXPECT_FALSE(c.coverage.time_ratio.has_value());

  const StepReport d = Reconcile(Step(0, 0), ops, Declared(1, 1), kHouse, OnePeak(1e9));
  EXPECT_EQ(d.utilization.mfu_refusal, RefusalReason::kNoWall);
}

TEST(ReconcileTest, TwoDtypesAreIdealTimesOverOneWall) {
  EligiblePeak peak{.rates = {Peak(DType::kBfloat16, 1000e9), Peak(DType::kFloat32, 100e9)},
                    .dtype = DType::kBfloat16};
  const std::vector<ResolvedOp> ops = {
      Counted(300'000'000'000, Phase::kForward, 1, 1, DType::kBfloat16),
      Counted(10'000'000'000, Phase::kForward, 1, 1, DType::kFloat32)};
  const StepReport report = Reconcile(Step(kSecond, 2), ops, {}, kHouse, peak);
  EXPECT_NEAR(*report.utilization.hfu_low_ratio, 0.3 + 0.1, 1e-12);

  // No peak for one of them: a lower bound whose width is that dtype's time.
  peak.rates.pop_back();
  std::vector<ResolvedOp> timed = ops;
  timed[1].sum.self_time = DurationNs(kSecond / 4);
  const StepReport bounded = Reconcile(Step(kSecond, 2), timed, {}, kHouse, peak);
  EXPECT_NEAR(*bounded.utilization.hfu_low_ratio, 0.3, 1e-12);
  EXPECT_NEAR(*bounded.utilization.hfu_high_ratio, 0.55, 1e-12);
}

TEST(ReconcileTest, TheWaterfallGoesFromPeakToUseful) {
  StepTimeline step = Step(1000, 0);
  auto& cells = step.devices[0].by_state_and_section;
  const auto set = [&](DeviceState state, Phase section, std::int64_t ns) {
    cells[static_cast<std::size_t>(state)][static_cast<std::size_t>(section)] = DurationNs(ns);
  };
  set(DeviceState::kIdle, Phase::kOther, 100);
  set(DeviceState::kIdle, Phase::kData, 50);
  set(DeviceState::kCompute, Phase::kEval, 150);
  set(DeviceState::kExposedCopy, Phase::kOther, 20);
  set(DeviceState::kExposedCommunication, Phase::kOther, 80);
  set(DeviceState::kCompute, Phase::kOther, 600);
  const std::vector<ResolvedOp> ops = {
      Counted(200, Phase::kForward, 1, 300), Counted(40, Phase::kRecompute, 1, 60),
      Counted(30, Phase::kEval, 1, 40), Uncounted(CoverageKind::kOutside, "aten::add", 1, 100),
      Uncounted(CoverageKind::kUnknown, "x", 1, 100)};
  // 1 FLOP per ns.
  const StepReport report = Reconcile(step, ops, Declared(190, 0, 10), kHouse, OnePeak(1e9));
  std::map<std::string, std::string> lines = Lines(report);
  EXPECT_EQ(report.peak_flops.ToString(), "1000");
  EXPECT_EQ(lines["data"], "50");
  EXPECT_EQ(lines["eval"], "150");
  EXPECT_EQ(lines["idle_host"], "100");
  EXPECT_EQ(lines["exposed_copy"], "20");
  EXPECT_EQ(lines["exposed_communication"], "80");
  EXPECT_EQ(lines["uncounted_kernels"], "100") << "100 of 600 ns of kernels";
  EXPECT_EQ(lines["outside_kernels"], "100");
  EXPECT_EQ(lines["recompute"], "40");
  EXPECT_EQ(lines["padding"], "10");
  EXPECT_EQ(lines["auxiliary"], "0") << "evaluation is its own line";
  EXPECT_EQ(lines["unexplained"], "0");
  EXPECT_EQ(lines["useful"], "190");
  EXPECT_EQ(lines["matmul_below_peak"], "160") << "400 ns of matmuls did 240";
}

TEST(ReconcileTest, ContradictionsAreFindingsWithASuspectAndChangeNoNumber) {
  const std::vector<ResolvedOp> ops = {Counted(200, Phase::kForward, 1, 100)};
  const StepReport frozen =
      Reconcile(Step(1000, 100), ops, Declared(100, 200), kHouse, OnePeak(1e9));
  std::map<std::string, Finding> found;
  for (const Finding& finding : frozen.findings) found[finding.id] = finding;
  ASSERT_TRUE(found.count("mfu_above_hfu"));
  EXPECT_DOUBLE_EQ(found["mfu_above_hfu"].ratio, 1.5);
  EXPECT_NE(found["mfu_above_hfu"].suspect.find("frozen"), std::string::npos);
  ASSERT_TRUE(found.count("executed_below_declared"));
  EXPECT_DOUBLE_EQ(*frozen.utilization.mfu_ratio, 0.3);
  EXPECT_DOUBLE_EQ(*frozen.utilization.hfu_low_ratio, 0.2);
  EXPECT_EQ(frozen.unexplained->ToString(), "-100");

  const StepReport above = Reconcile(Step(100, 100), ops, Declared(200, 0), kHouse, OnePeak(1e9));
  ASSERT_FALSE(above.findings.empty());
  EXPECT_EQ(above.findings[0].id, "above_peak");
  EXPECT_DOUBLE_EQ(*above.utilization.mfu_ratio, 2.0) << "never clamped";
}

// C27: a compilation of 60 s in the first step stays out of MFU and in goodput.
TEST(ReconcileTest, C27CompileTimeIsExcludedUnderItsOwnName) {
  RunTotals totals;
  for (int i = 0; i < 20; ++i) {
    StepReport report = Reconcile(Step(i == 0 ? 60 * kSecond : kSecond, 1), {},
                                  Declared(140'000'000'000'000, 0), kHouse, OnePeak(312e12));
    if (i == 0) report.result = StepResult::kWarmup;
    totals.Add(report);
  }
  EXPECT_NEAR(*totals.MfuRatio(), 0.44872, 1e-5);
  EXPECT_EQ(totals.excluded.at("warmup").ns(), 60 * kSecond);
  EXPECT_NEAR(*totals.GoodputRatio(), 0.11360, 1e-5);
}

}  // namespace
}  // namespace flopledger
