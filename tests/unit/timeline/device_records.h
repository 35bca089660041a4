#pragma once

// Records of steps with device work, made by hand.

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "timeline/step_builder.h"

namespace flopledger::device_records {

inline MarkerRecord Begin(std::int64_t time_ns, std::int64_t step) {
  return {.time_ns = time_ns, .step = step, .kind = MarkerRecord::Kind::kStepBegin};
}
inline MarkerRecord End(std::int64_t time_ns, bool failed = false) {
  return {.time_ns = time_ns,
          .kind = failed ? MarkerRecord::Kind::kStepFailed : MarkerRecord::Kind::kStepEnd};
}
inline KernelRecord Kernel(LaunchOrder order, std::int64_t start_ns, std::int64_t end_ns,
                           std::uint32_t stream = 7, std::uint16_t device = 0) {
  return {.start_ns = start_ns,
          .end_ns = end_ns,
          .launch_order = order,
          .kernel = 1,
          .stream = stream,
          .device = device,
          .op_class = OpClass::kMatmul,
          .launch_known = true};
}

inline std::vector<StepTimeline> TakeAll(StepBuilder& builder) {
  std::vector<StepTimeline> steps;
  while (auto step = builder.Take()) steps.push_back(std::move(*step));
  return steps;
}

inline std::int64_t Launches(const StepTimeline& step) {
  return std::accumulate(
      step.kernels.begin(), step.kernels.end(), std::int64_t{0},
      [](std::int64_t sum, const KernelSum& kernel) { return sum + kernel.launches; });
}

inline std::int64_t In(const DeviceTime& device, DeviceState state) {
  return device.InState(state).ns();
}

inline std::int64_t Partitioned(const DeviceTime& device) {
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < kDeviceStateCount; ++i) {
    sum += In(device, static_cast<DeviceState>(i));
  }
  return sum;
}

inline std::int64_t Lost(const StepTimeline& step, LossRecord::Reason reason) {
  std::int64_t count = 0;
  for (const LossRecord& loss : step.losses) {
    if (loss.reason == reason && loss.where == LossRecord::Where::kTimeline) count += loss.count;
  }
  return count;
}

// Three steps whose boundaries are at 0, 100, 200 on the host and at 10, 20, 30 in launch order.
inline RecordBatch ThreeSteps() {
  RecordBatch batch;
  batch.markers = {Begin(0, 0), Begin(100, 1), Begin(200, 2), End(290)};
  batch.fences = {{.boundary_ns = 0, .launch_order = 10},
                  {.boundary_ns = 100, .launch_order = 20},
                  {.boundary_ns = 200, .launch_order = 30},
                  {.boundary_ns = 290, .launch_order = 40}};
  return batch;
}

}  // namespace flopledger::device_records
