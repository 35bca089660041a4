#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "fakes/device_run.h"
#include "timeline/step_builder.h"

// Random runs of devices through the timeline, against a truth that the generator works out beside
// the records, by launches alone.

namespace flopledger {
namespace {

using fakes::DeviceRun;
using fakes::DeviceRunOptions;
using fakes::KernelTruth;
using fakes::MakeDeviceRun;

KernelTruth SumsOf(const StepTimeline& step) {
  KernelTruth sums;
  for (const KernelSum& sum : step.kernels) {
    auto& [launches, time] = sums[{
        sum.kernel, sum.op_known ? std::optional<SignatureId>(sum.op) : std::nullopt, sum.phase}];
    launches += sum.launches;
    time += sum.time.ns();
  }
  return sums;
}

/// Everything of a step that must not depend on the delivery.
std::string Books(const StepTimeline& step) {
  std::string text = std::to_string(step.step) + " " + std::to_string(step.start_ns) + " " +
                     std::to_string(step.end_ns) + " " + std::string(ToString(step.boundary)) +
                     " late " + std::to_string(step.late_records) +
                     (step.boundary_estimated ? " estimated" : "") + "\n";
  for (const KernelSum& sum : step.kernels) {
    text += std::to_string(sum.kernel) + "/" + std::to_string(sum.op) + "/" +
            std::to_string(static_cast<int>(sum.phase)) + ":" + std::to_string(sum.launches) + "=" +
            std::to_string(sum.time.ns()) + " ";
  }
  std::map<std::uint16_t, std::string> devices;  // their order is that of their first record
  for (const DeviceTime& device : step.devices) {
    std::string& line = devices[device.device];
    for (std::size_t i = 0; i < kDeviceStateCount; ++i) {
      line += " " + std::to_string(device.InState(static_cast<DeviceState>(i)).ns());
    }
    line += " sum " + std::to_string(device.kernel_time_sum.ns());
  }
  for (const auto& [device, line] : devices) text += "\n" + std::to_string(device) + line;
  return text;
}

std::vector<StepTimeline> TakeAll(StepBuilder& builder) {
  std::vector<StepTimeline> steps;
  while (auto step = builder.Take()) steps.push_back(std::move(*step));
  return steps;
}

/// Delivers a run as a live source may: a drain finds what has arrived by then, in any order within
/// a batch, device first and markers second.
std::vector<StepTimeline> Deliver(const DeviceRun& run, std::mt19937_64& random,
                                  std::int64_t longest_pause_ns) {
  StepBuilder builder({.observed = false});
  builder.SetDeviceCounting(true);
  std::vector<StepTimeline> steps;
  std::size_t kernel = 0;
  std::size_t fence = 0;
  std::size_t marker = 0;
  for (std::int64_t now = 1'000'000; marker < run.all.markers.size() ||
                                     kernel < run.kernels.size() || fence < run.fences.size();) {
    RecordBatch batch;
    for (; kernel < run.kernels.size() && run.kernels[kernel].at_ns <= now; ++kernel) {
      batch.kernels.push_back(run.all.kernels[run.kernels[kernel].index]);
    }
    for (; fence < run.fences.size() && run.fences[fence].at_ns <= now; ++fence) {
      batch.fences.push_back(run.all.fences[run.fences[fence].index]);
    }
    now +=
        static_cast<std::int64_t>(random() % 200);  // the host's rings are read after the device's
    for (; marker < run.all.markers.size() && run.all.markers[marker].time_ns <= now; ++marker) {
      batch.markers.push_back(run.all.markers[marker]);
    }
    std::shuffle(batch.kernels.begin(), batch.kernels.end(), random);
    std::shuffle(batch.fences.begin(), batch.fences.end(), random);
    std::shuffle(batch.markers.begin(), batch.markers.end(), random);
    batch.drained_at_ns = now;
    builder.Add(batch);
    while (auto step = builder.Take()) steps.push_back(std::move(*step));
    now += 1 + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(longest_pause_ns));
  }
  builder.Finish(run.end_ns);
  for (StepTimeline& step : TakeAll(builder)) steps.push_back(std::move(step));
  return steps;
}

void ExpectTruth(const DeviceRun& run, const std::vector<StepTimeline>& steps) {
  ASSERT_EQ(steps.size(), run.sums.size());
  std::int64_t start_ns = run.all.markers.front().time_ns;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    ASSERT_EQ(SumsOf(steps[i]), run.sums[i]) << "step " << i << " " << steps[i].closed_by;
    ASSERT_EQ(steps[i].late_records, 0) << "step " << i;
    ASSERT_EQ(steps[i].start_ns, start_ns) << "step " << i;
    ASSERT_EQ(steps[i].end_ns, run.boundary_ns[i]) << "step " << i << " " << steps[i].closed_by;
    ASSERT_FALSE(steps[i].boundary_estimated);
    start_ns = steps[i].end_ns;
  }
}

/// Union of the intervals of some classes on a device, by sorting, within each step's interval.
std::vector<std::int64_t> UnionBySteps(const DeviceRun& run, std::uint16_t device, int classes) {
  std::vector<std::pair<std::int64_t, std::int64_t>> intervals;
  for (const KernelRecord& kernel : run.all.kernels) {
    const int bit = 1 << static_cast<int>(ActivityOf(kernel.op_class));
    if (kernel.device == device && (classes & bit) != 0) {
      intervals.emplace_back(kernel.start_ns, kernel.end_ns);
    }
  }
  std::sort(intervals.begin(), intervals.end());
  std::vector<std::int64_t> busy(run.boundary_ns.size(), 0);
  std::int64_t covered_until = run.all.markers.front().time_ns;
  std::size_t step = 0;
  for (const auto& [from, to] : intervals) {
    std::int64_t at = std::max(from, covered_until);
    while (at < to && step < busy.size()) {
      if (run.boundary_ns[step] <= at) {
        ++step;
        continue;
      }
      const std::int64_t until = std::min(to, run.boundary_ns[step]);
      busy[step] += until - at;
      at = until;
    }
    covered_until = std::max(covered_until, to);
  }
  return busy;
}

void ExpectPartition(const DeviceRun& run, const std::vector<StepTimeline>& steps) {
  for (std::uint16_t device : {std::uint16_t{0}, std::uint16_t{3}, std::uint16_t{6}}) {
    const auto compute = UnionBySteps(run, device, 1);
    const auto communication = UnionBySteps(run, device, 1 | 2);
    const auto all = UnionBySteps(run, device, 1 | 2 | 4);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      for (const DeviceTime& time : steps[i].devices) {
        if (time.device != device) continue;
        const auto in = [&](DeviceState state) { return time.InState(state).ns(); };
        ASSERT_EQ(in(DeviceState::kCompute), compute[i]) << "step " << i << " device " << device;
        ASSERT_EQ(in(DeviceState::kExposedCommunication), communication[i] - compute[i]);
        ASSERT_EQ(in(DeviceState::kExposedCopy), all[i] - communication[i]);
        ASSERT_EQ(in(DeviceState::kIdle), steps[i].wall().ns() - all[i]);
      }
    }
  }
}

TEST(DeviceStepsPropertyTest, EveryKernelOfTenThousandStepsIsWhereItWasLaunched) {
  std::mt19937_64 random(20261129);
  std::int64_t steps_seen = 0;
  std::map<std::string, int> closed_by;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    DeviceRunOptions options;
    options.seed = seed;
    options.devices = 1 + static_cast<int>(seed % 3);
    options.streams = 1 + static_cast<int>(seed % 5);
    options.threads = 1 + static_cast<int>(seed % 4);
    const DeviceRun run = MakeDeviceRun(options);
    const std::vector<StepTimeline> steps = Deliver(run, random, 4000);
    ExpectTruth(run, steps);
    if (HasFatalFailure()) FAIL() << "seed " << seed;
    ExpectPartition(run, steps);
    if (HasFatalFailure()) FAIL() << "seed " << seed;
    for (const StepTimeline& step : steps) ++closed_by[step.closed_by];
    steps_seen += static_cast<std::int64_t>(steps.size());
  }
  EXPECT_EQ(steps_seen, 10'000);
  EXPECT_EQ(closed_by["fence"], 9900);
  EXPECT_EQ(closed_by["exit"], 100);
}

TEST(DeviceStepsPropertyTest, TheOrderAndTheCutsOfDeliveryChangeNoReport) {
  std::mt19937_64 random(7);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    DeviceRunOptions options;
    options.seed = 1000 + seed;
    options.devices = 1 + static_cast<int>(seed % 3);
    options.streams = 1 + static_cast<int>(seed % 5);
    const DeviceRun run = MakeDeviceRun(options);
    const std::vector<StepTimeline> expected = Deliver(run, random, 1);
    for (std::int64_t pause_ns : {50, 500, 5000, 50'000, 10'000'000}) {
      const std::vector<StepTimeline> steps = Deliver(run, random, pause_ns);
      ASSERT_EQ(steps.size(), expected.size());
      for (std::size_t i = 0; i < steps.size(); ++i) {
        ASSERT_EQ(Books(steps[i]), Books(expected[i])) << "seed " << seed << " step " << i;
      }
    }
  }
}

// Where nothing closes before the end, no order at all makes a difference.
TEST(DeviceStepsPropertyTest, AnyOrderWhateverGivesTheSameBooksAtTheEnd) {
  std::mt19937_64 random(8);
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const DeviceRun run = MakeDeviceRun({.devices = 2, .seed = 2000 + seed});
    StepBuilder builder({.observed = false});
    builder.Add({.markers = run.all.markers});
    std::vector<KernelRecord> kernels = run.all.kernels;
    std::vector<FenceRecord> fences = run.all.fences;
    std::shuffle(kernels.begin(), kernels.end(), random);
    std::shuffle(fences.begin(), fences.end(), random);
    while (!kernels.empty() || !fences.empty()) {
      RecordBatch batch;
      for (std::uint64_t n = random() % 300; n > 0 && !kernels.empty(); --n) {
        batch.kernels.push_back(kernels.back());
        kernels.pop_back();
      }
      for (std::uint64_t n = random() % 20; n > 0 && !fences.empty(); --n) {
        batch.fences.push_back(fences.back());
        fences.pop_back();
      }
      builder.Add(batch);
    }
    builder.Finish(run.end_ns);
    const std::vector<StepTimeline> steps = TakeAll(builder);
    ExpectTruth(run, steps);
    if (HasFatalFailure()) FAIL() << "seed " << seed;
    ExpectPartition(run, steps);
    if (HasFatalFailure()) FAIL() << "seed " << seed;
  }
}

// Whatever becomes of a kernel, it is counted once: in a step, as late, or as lost with a reason.
TEST(DeviceStepsPropertyTest, WhatIsInjectedAsLostIsWhatIsCountedAsLost) {
  std::mt19937_64 random(9);
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    DeviceRun run = MakeDeviceRun({.devices = 2, .seed = 3000 + seed});
    std::int64_t in_steps = 0;
    std::int64_t dropped = 0;
    std::int64_t corrupted = 0;
    RecordBatch all = run.all;
    all.kernels.clear();
    for (std::size_t i = 0; i < run.all.kernels.size(); ++i) {
      KernelRecord kernel = run.all.kernels[i];
      switch (random() % 20) {
        case 0:
          ++dropped;  // inside of the collector, which says so
          continue;
        case 1:
          std::swap(kernel.start_ns, kernel.end_ns);
          ++corrupted;
          break;
        default:
          if (run.step_of[i] >= 0) ++in_steps;
      }
      all.kernels.push_back(kernel);
    }
    all.losses = {{.time_ns = run.end_ns, .count = dropped, .where = LossRecord::Where::kDevice}};
    StepBuilder builder({.observed = false});
    builder.Add(all);
    builder.Finish(run.end_ns);
    std::int64_t launches = 0;
    std::int64_t counted_dropped = 0;
    std::int64_t counted_invalid = 0;
    for (const StepTimeline& step : TakeAll(builder)) {
      for (const KernelSum& sum : step.kernels) launches += sum.launches;
      for (const LossRecord& loss : step.losses) {
        (loss.where == LossRecord::Where::kDevice ? counted_dropped : counted_invalid) +=
            loss.count;
      }
    }
    EXPECT_EQ(launches, in_steps);
    EXPECT_EQ(counted_dropped, dropped);
    EXPECT_EQ(counted_invalid, corrupted);
  }
}

// Streams delayed by many steps: what comes after its step has closed is late, never elsewhere.
TEST(DeviceStepsPropertyTest, WhatComesTooLateIsCountedAsLateAndNowhereElse) {
  std::mt19937_64 random(10);
  std::int64_t late_in_all = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    DeviceRun run = MakeDeviceRun({.devices = 1, .streams = 2, .seed = 4000 + seed});
    for (DeviceRun::Arrival& arrival : run.kernels) {
      if (random() % 50 == 0) arrival.at_ns += static_cast<std::int64_t>(random() % 60'000);
    }
    std::stable_sort(run.kernels.begin(), run.kernels.end(),
                     [](const auto& a, const auto& b) { return a.at_ns < b.at_ns; });
    std::int64_t in_steps = 0;
    for (int step : run.step_of) in_steps += step >= 0 ? 1 : 0;
    std::int64_t launches = 0;
    std::int64_t late = 0;
    const std::vector<StepTimeline> steps = Deliver(run, random, 1000);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      for (const auto& [key, sum] : SumsOf(steps[i])) {
        ASSERT_TRUE(run.sums[i].count(key)) << "a kernel of another step";
        ASSERT_LE(sum.first, run.sums[i].at(key).first);
        launches += sum.first;
      }
      late += steps[i].late_records;
    }
    EXPECT_EQ(launches + late, in_steps) << "seed " << seed;
    late_in_all += late;
  }
  EXPECT_GT(late_in_all, 0);
}

}  // namespace
}  // namespace flopledger
