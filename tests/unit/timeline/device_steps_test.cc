#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "timeline/step_builder.h"
#include "unit/timeline/device_records.h"

// Steps with device work. Times are chosen so that the device runs behind the host: what a step
// launched runs while the host is in a later step.

namespace flopledger {
namespace {

using namespace device_records;  // NOLINT(google-build-using-namespace)

TEST(DeviceStepsTest, AKernelBelongsToTheStepThatLaunchedItNotToTheOneItRanIn) {
  StepBuilder builder({});
  RecordBatch batch = ThreeSteps();
  // All of them start while the host is in the last step.
  batch.kernels = {Kernel(12, 210, 220), Kernel(19, 220, 250), Kernel(20, 250, 260),
                   Kernel(29, 260, 270), Kernel(30, 270, 300), Kernel(39, 300, 310),
                   Kernel(9, 205, 210),  Kernel(40, 310, 400)};
  builder.Add(batch);
  EXPECT_EQ(builder.Finish(500).ns(), 500 - 310);
  const std::vector<StepTimeline> steps = TakeAll(builder);
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(Launches(steps[0]), 2);
  EXPECT_EQ(Launches(steps[1]), 2);
  EXPECT_EQ(Launches(steps[2]), 2) << "what was launched behind the last exit is of no step";
  EXPECT_EQ(steps[0].kernels[0].time.ns(), 40);
  for (const StepTimeline& step : steps) {
    EXPECT_EQ(step.boundary, StepBoundary::kDevice);
    EXPECT_EQ(step.late_records, 0);
    EXPECT_FALSE(step.boundary_estimated);
  }
  EXPECT_EQ(steps[0].closed_by, "fence");
  EXPECT_EQ(steps[2].closed_by, "exit");
  // The first device-bounded step starts at its host boundary, each next one where the last ended.
  EXPECT_EQ(steps[0].start_ns, 0);
  EXPECT_EQ(steps[0].end_ns, 250);
  EXPECT_EQ(steps[1].start_ns, 250);
  EXPECT_EQ(steps[1].end_ns, 270);
  EXPECT_EQ(steps[2].start_ns, 270);
  EXPECT_EQ(steps[2].end_ns, 310);
}

TEST(DeviceStepsTest, WhatFollowsAnExitIsOfTheStepIfAnotherOneComes) {
  StepBuilder builder({});
  RecordBatch batch;
  batch.markers = {Begin(0, 0), End(80), Begin(100, 1), End(180)};
  batch.fences = {{.boundary_ns = 0, .launch_order = 10},
                  {.boundary_ns = 80, .launch_order = 15},
                  {.boundary_ns = 100, .launch_order = 20},
                  {.boundary_ns = 180, .launch_order = 30}};
  batch.kernels = {Kernel(14, 20, 30), Kernel(16, 90, 95), Kernel(22, 110, 120),
                   Kernel(33, 200, 300)};
  builder.Add(batch);
  builder.Finish(1000);
  const std::vector<StepTimeline> steps = TakeAll(builder);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(Launches(steps[0]), 2);
  EXPECT_EQ(steps[0].end_ns, 95);
  EXPECT_EQ(Launches(steps[1]), 1);
  EXPECT_EQ(steps[1].end_ns, 120);
}

TEST(DeviceStepsTest, AGraphLaunchGivesAllItsKernelsToOneStep) {
  StepBuilder builder({});
  RecordBatch batch = ThreeSteps();
  for (int i = 0; i < 50; ++i) {
    batch.kernels.push_back(Kernel(11, 100 + i, 101 + i, i % 4));  // one correlation id, 4 streams
    batch.kernels.push_back(Kernel(21, 200 + i, 201 + i, i % 4));
  }
  builder.Add(batch);
  builder.Finish(400);
  const std::vector<StepTimeline> steps = TakeAll(builder);
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(Launches(steps[0]), 50);
  EXPECT_EQ(Launches(steps[1]), 50);
  EXPECT_EQ(steps[1].end_ns, 250);
}

TEST(DeviceStepsTest, TheBoundaryNeverGoesBack) {
  StepBuilder builder({});
  RecordBatch batch = ThreeSteps();
  // A kernel of step 0 runs beyond all of step 1.
  batch.kernels = {Kernel(12, 20, 180, 2), Kernel(21, 110, 120), Kernel(31, 210, 260)};
  builder.Add(batch);
  builder.Finish(300);
  const std::vector<StepTimeline> steps = TakeAll(builder);
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].end_ns, 180);
  EXPECT_EQ(steps[1].start_ns, 180);
  EXPECT_EQ(steps[1].end_ns, 180);
  EXPECT_EQ(steps[2].start_ns, 180);
  EXPECT_EQ(steps[2].end_ns, 260);
}

TEST(DeviceStepsTest, ACopyThatRunsOnDoesNotEndTheStep) {
  StepBuilder builder({});
  RecordBatch batch = ThreeSteps();
  KernelRecord copy = Kernel(13, 30, 250, 2);
  copy.kind = KernelRecord::Kind::kMemcpy;
  copy.op_class = OpClass::kCopy;
  batch.kernels = {Kernel(12, 20, 80), copy, Kernel(21, 90, 180), Kernel(31, 210, 280)};
  builder.Add(batch);
  builder.Finish(300);
  const std::vector<StepTimeline> steps = TakeAll(builder);
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].end_ns, 80) << "the last kernel, not the checkpoint's copy";
  EXPECT_EQ(In(steps[0].devices[0], DeviceState::kExposedCopy), 0);
  EXPECT_EQ(In(steps[1].devices[0], DeviceState::kExposedCopy), 10);
  EXPECT_EQ(In(steps[2].devices[0], DeviceState::kExposedCopy), 30);
}

TEST(DeviceStepsTest, AStepWithoutDeviceWorkEndsAtItsHostBoundaryAndTheTotalStays) {
  StepBuilder builder({});
  RecordBatch batch = ThreeSteps();
  batch.kernels = {Kernel(12, 20, 80), Kernel(31, 210, 310)};
  builder.Add(batch);
  builder.Finish(400);
  const std::vector<StepTimeline> steps = TakeAll(builder);
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[1].boundary, StepBoundary::kHost);
  EXPECT_EQ(steps[1].start_ns, 80);
  EXPECT_EQ(steps[1].end_ns, 200);
  EXPECT_EQ(In(steps[1].devices[0], DeviceState::kIdle), 120) << "the device was watched";
  EXPECT_EQ(steps[2].wall().ns() + steps[1].wall().ns() + steps[0].wall().ns(), 310);
}

TEST(DeviceStepsTest, EachDeviceHasAPartitionOfTheSameWall) {
  StepBuilder builder({});
  RecordBatch batch = ThreeSteps();
  KernelRecord reduce = Kernel(13, 40, 90, 5, 1);
  reduce.op_class = OpClass::kCommunication;
  batch.kernels = {Kernel(12, 20, 60, 7, 0), Kernel(12, 30, 50, 8, 0), reduce,
                   Kernel(14, 70, 80, 7, 1), Kernel(22, 130, 140, 7, 0)};
  builder.Add(batch);
  builder.Finish(300);
  const std::vector<StepTimeline> steps = TakeAll(builder);
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].end_ns, 90) << "the last kernel on any of its devices";
  ASSERT_EQ(steps[0].devices.size(), 2u);
  EXPECT_EQ(steps[0].devices[0].kernel_time_sum.ns(), 60);
  EXPECT_EQ(In(steps[0].devices[0], DeviceState::kCompute), 40) << "the union, not the sum";
  EXPECT_EQ(In(steps[0].devices[1], DeviceState::kCompute), 10);
  EXPECT_EQ(In(steps[0].devices[1], DeviceState::kExposedCommunication), 40);
  for (const StepTimeline& step : steps) {
    for (const DeviceTime& device : step.devices) {
      EXPECT_EQ(Partitioned(device), step.wall().ns());
    }
  }
}

TEST(DeviceStepsTest, WorkWithoutALaunchBelongsWhereItStartedAndIsCounted) {
  StepBuilder builder({});
  RecordBatch batch = ThreeSteps();
  KernelRecord orphan = Kernel(0, 120, 130);
  orphan.launch_known = false;
  KernelRecord before = Kernel(0, -50, -40);
  before.launch_known = false;
  batch.kernels = {orphan, before, Kernel(12, 20, 80)};
  builder.Add(batch);
  builder.Finish(400);
  const std::vector<StepTimeline> steps = TakeAll(builder);
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(Launches(steps[0]), 1);
  EXPECT_EQ(Launches(steps[1]), 1);
  EXPECT_EQ(steps[0].unlaunched_kernels, 0);
  EXPECT_EQ(steps[1].unlaunched_kernels, 1);
}

TEST(DeviceStepsTest, ImpossibleTimesAreLossesAndMoveNoBoundary) {
  StepBuilder builder({});
  builder.SetDeviceCounting(true);
  RecordBatch batch = ThreeSteps();
  for (MarkerRecord& marker : batch.markers) marker.time_ns += 5'000'000'000;
  for (FenceRecord& fence : batch.fences) fence.boundary_ns += 5'000'000'000;
  batch.drained_at_ns = 5'000'000'300;
  batch.kernels = {Kernel(12, 5'000'000'020, 5'000'000'030),
                   Kernel(13, 5'000'000'040, 5'000'000'010),     // ends before it starts
                   Kernel(14, 5'000'000'040, 3605'000'000'000),  // an hour from now
                   Kernel(15, 100, 200)};                        // long before it was launched
  builder.Add(batch);
  builder.Finish(5'000'000'400);
  const std::vector<StepTimeline> steps = TakeAll(builder);
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].end_ns, 5'000'000'030);
  std::int64_t invalid = 0;
  for (const StepTimeline& step : steps) invalid += Lost(step, LossRecord::Reason::kInvalidTime);
  EXPECT_EQ(invalid, 3);
}

TEST(DeviceStepsTest, AClockStepMarksTheStepAndItsIntervalIsTheHosts) {
  StepBuilder builder({});
  RecordBatch batch = ThreeSteps();
  batch.kernels = {Kernel(12, 20, 80), Kernel(22, 130, 195), Kernel(32, 210, 280)};
  batch.clock_steps = {{.time_ns = 150, .jump_ns = -3'600'000'000'000}};
  builder.Add(batch);
  builder.Finish(400);
  const std::vector<StepTimeline> steps = TakeAll(builder);
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_FALSE(steps[0].clock_step);
  ASSERT_TRUE(steps[1].clock_step);
  EXPECT_EQ(steps[1].clock_step->jump_ns, -3'600'000'000'000);
  EXPECT_EQ(steps[1].boundary, StepBoundary::kHost);
  EXPECT_EQ(steps[1].end_ns, 200);
  EXPECT_EQ(steps[2].start_ns, 200);
  EXPECT_EQ(steps[2].boundary, StepBoundary::kDevice);
}

TEST(DeviceStepsTest, TheCollectorsOwnCostIsSummedByKind) {
  StepBuilder builder({});
  RecordBatch batch = ThreeSteps();
  batch.overheads = {
      {.start_ns = 110, .end_ns = 115, .kind = OverheadRecord::Kind::kBufferFlush},
      {.start_ns = 120, .end_ns = 127, .kind = OverheadRecord::Kind::kBufferFlush},
      {.start_ns = 130, .end_ns = 131, .kind = OverheadRecord::Kind::kInstrumentation}};
  builder.Add(batch);
  builder.Finish(400);
  const std::vector<StepTimeline> steps = TakeAll(builder);
  ASSERT_EQ(steps.size(), 3u);
  const auto& cost = steps[1].collector_overhead;
  EXPECT_EQ(cost[static_cast<std::size_t>(OverheadRecord::Kind::kBufferFlush)].ns(), 12);
  EXPECT_EQ(cost[static_cast<std::size_t>(OverheadRecord::Kind::kInstrumentation)].ns(), 1);
}

TEST(DeviceStepsTest, OpsGiveNoDeviceTimeBesideKernels) {
  StepBuilder builder({});
  RecordBatch batch = ThreeSteps();
  batch.ops = {
      {.start_ns = 5, .end_ns = 95, .self_ns = 90, .signature = 1, .op_class = OpClass::kMatmul}};
  batch.kernels = {Kernel(12, 20, 30), Kernel(22, 110, 120)};
  builder.Add(batch);
  builder.Finish(400);
  const std::vector<StepTimeline> steps = TakeAll(builder);
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].ops.size(), 1u);
  ASSERT_EQ(steps[0].devices.size(), 1u);
  EXPECT_EQ(In(steps[0].devices[0], DeviceState::kCompute), 10);
  EXPECT_EQ(steps[0].devices[0].kernel_time_sum.ns(), 10);
}

TEST(KernelSumsTest, AFullTableKeepsLaunchesAndTime) {
  KernelSums sums(16);
  for (std::uint32_t i = 1; i <= 1000; ++i) {
    KernelRecord kernel = Kernel(1, 0, 3);
    kernel.kernel = i;
    kernel.op_class = i % 2 ? OpClass::kMatmul : OpClass::kCopy;
    sums.Add(kernel, Phase::kBackward);
  }
  std::int64_t launches = 0;
  std::int64_t time = 0;
  std::int64_t copies = 0;
  for (const KernelSum& sum : sums.Sorted()) {
    launches += sum.launches;
    time += sum.time.ns();
    if (sum.op_class == OpClass::kCopy) copies += sum.launches;
    EXPECT_EQ(sum.phase, Phase::kBackward);
  }
  EXPECT_EQ(launches, 1000);
  EXPECT_EQ(time, 3000);
  EXPECT_EQ(copies, 500) << "the class survives";
  EXPECT_LE(sums.sums().size(), 18u);
}

}  // namespace
}  // namespace flopledger
