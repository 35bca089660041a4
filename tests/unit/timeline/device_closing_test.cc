#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "timeline/step_builder.h"
#include "unit/timeline/device_records.h"

// When a step with device work closes, and what becomes of records that come too late for it.

namespace flopledger {
namespace {

using namespace device_records;  // NOLINT(google-build-using-namespace)

TEST(DeviceClosingTest, KernelsWaitForTheFenceOfALaterStepAndForNothingElse) {
  StepBuilder builder({});
  builder.SetDeviceCounting(true);
  RecordBatch first;
  first.drained_at_ns = 150;
  first.markers = {Begin(0, 0), Begin(100, 1)};
  first.fences = {{.boundary_ns = 0, .launch_order = 10}};
  first.kernels = {Kernel(12, 20, 30), Kernel(22, 110, 120)};
  builder.Add(first);
  RecordBatch second;
  second.drained_at_ns = 180;
  second.fences = {{.boundary_ns = 100, .launch_order = 20}};
  builder.Add(second);
  const std::vector<StepTimeline> steps = TakeAll(builder);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].closed_by, "fence");
  EXPECT_EQ(Launches(steps[0]), 1);
  EXPECT_EQ(steps[0].end_ns, 30);
}

TEST(DeviceClosingTest, AStepWaitsUntilEachStreamThatWorkedShowsLaterWork) {
  StepBuilder builder({});
  builder.SetDeviceCounting(true);
  RecordBatch batch = ThreeSteps();
  batch.drained_at_ns = 300;
  batch.kernels = {Kernel(12, 20, 30, 1), Kernel(13, 20, 90, 2), Kernel(21, 95, 99, 1)};
  builder.Add(batch);
  builder.Add({.drained_at_ns = 305});
  EXPECT_TRUE(TakeAll(builder).empty()) << "stream 2 may still have work of step 0";
  builder.Add({.kernels = {Kernel(14, 100, 130, 2)}, .drained_at_ns = 310});
  EXPECT_TRUE(TakeAll(builder).empty());
  builder.Add(
      {.kernels = {Kernel(22, 130, 140, 2), Kernel(23, 131, 150, 1)}, .drained_at_ns = 320});
  const std::vector<StepTimeline> steps = TakeAll(builder);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].closed_by, "fence");
  EXPECT_EQ(Launches(steps[0]), 3);
  EXPECT_EQ(steps[0].end_ns, 130);
}

TEST(DeviceClosingTest, AStreamThatFallsSilentDelaysByTwoStepsAndItsLateWorkIsCounted) {
  StepBuilder builder({.device = {.least_silence = DurationNs(0)}});
  builder.SetDeviceCounting(true);
  RecordBatch batch;
  for (int i = 0; i < 7; ++i) {
    batch.markers.push_back(Begin(i * 100, i));
    batch.fences.push_back({.boundary_ns = i * 100, .launch_order = 10 + i * 10});
  }
  batch.drained_at_ns = 700;
  batch.kernels = {Kernel(11, 10, 100, 1), Kernel(22, 110, 200, 1), Kernel(21, 110, 120, 9),
                   Kernel(31, 210, 300, 1), Kernel(41, 310, 400, 1)};
  builder.Add(batch);
  builder.Add({.drained_at_ns = 701});
  std::vector<StepTimeline> steps = TakeAll(builder);
  ASSERT_EQ(steps.size(), 1u) << "stream 9 worked in step 1 and shows nothing later";
  EXPECT_EQ(steps[0].closed_by, "fence");
  builder.Add({.kernels = {Kernel(51, 410, 500, 1)}, .drained_at_ns = 702});
  steps = TakeAll(builder);
  ASSERT_EQ(steps.size(), 1u) << "two more steps are over, and work of the next one is seen";
  EXPECT_EQ(steps[0].step, 1);
  EXPECT_EQ(steps[0].closed_by, "lag");
  EXPECT_EQ(Launches(steps[0]), 2);
  builder.Add({.kernels = {Kernel(23, 130, 160, 9)}, .drained_at_ns = 703});
  builder.Finish(800);
  steps = TakeAll(builder);
  ASSERT_EQ(steps.size(), 5u);
  EXPECT_EQ(steps[0].late_records, 1) << "counted, in no step's books";
  EXPECT_EQ(Launches(steps[0]), 1);
}

TEST(DeviceClosingTest, AStreamThatRunsAheadDoesNotMakeTheOthersLookSilent) {
  // Copies for the next steps run long before the kernels that need them.
  StepBuilder builder({});
  builder.SetDeviceCounting(true);
  RecordBatch batch;
  for (int i = 0; i < 6; ++i) {
    batch.markers.push_back(Begin(i * 10, i));
    batch.fences.push_back({.boundary_ns = i * 10, .launch_order = 10 + i * 10});
    batch.kernels.push_back(Kernel(11 + i * 10, i * 10 + 1, i * 10 + 3, 2));
  }
  batch.drained_at_ns = 100;
  batch.kernels.push_back(Kernel(12, 5, 60, 1));
  builder.Add(batch);
  builder.Add({.drained_at_ns = 101});
  EXPECT_TRUE(TakeAll(builder).empty());
  builder.Add({.kernels = {Kernel(13, 60, 90, 1), Kernel(22, 90, 120, 1)}, .drained_at_ns = 130});
  builder.Finish(200);
  const std::vector<StepTimeline> steps = TakeAll(builder);
  ASSERT_EQ(steps.size(), 6u);
  EXPECT_EQ(Launches(steps[0]), 3);
  EXPECT_EQ(steps[0].end_ns, 90);
  EXPECT_EQ(steps[0].late_records, 0);
}

TEST(DeviceClosingTest, WithoutNewsFromTheDeviceATimeLimitClosesTheStep) {
  StepBuilder builder({.device = {.timeout = DurationNs(1000)}});
  builder.SetDeviceCounting(true);
  RecordBatch batch;
  batch.drained_at_ns = 150;
  batch.markers = {Begin(0, 0), Begin(100, 1)};
  batch.fences = {{.boundary_ns = 0, .launch_order = 10}};
  batch.kernels = {Kernel(12, 20, 30)};
  builder.Add(batch);
  builder.Add({.drained_at_ns = 1099});
  EXPECT_TRUE(TakeAll(builder).empty());
  builder.Add({.drained_at_ns = 1100});
  std::vector<StepTimeline> steps = TakeAll(builder);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].closed_by, "timeout");
  EXPECT_TRUE(steps[0].boundary_estimated) << "the fence of its end never came";
  EXPECT_EQ(steps[0].boundary, StepBoundary::kDevice);
}

TEST(DeviceClosingTest, RecordsThatFlowKeepAFencedStepOpenHoweverFarTheDeviceIsBehind) {
  StepBuilder builder({.device = {.timeout = DurationNs(1000)}});
  builder.SetDeviceCounting(true);
  RecordBatch batch = ThreeSteps();
  batch.drained_at_ns = 300;
  builder.Add(batch);
  for (std::int64_t now = 800; now < 5000; now += 900) {
    builder.Add({.kernels = {Kernel(12, now - 20, now - 10)}, .drained_at_ns = now});
    EXPECT_TRUE(TakeAll(builder).empty()) << now;
  }
}

TEST(DeviceClosingTest, OnADeviceThatDoesNothingStepsSoonStopWaiting) {
  StepBuilder builder({.device = {.timeout = DurationNs(1000)}});
  builder.SetDeviceCounting(true);
  std::vector<std::string> closed_by;
  for (int i = 0; i < 30; ++i) {
    RecordBatch batch;
    batch.markers = {Begin(i * 100, i)};
    batch.ops = {{.start_ns = i * 100 + 10,
                  .end_ns = i * 100 + 60,
                  .self_ns = 50,
                  .signature = 1,
                  .op_class = OpClass::kMatmul}};
    batch.drained_at_ns = i * 100 + 50;
    builder.Add(batch);
    for (StepTimeline& step : TakeAll(builder)) {
      EXPECT_EQ(step.boundary, StepBoundary::kHost);
      ASSERT_EQ(step.devices.size(), 1u);
      EXPECT_EQ(In(step.devices[0], DeviceState::kCompute), 50) << "a CPU's ops are its kernels";
      closed_by.push_back(step.closed_by);
    }
  }
  ASSERT_EQ(closed_by.size(), 28u);
  EXPECT_EQ(closed_by[0], "timeout");
  EXPECT_EQ(std::count(closed_by.begin(), closed_by.end(), "timeout"), 1);
  EXPECT_EQ(closed_by[1], "next_boundary");
}

TEST(DeviceClosingTest, ALostFenceIsPutBehindWhatStartedBeforeTheBoundary) {
  StepBuilder builder({.device = {.least_silence = DurationNs(0)}});
  builder.SetDeviceCounting(true);
  RecordBatch batch;
  for (int i = 0; i < 5; ++i) {
    batch.markers.push_back(Begin(i * 100, i));
    if (i != 1) batch.fences.push_back({.boundary_ns = i * 100, .launch_order = 10 + i * 10});
  }
  batch.drained_at_ns = 500;
  // The fence of step 1 is lost. Launch 18 started before it; so launch 14, which ran later on
  // another stream, was launched before it as well.
  batch.kernels = {Kernel(12, 20, 30),   Kernel(18, 90, 95),   Kernel(14, 105, 108, 2),
                   Kernel(23, 110, 120), Kernel(31, 210, 220), Kernel(41, 310, 320)};
  builder.Add(batch);
  builder.Add({.drained_at_ns = 501});
  builder.Finish(600);
  const std::vector<StepTimeline> steps = TakeAll(builder);
  ASSERT_EQ(steps.size(), 5u);
  EXPECT_EQ(steps[0].closed_by, "lag") << "not by its fence";
  EXPECT_TRUE(steps[0].boundary_estimated);
  EXPECT_EQ(Launches(steps[0]), 3);
  EXPECT_TRUE(steps[1].boundary_estimated);
  EXPECT_EQ(Launches(steps[1]), 1);
  EXPECT_FALSE(steps[2].boundary_estimated);
}

TEST(DeviceClosingTest, WhenTooManyKernelsWaitTheirFencesAreGivenUpAndNoneIsLost) {
  StepBuilder builder({.device = {.held_limit = 3}});
  RecordBatch batch;
  batch.drained_at_ns = 1000;
  batch.markers = {Begin(0, 0), Begin(100, 1), End(190)};
  batch.fences = {{.boundary_ns = 0, .launch_order = 10}};
  for (int i = 0; i < 4; ++i) batch.kernels.push_back(Kernel(12 + i, 20 + i, 21 + i));
  for (int i = 0; i < 4; ++i) batch.kernels.push_back(Kernel(22 + i, 120 + i, 121 + i));
  builder.Add(batch);
  builder.Finish(1000);
  const std::vector<StepTimeline> steps = TakeAll(builder);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_TRUE(steps[0].boundary_estimated);
  // Three wait; with the fourth the boundary is put behind the last of those three.
  EXPECT_EQ(Launches(steps[0]) + Launches(steps[1]), 8);
  EXPECT_TRUE(steps[0].losses.empty());
  EXPECT_TRUE(steps[1].losses.empty());
}

}  // namespace
}  // namespace flopledger
