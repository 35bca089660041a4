#include "timeline/activity_summary.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "timeline/interval_set.h"

namespace flopledger {
namespace {

TEST(IntervalSet, IsAUnionInAnyOrder) {
  IntervalSet set;
  for (const TimeSpan& span : {TimeSpan{50, 60}, TimeSpan{0, 10}, TimeSpan{10, 20}, TimeSpan{5, 8},
                               TimeSpan{55, 70}, TimeSpan{30, 30}, TimeSpan{40, 35}}) {
    set.Add(span);
  }
  EXPECT_EQ(set.spans(), (std::vector<TimeSpan>{{0, 20}, {50, 70}}));
  EXPECT_EQ(set.Measure(), 40);
  EXPECT_EQ(set.MeasureIn({15, 52}), 7);
  EXPECT_EQ(set.MeasureIn({20, 50}), 0);
}

TEST(IntervalSet, AgreesWithALineOfCells) {
  // The second method: mark every nanosecond.
  std::mt19937 random(5);
  std::uniform_int_distribution<int> at(0, 400);
  for (int round = 0; round < 60; ++round) {
    std::vector<bool> a_cells(500);
    std::vector<bool> b_cells(500);
    IntervalSet a;
    IntervalSet b;
    for (int i = 0; i < 40; ++i) {
      const int start = at(random);
      const int end = start + at(random) % 15;
      (i % 2 == 0 ? a : b).Add({start, end});
      for (int cell = start; cell < end; ++cell) (i % 2 == 0 ? a_cells : b_cells)[cell] = true;
    }
    const int from = at(random);
    const TimeSpan window{from, from + 60};
    std::int64_t both = 0;
    std::int64_t only_a = 0;
    std::int64_t in_window = 0;
    for (int cell = 0; cell < 500; ++cell) {
      both += a_cells[cell] || b_cells[cell] ? 1 : 0;
      only_a += a_cells[cell] && !b_cells[cell] ? 1 : 0;
      in_window += a_cells[cell] && cell >= window.start_ns && cell < window.end_ns ? 1 : 0;
    }
    EXPECT_EQ(Union(a, b).Measure(), both);
    EXPECT_EQ(Difference(a, b).Measure(), only_a);
    EXPECT_EQ(a.MeasureIn(window), in_window);
  }
}

TEST(IntervalSet, MemoryIsThatOfTheUnion) {
  IntervalSet set;
  for (int i = 0; i < 100'000; ++i) set.Add({(i * 7919) % 1000, (i * 7919) % 1000 + 1});
  EXPECT_EQ(set.spans().size(), 1U);
  EXPECT_EQ(set.Measure(), 1000);
}

KernelRecord Work(std::int64_t start, std::int64_t end, std::int64_t launch,
                  KernelRecord::Kind kind = KernelRecord::Kind::kKernel) {
  KernelRecord record;
  record.start_ns = start;
  record.end_ns = end;
  record.launch_order = launch;
  record.launch_known = true;
  record.kind = kind;
  return record;
}

MarkerRecord Marker(std::int64_t time, std::int64_t step, bool begin) {
  return {.time_ns = time,
          .step = step,
          .kind = begin ? MarkerRecord::Kind::kStepBegin : MarkerRecord::Kind::kStepEnd};
}

TEST(ActivitySummary, TellsAStepInThreeWays) {
  RecordBatch batch;
  batch.markers = {Marker(0, 1, true), Marker(90, 1, false), Marker(100, 2, true),
                   Marker(200, 2, false)};
  // Launched in step 1, runs into step 2; launched between both; launched in step 2.
  batch.kernels = {Work(80, 120, 10), Work(130, 140, 95), Work(150, 230, 120),
                   Work(150, 160, 121, KernelRecord::Kind::kMemcpy)};
  ActivitySummary summary;
  summary.Add(batch);
  const std::vector<DeviceActivity> devices = summary.Finish();
  ASSERT_EQ(devices.size(), 1U);
  const StepActivity& first = devices[0].steps.at(0);
  EXPECT_EQ(first.launched_kernels, 1);
  EXPECT_EQ(first.launched_kernel_time_sum_ns, 40);
  EXPECT_EQ(first.started_kernels, 1);
  EXPECT_EQ(first.busy_clipped_ns, 10);
  EXPECT_FALSE(first.device_window.has_value());
  const StepActivity& second = devices[0].steps.at(1);
  EXPECT_EQ(second.launched_kernels, 1);
  EXPECT_EQ(second.launched_work, 2);
  EXPECT_EQ(second.started_kernels, 2);
  EXPECT_EQ(second.busy_clipped_ns, 20 + 10 + 50);
  EXPECT_EQ(second.device_window, (TimeSpan{120, 230}));
  EXPECT_EQ(second.device_busy_ns, 10 + 80);
  EXPECT_EQ(second.device_idle_ns, 20);
}

TEST(ActivitySummary, BatchesMayBeSplitAnywhere) {
  std::mt19937 random(11);
  RecordBatch whole;
  for (std::int64_t step = 0; step < 20; ++step) {
    whole.markers.push_back(Marker(step * 100, step, true));
    whole.markers.push_back(Marker(step * 100 + 95, step, false));
    for (int i = 0; i < 10; ++i) {
      const std::int64_t launch = step * 100 + i * 9;
      const std::int64_t start = launch + static_cast<std::int64_t>(random() % 300);
      whole.kernels.push_back(
          Work(start, start + static_cast<std::int64_t>(random() % 30), launch));
    }
  }
  ActivitySummary at_once;
  at_once.Add(whole);
  ActivitySummary by_step;
  for (std::size_t step = 0; step < 20; ++step) {
    RecordBatch part;
    part.markers = {whole.markers[2 * step], whole.markers[2 * step + 1]};
    part.kernels.assign(whole.kernels.begin() + static_cast<std::ptrdiff_t>(10 * step),
                        whole.kernels.begin() + static_cast<std::ptrdiff_t>(10 * step + 10));
    by_step.Add(part);
  }
  const DeviceActivity a = at_once.Finish().at(0);
  const DeviceActivity b = by_step.Finish().at(0);
  EXPECT_EQ(a.busy_all_ns, b.busy_all_ns);
  EXPECT_EQ(a.kernel_time_sum_ns, b.kernel_time_sum_ns);
  std::int64_t started = 0;
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(a.steps[i].launched_kernels, 10);
    EXPECT_EQ(b.steps[i].launched_kernels, 10);
    EXPECT_EQ(a.steps[i].started_kernels, b.steps[i].started_kernels) << i;
    EXPECT_EQ(a.steps[i].device_window, b.steps[i].device_window) << i;
    EXPECT_EQ(a.steps[i].device_busy_ns, b.steps[i].device_busy_ns) << i;
    started += a.steps[i].started_kernels;
  }
  EXPECT_GT(started, 150);
}

TEST(ActivitySummary, ImpossibleTimesAreCountedAndTakeNoTime) {
  RecordBatch batch;
  batch.markers = {Marker(0, 1, true), Marker(100, 1, false)};
  batch.kernels = {Work(10, 30, 1), Work(50, 40, 2), Work(0, 0, 3)};
  ActivitySummary summary;
  summary.Add(batch);
  const DeviceActivity device = summary.Finish().at(0);
  EXPECT_EQ(device.kernels, 3);
  EXPECT_EQ(device.untimed, 2);
  EXPECT_EQ(device.busy_all_ns, 20);
  EXPECT_EQ(device.span, (TimeSpan{10, 30}));
  EXPECT_EQ(device.steps.at(0).launched_kernels, 3);
}

}  // namespace
}  // namespace flopledger
