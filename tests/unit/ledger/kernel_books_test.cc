#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "fakes/books.h"
#include "ledger/reconcile.h"

// A step whose kernels were seen: FLOPs come from the ops, time and coverage from the kernels.

namespace flopledger {
namespace {

using fakes::Counted;
using fakes::Declared;
using fakes::Peak;
using fakes::Step;

const ConventionId kHouse{.name = "house", .hash = 1};

EligiblePeak OnePeak(double flops_per_second, int devices = 1) {
  return {.rates = {Peak(DType::kFloat32, flops_per_second)},
          .dtype = DType::kFloat32,
          .device_count = devices};
}

KernelSum Sum(KernelId kernel, OpClass op_class, std::int64_t launches, std::int64_t time_ns,
              std::optional<SignatureId> op = std::nullopt, Phase phase = Phase::kForward) {
  return {.kernel = kernel,
          .op = op.value_or(kOverflowSignature),
          .phase = phase,
          .op_class = op_class,
          .op_known = op.has_value(),
          .launches = launches,
          .time = DurationNs(time_ns)};
}

class KernelBooksTest : public testing::Test {
 protected:
  KernelId Kernel(const std::string& name) { return kernels_.Intern({.name = name}); }
  SignatureId Op(const std::string& name) { return ops_.Intern({.name = name, .arguments = {}}); }

  // aten::mm is counted, aten::relu outside, aten::linear composite, everything else unknown.
  static OpCost CostOf(const OpSignature& signature) {
    OpCost cost;
    cost.coverage = CoverageKind::kUnknown;
    cost.reason = GapReason::kNoShape;
    if (signature.name == "aten::mm") {
      cost.coverage = CoverageKind::kCounted;
      cost.op_class = OpClass::kMatmul;
      cost.dtype = DType::kFloat32;
      cost.executed = Flops::FromInteger(1000);
    } else if (signature.name == "aten::relu" || signature.name == "aten::linear") {
      cost.coverage = CoverageKind::kOutside;
      cost.op_class = signature.name == "aten::relu" ? OpClass::kElementwise : OpClass::kComposite;
    }
    return cost;
  }

  KernelTable kernels_{64, [](std::string_view) { return OpClass::kUnknown; }};
  SignatureTable ops_{64, {}};
  FlopResolver resolver_{{{FlopSource::kOpShapes, CostOf}}};
};

TEST_F(KernelBooksTest, AKernelIsAsKnownAsTheOpThatLaunchedIt) {
  const std::vector<ResolvedKernel> resolved = resolver_.ResolveKernels(
      {Sum(Kernel("gemm"), OpClass::kMatmul, 1, 10, Op("aten::mm")),
       Sum(Kernel("splitKreduce"), OpClass::kReduction, 1, 10, Op("aten::mm")),
       Sum(Kernel("vectorized"), OpClass::kUnknown, 1, 10, Op("aten::relu")),
       Sum(Kernel("mystery"), OpClass::kUnknown, 1, 10, Op("mine::op")),
       Sum(Kernel("layer_norm"), OpClass::kNormalization, 1, 10, Op("mine::op")),
       Sum(Kernel("gemm"), OpClass::kMatmul, 1, 10, Op("aten::linear")),
       Sum(Kernel("gemm"), OpClass::kMatmul, 1, 10),
       Sum(Kernel("ncclDevKernel"), OpClass::kCommunication, 1, 10),
       Sum(Kernel("Memcpy HtoD"), OpClass::kCopy, 1, 10, Op("aten::mm")),
       Sum(kOverflowKernel, OpClass::kUnknown, 1, 10),
       Sum(Kernel("gemm"), OpClass::kMatmul, 1, 10, kOverflowSignature)},
      kernels_, ops_);
  ASSERT_EQ(resolved.size(), 11u);
  const auto is = [&](std::size_t i, CoverageKind coverage, OpClass op_class) {
    EXPECT_EQ(resolved[i].coverage, coverage) << i;
    EXPECT_EQ(resolved[i].op_class, op_class) << i;
  };
  is(0, CoverageKind::kCounted, OpClass::kMatmul);
  is(1, CoverageKind::kCounted, OpClass::kMatmul);  // part of the counted op
  is(2, CoverageKind::kOutside, OpClass::kElementwise);
  is(3, CoverageKind::kUnknown, OpClass::kUnknown);
  EXPECT_EQ(resolved[3].reason, GapReason::kNoShape);
  EXPECT_EQ(resolved[3].name, "mystery");
  is(4, CoverageKind::kOutside, OpClass::kNormalization);  // by its name
  is(5, CoverageKind::kUnknown, OpClass::kMatmul);
  EXPECT_EQ(resolved[5].reason, GapReason::kNoRule);
  is(6, CoverageKind::kUnknown, OpClass::kMatmul);
  EXPECT_EQ(resolved[6].reason, GapReason::kNoOp);
  is(7, CoverageKind::kOutside, OpClass::kCommunication);
  is(8, CoverageKind::kOutside, OpClass::kCopy);  // whatever launched it
  EXPECT_EQ(resolved[9].name, "(kernel table full)");
  is(10, CoverageKind::kUnknown, OpClass::kMatmul);
  EXPECT_EQ(resolved[10].reason, GapReason::kSignatureTableFull);
}

TEST_F(KernelBooksTest, FlopsComeFromOpsOnceAndTimesFromKernels) {
  // Two matmuls of 1000 FLOPs, whose host times (700 ns) are of no interest, launched 2 kernels.
  const std::vector<ResolvedOp> ops = {Counted(1000, Phase::kForward, 2, 700)};
  const std::vector<ResolvedKernel> kernels = resolver_.ResolveKernels(
      {Sum(Kernel("gemm"), OpClass::kMatmul, 2, 600, Op("aten::mm")),
       Sum(Kernel("nccl"), OpClass::kCommunication, 1, 100),
       Sum(Kernel("custom"), OpClass::kUnknown, 1, 300, std::nullopt, Phase::kBackward)},
      kernels_, ops_);
  const StepReport report =
      Reconcile(Step(10'000, 1000), ops, Declared(700, 1300), kHouse, OnePeak(1e9), kernels);
  EXPECT_EQ(report.executed.total.ToString(), "2000");
  EXPECT_DOUBLE_EQ(*report.coverage.time_ratio, 0.7);
  EXPECT_DOUBLE_EQ(*report.coverage.launch_ratio, 0.75);
  EXPECT_DOUBLE_EQ(*report.utilization.hfu_low_ratio, 0.2);
  EXPECT_DOUBLE_EQ(*report.utilization.hfu_high_ratio, 0.2 + 300.0 / 10'000);
  EXPECT_EQ(report.op_time_by_phase[static_cast<std::size_t>(Phase::kForward)].ns(), 700);
  EXPECT_EQ(report.op_time_by_phase[static_cast<std::size_t>(Phase::kBackward)].ns(), 300);
  ASSERT_EQ(report.gaps.size(), 1u);
  EXPECT_EQ(report.gaps[0].name, "custom");
  EXPECT_EQ(report.gaps[0].reason, GapReason::kNoOp);
}

TEST_F(KernelBooksTest, WithoutOpsHfuIsRefusedAndMfuIsThere) {
  const std::vector<ResolvedKernel> kernels =
      resolver_.ResolveKernels({Sum(Kernel("gemm"), OpClass::kMatmul, 2, 600)}, kernels_, ops_);
  const StepReport report =
      Reconcile(Step(10'000, 1000), {}, Declared(700, 1300), kHouse, OnePeak(1e9), kernels);
  EXPECT_DOUBLE_EQ(*report.utilization.mfu_ratio, 0.2);
  EXPECT_FALSE(report.utilization.hfu_low_ratio);
  EXPECT_EQ(report.utilization.hfu_refusal, RefusalReason::kNoEvidence);
  EXPECT_DOUBLE_EQ(*report.coverage.time_ratio, 0.0) << "their time is known, their work is not";
}

TEST_F(KernelBooksTest, UncountedTimeIsMeasuredAgainstAllDevices) {
  const std::vector<ResolvedOp> ops = {Counted(1000, Phase::kForward, 2, 700)};
  const std::vector<ResolvedKernel> kernels =
      resolver_.ResolveKernels({Sum(Kernel("gemm"), OpClass::kMatmul, 2, 600, Op("aten::mm")),
                                Sum(Kernel("custom"), OpClass::kUnknown, 1, 300)},
                               kernels_, ops_);
  const StepReport report =
      Reconcile(Step(10'000, 1000), ops, {}, kHouse, OnePeak(1e9, 4), kernels);
  EXPECT_DOUBLE_EQ(*report.utilization.hfu_low_ratio, 2000.0 / 40'000);
  EXPECT_DOUBLE_EQ(*report.utilization.hfu_high_ratio, 2300.0 / 40'000);
}

TEST_F(KernelBooksTest, RecordsThatTheTimelineHadToDropLowerCoverage) {
  StepTimeline step = Step(10'000, 1000);
  step.losses = {{.count = 3, .where = LossRecord::Where::kTimeline}};
  const std::vector<ResolvedKernel> kernels = resolver_.ResolveKernels(
      {Sum(Kernel("nccl"), OpClass::kCommunication, 9, 600)}, kernels_, ops_);
  const StepReport report = Reconcile(step, {}, {}, kHouse, OnePeak(1e9), kernels);
  EXPECT_DOUBLE_EQ(*report.coverage.launch_ratio, 0.75);
}

TEST_F(KernelBooksTest, WhatTheTimelineSaysOfItsTimesIsInTheReport) {
  StepTimeline step = Step(10'000, 1000);
  step.boundary = StepBoundary::kDevice;
  step.closed_by = "lag";
  step.boundary_estimated = true;
  step.clock_step = ClockStepRecord{.time_ns = 5, .jump_ns = -2'500'000'000};
  step.unlaunched_kernels = 4;
  step.collector_overhead[1] = DurationNs(17);
  const StepReport report = Reconcile(step, {}, {}, kHouse, OnePeak(1e9));
  EXPECT_EQ(report.boundary, StepBoundary::kDevice);
  EXPECT_EQ(report.closed_by, "lag");
  EXPECT_EQ(report.unlaunched_kernels, 4);
  EXPECT_EQ(report.collector_overhead[1].ns(), 17);
  std::map<std::string, double> findings;
  for (const Finding& finding : report.findings) findings[finding.id] = finding.ratio;
  EXPECT_EQ(findings.count("boundary_estimated"), 1u);
  EXPECT_DOUBLE_EQ(findings["clock_stepped"], -2.5);
}

}  // namespace
}  // namespace flopledger
