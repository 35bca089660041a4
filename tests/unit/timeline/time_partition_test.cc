#include "timeline/time_partition.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "timeline/busy_time.h"

namespace flopledger {
namespace {

using enum ActivityClass;

std::int64_t In(const DeviceTime& time, DeviceState state) { return time.InState(state).ns(); }

TEST(TimePartitionTest, ComputeHidesCommunicationAndCommunicationHidesCopies) {
  const std::vector<ActivityInterval> intervals = {
      {10, 40, kCompute}, {30, 60, kCommunication}, {55, 80, kCopy}, {5, 8, kCopy}};
  const DeviceTime time = PartitionTime(0, 100, intervals, {});
  EXPECT_EQ(In(time, DeviceState::kCompute), 30);
  EXPECT_EQ(In(time, DeviceState::kExposedCommunication), 20);
  EXPECT_EQ(In(time, DeviceState::kExposedCopy), 20 + 3);
  EXPECT_EQ(In(time, DeviceState::kIdle), 27);
  EXPECT_EQ(In(time, DeviceState::kUntracked), 0);
}

TEST(TimePartitionTest, BusyIsTheUnionNotTheSum) {
  // An op inside of another one, two that touch, two on different threads.
  const std::vector<ActivityInterval> intervals = {
      {0, 50, kCompute}, {10, 20, kCompute}, {50, 60, kCompute}, {55, 70, kCompute}};
  EXPECT_EQ(In(PartitionTime(0, 100, intervals, {}), DeviceState::kCompute), 70);
}

TEST(TimePartitionTest, OnlyWhatLiesInTheStepCounts) {
  const std::vector<ActivityInterval> intervals = {
      {-50, 10, kCompute}, {90, 500, kCopy}, {200, 300, kCompute}, {40, 40, kCompute}};
  const DeviceTime time = PartitionTime(0, 100, intervals, {});
  EXPECT_EQ(In(time, DeviceState::kCompute), 10);
  EXPECT_EQ(In(time, DeviceState::kExposedCopy), 10);
  EXPECT_EQ(In(time, DeviceState::kIdle), 80);
}

TEST(TimePartitionTest, TimeIsSplitBySectionToo) {
  const std::vector<ActivityInterval> intervals = {{10, 30, kCompute}, {60, 70, kCompute}};
  const std::vector<SectionChange> sections = {
      {20, Phase::kEval}, {65, Phase::kData}, {65, Phase::kCheckpoint}, {80, Phase::kOther}};
  const DeviceTime time = PartitionTime(0, 100, intervals, sections);
  EXPECT_EQ(time.InSection(Phase::kEval).ns(), 45);
  EXPECT_EQ(time.InSection(Phase::kData).ns(), 0);
  EXPECT_EQ(time.InSection(Phase::kCheckpoint).ns(), 15);
  EXPECT_EQ(time.InSection(Phase::kOther).ns(), 40);
  const auto compute = static_cast<std::size_t>(DeviceState::kCompute);
  EXPECT_EQ(time.by_state_and_section[compute][static_cast<std::size_t>(Phase::kEval)].ns(), 15);
}

TEST(TimePartitionTest, ASectionFromBeforeTheStepHolds) {
  const std::vector<SectionChange> sections = {{-5, Phase::kEval}, {0, Phase::kData}};
  EXPECT_EQ(PartitionTime(0, 10, {}, sections).InSection(Phase::kData).ns(), 10);
}

// A second method: one cell per nanosecond.
TEST(TimePartitionTest, EqualsACellPerNanosecondOnRandomInput) {
  std::mt19937 random(20261129);
  for (int round = 0; round < 300; ++round) {
    const int length = 1 + static_cast<int>(random() % 200);
    std::vector<ActivityInterval> intervals;
    std::vector<int> best(static_cast<std::size_t>(length), 3);
    for (unsigned i = 0, n = random() % 30; i < n; ++i) {
      const int from = static_cast<int>(random() % 260) - 30;
      const int to = from + static_cast<int>(random() % 40);
      const int activity = static_cast<int>(random() % 4);
      intervals.push_back({from, to, static_cast<ActivityClass>(activity)});
      for (int t = std::max(from, 0); activity < 3 && t < std::min(to, length); ++t) {
        best[static_cast<std::size_t>(t)] = std::min(best[static_cast<std::size_t>(t)], activity);
      }
    }
    std::int64_t expected[4] = {};
    for (int state : best) ++expected[state];
    const DeviceTime time = PartitionTime(0, length, intervals, {});
    EXPECT_EQ(In(time, DeviceState::kCompute), expected[0]);
    EXPECT_EQ(In(time, DeviceState::kExposedCommunication), expected[1]);
    EXPECT_EQ(In(time, DeviceState::kExposedCopy), expected[2]);
    EXPECT_EQ(In(time, DeviceState::kIdle), expected[3]);
    // Cut in two and forgotten in between, the parts add up to the whole.
    BusyTime busy(1000);
    for (const ActivityInterval& interval : intervals) busy.Add(interval);
    const int cut = static_cast<int>(random() % static_cast<unsigned>(length + 1));
    const DeviceTime first = busy.Partition(0, cut, {});
    busy.ForgetBefore(cut);
    const DeviceTime second = busy.Partition(cut, length, {});
    for (std::size_t state = 0; state < kDeviceStateCount; ++state) {
      const auto which = static_cast<DeviceState>(state);
      EXPECT_EQ(In(first, which) + In(second, which), In(time, which));
    }
  }
}

TEST(BusyTimeTest, WhatArrivesFarOutOfOrderIsMergedNotLost) {
  // Two streams of 20,000 intervals each, delivered one stream after the other, both backwards.
  BusyTime busy(1 << 20);
  for (std::int64_t i = 20000; i-- > 0;) {
    busy.Add({.start_ns = i * 10, .end_ns = i * 10 + 4, .activity = kCompute});
  }
  for (std::int64_t i = 20000; i-- > 0;) {
    busy.Add({.start_ns = i * 10 + 2, .end_ns = i * 10 + 7, .activity = kCompute});
  }
  const DeviceTime time = busy.Partition(0, 200000, {});
  EXPECT_EQ(In(time, DeviceState::kCompute), 20000 * 7);
  EXPECT_EQ(busy.size(), 20000u);
  busy.ForgetBefore(100000);
  EXPECT_EQ(busy.size(), 10000u);
}

TEST(BusyTimeTest, WhatIsBeforeTheFloorIsForgottenAndWhatExceedsTheLimitIsAnAmount) {
  BusyTime busy(2);
  busy.ForgetBefore(100);
  busy.Add({.start_ns = 10, .end_ns = 90, .activity = kCompute});
  EXPECT_EQ(busy.size(), 0u);
  busy.Add({.start_ns = 90, .end_ns = 110, .activity = kCompute});
  busy.Add({.start_ns = 120, .end_ns = 130, .activity = kCopy});
  busy.Add({.start_ns = 140, .end_ns = 155, .activity = kCopy});
  EXPECT_EQ(busy.TakeDropped().ns(), 15);
  EXPECT_EQ(busy.TakeDropped().ns(), 0);
  EXPECT_EQ(In(busy.Partition(100, 200, {}), DeviceState::kCompute), 10);
}

}  // namespace
}  // namespace flopledger
