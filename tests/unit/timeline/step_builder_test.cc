#include "timeline/step_builder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

namespace flopledger {
namespace {

MarkerRecord Begin(std::int64_t time_ns, std::int64_t step) {
  return {.time_ns = time_ns, .step = step, .kind = MarkerRecord::Kind::kStepBegin};
}
MarkerRecord End(std::int64_t time_ns, bool failed = false) {
  return {.time_ns = time_ns,
          .kind = failed ? MarkerRecord::Kind::kStepFailed : MarkerRecord::Kind::kStepEnd};
}
MarkerRecord Section(std::int64_t time_ns, Phase phase, bool begin) {
  return {.time_ns = time_ns,
          .kind = begin ? MarkerRecord::Kind::kSectionBegin : MarkerRecord::Kind::kSectionEnd,
          .phase = phase};
}
OpRecord Op(std::int64_t start_ns, std::int64_t end_ns, SignatureId signature = 1,
            Phase phase = Phase::kForward) {
  return {.start_ns = start_ns,
          .end_ns = end_ns,
          .self_ns = end_ns - start_ns,
          .signature = signature,
          .device = 0,
          .phase = phase,
          .op_class = OpClass::kMatmul};
}

std::vector<StepTimeline> TakeAll(StepBuilder& builder) {
  std::vector<StepTimeline> steps;
  while (auto step = builder.Take()) steps.push_back(std::move(*step));
  return steps;
}

TEST(StepBuilderTest, AStepIsContiguousFromBoundaryToBoundary) {
  StepBuilder builder({.session_start_ns = 40});
  RecordBatch batch;
  batch.markers = {Begin(100, 0), End(180), Begin(200, 1), End(290), Begin(300, 2), End(390)};
  builder.Add(batch);
  EXPECT_TRUE(TakeAll(builder).empty()) << "its last ops may still be on their way";
  builder.Add({});
  std::vector<StepTimeline> steps = TakeAll(builder);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].start_ns, 100);
  EXPECT_EQ(steps[0].end_ns, 200) << "the time after the exit belongs to the step";
  EXPECT_EQ(steps[0].excluded_before.ns(), 60);
  EXPECT_EQ(steps[0].closed_by, "next_boundary");
  EXPECT_EQ(steps[1].excluded_before.ns(), 0);
  EXPECT_EQ(builder.Finish(450).ns(), 60);
  steps = TakeAll(builder);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].end_ns, 390);
  EXPECT_EQ(steps[0].closed_by, "exit");
  EXPECT_TRUE(steps[0].complete);
}

TEST(StepBuilderTest, AStepThatRaisesOrIsCutOffIsIncomplete) {
  StepBuilder builder({});
  RecordBatch batch;
  batch.markers = {Begin(0, 0), End(50, true), Begin(100, 1)};
  builder.Add(batch);
  builder.Finish(130);
  const std::vector<StepTimeline> steps = TakeAll(builder);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_FALSE(steps[0].complete);
  EXPECT_EQ(steps[0].closed_by, "exception");
  EXPECT_EQ(steps[0].end_ns, 100);
  EXPECT_FALSE(steps[1].complete);
  EXPECT_EQ(steps[1].closed_by, "close");
  EXPECT_EQ(steps[1].end_ns, 130);
}

TEST(StepBuilderTest, AnOpThatArrivesAfterItsStepClosedIsCountedAsLate) {
  StepBuilder builder({});
  RecordBatch batch;
  batch.markers = {Begin(100, 0), Begin(200, 1)};
  batch.ops = {Op(50, 60)};  // before the first boundary: in no step, and not late
  builder.Add(batch);
  RecordBatch second;
  second.ops = {Op(150, 160)};  // in time: the boundary came in the batch before
  builder.Add(second);
  std::vector<StepTimeline> steps = TakeAll(builder);
  ASSERT_EQ(steps.size(), 1u);
  ASSERT_EQ(steps[0].ops.size(), 1u);
  RecordBatch third;
  third.ops = {Op(160, 170), Op(210, 220)};
  builder.Add(third);
  builder.Finish(300);
  steps = TakeAll(builder);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].late_records, 1);
  ASSERT_EQ(steps[0].ops.size(), 1u);
  EXPECT_EQ(steps[0].ops[0].launches, 1);
}

TEST(StepBuilderTest, SectionsNameForwardOpsAndSurviveABoundary) {
  StepBuilder builder({});
  RecordBatch batch;
  batch.markers = {Begin(0, 0),
                   Section(20, Phase::kOptimizer, true),
                   Section(30, Phase::kOptimizer, false),
                   Section(80, Phase::kEval, true),
                   Begin(100, 1),
                   Section(120, Phase::kEval, false)};
  batch.ops = {Op(10, 15), Op(22, 25),   Op(26, 28, 1, Phase::kBackward),
               Op(85, 90), Op(110, 115), Op(130, 140)};
  builder.Add(batch);
  builder.Finish(200);
  const std::vector<StepTimeline> steps = TakeAll(builder);
  ASSERT_EQ(steps.size(), 2u);
  std::map<Phase, std::int64_t> launches;
  for (const OpSum& sum : steps[0].ops) launches[sum.phase] += sum.launches;
  EXPECT_EQ(launches[Phase::kForward], 1);
  EXPECT_EQ(launches[Phase::kOptimizer], 1);
  EXPECT_EQ(launches[Phase::kBackward], 1) << "evidence beats the section";
  EXPECT_EQ(launches[Phase::kEval], 1);
  EXPECT_EQ(steps[0].devices[0].InSection(Phase::kEval).ns(), 20);
  EXPECT_EQ(steps[1].devices[0].InSection(Phase::kEval).ns(), 20);
  launches.clear();
  for (const OpSum& sum : steps[1].ops) launches[sum.phase] += sum.launches;
  EXPECT_EQ(launches[Phase::kEval], 1);
  EXPECT_EQ(launches[Phase::kForward], 1);
}

TEST(StepBuilderTest, AnExceptionEndsTheSectionsThatItJumpedOutOf) {
  StepBuilder builder({});
  RecordBatch batch;
  batch.markers = {Section(-10, Phase::kEval, true), Begin(0, 0),
                   Section(20, Phase::kOptimizer, true), End(50, true), Begin(100, 1)};
  builder.Add(batch);
  builder.Finish(200);
  const std::vector<StepTimeline> steps = TakeAll(builder);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].devices[0].InSection(Phase::kOptimizer).ns(), 30);
  EXPECT_EQ(steps[1].devices[0].InSection(Phase::kOptimizer).ns(), 0);
  EXPECT_EQ(steps[1].devices[0].InSection(Phase::kEval).ns(), 100) << "it began outside";
}

TEST(StepBuilderTest, AnOpOverABoundaryIsCountedOnceAndOccupiesBothSteps) {
  StepBuilder builder({});
  RecordBatch batch;
  batch.markers = {Begin(0, 0), Begin(100, 1), Begin(200, 2)};
  batch.ops = {Op(90, 130)};
  builder.Add(batch);
  builder.Finish(200);
  const std::vector<StepTimeline> steps = TakeAll(builder);
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].ops.size(), 1u);
  EXPECT_TRUE(steps[1].ops.empty());
  EXPECT_EQ(steps[0].devices[0].InState(DeviceState::kCompute).ns(), 10);
  EXPECT_EQ(steps[1].devices[0].InState(DeviceState::kCompute).ns(), 30);
}

TEST(StepBuilderTest, ImpossibleTimesAreLossesNotNumbers) {
  StepBuilder builder({});
  RecordBatch batch;
  batch.markers = {Begin(0, 0)};
  batch.ops = {Op(50, 40)};
  OpRecord longer_inside = Op(10, 20);
  longer_inside.self_ns = 11;
  batch.ops.push_back(longer_inside);
  builder.Add(batch);
  builder.Finish(100);
  const std::vector<StepTimeline> steps = TakeAll(builder);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_TRUE(steps[0].ops.empty());
  std::int64_t lost = 0;
  for (const LossRecord& loss : steps[0].losses) {
    EXPECT_EQ(loss.reason, LossRecord::Reason::kInvalidTime);
    lost += loss.count;
  }
  EXPECT_EQ(lost, 2);
}

TEST(StepBuilderTest, LossesAddUpInsteadOfPilingUp) {
  StepBuilder builder({});
  RecordBatch batch;
  batch.losses = {{.count = 2, .where = LossRecord::Where::kHostRing}};
  for (int i = 0; i < 1000; ++i) builder.Add(batch);  // before the first step
  batch.markers = {Begin(0, 0)};
  builder.Add(batch);
  batch.markers.clear();
  for (int i = 0; i < 1000; ++i) builder.Add(batch);  // inside of it
  builder.Finish(100);
  const std::vector<StepTimeline> steps = TakeAll(builder);
  ASSERT_EQ(steps.size(), 1u);
  ASSERT_EQ(steps[0].losses.size(), 1u);
  EXPECT_EQ(steps[0].losses[0].count, 2 * 2001);
}

TEST(StepBuilderTest, LostMarksMakeTheDeclarationIncomplete) {
  StepBuilder builder({});
  RecordBatch batch;
  batch.markers = {Begin(0, 0)};
  batch.losses = {{.time_ns = 1, .count = 3, .where = LossRecord::Where::kMarkerRing}};
  builder.Add(batch);
  builder.Finish(100);
  const std::vector<StepTimeline> steps = TakeAll(builder);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_TRUE(steps[0].declaration_lost);
  ASSERT_EQ(steps[0].losses.size(), 1u);
  EXPECT_EQ(steps[0].losses[0].count, 3);
}

TEST(StepBuilderTest, WithoutAnObserverTimeIsUntrackedNotIdle) {
  StepBuilder builder({.observed = false});
  RecordBatch batch;
  batch.markers = {Begin(0, 0), Section(10, Phase::kEval, true)};
  builder.Add(batch);
  builder.Finish(100);
  const std::vector<StepTimeline> steps = TakeAll(builder);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].devices[0].InState(DeviceState::kUntracked).ns(), 100);
  EXPECT_EQ(steps[0].devices[0].InSection(Phase::kEval).ns(), 90);
}

TEST(StepBuilderTest, AStepInWhichNothingWasSeenIsUntrackedToo) {
  StepBuilder builder({});  // an observer was promised
  RecordBatch batch;
  batch.markers = {Begin(0, 0), Begin(100, 1), Begin(200, 2)};
  batch.ops = {Op(110, 120)};
  builder.Add(batch);
  builder.Finish(200);
  const std::vector<StepTimeline> steps = TakeAll(builder);
  ASSERT_EQ(steps.size(), 3u);
  EXPECT_EQ(steps[0].devices[0].InState(DeviceState::kUntracked).ns(), 100);
  EXPECT_EQ(steps[1].devices[0].InState(DeviceState::kUntracked).ns(), 0);
  EXPECT_EQ(steps[1].devices[0].InState(DeviceState::kIdle).ns(), 90);
}

TEST(StepBuilderTest, TooManyIntervalsBecomeUntrackedTimeAndNothingGrows) {
  StepBuilder builder({.interval_limit = 64});
  RecordBatch batch;
  batch.markers = {Begin(0, 0)};
  for (int i = 0; i < 200; ++i) batch.ops.push_back(Op(i * 10, i * 10 + 5));
  builder.Add(batch);
  builder.Finish(2000);
  const std::vector<StepTimeline> steps = TakeAll(builder);
  ASSERT_EQ(steps.size(), 1u);
  const DeviceTime& device = steps[0].devices[0];
  EXPECT_EQ(device.InState(DeviceState::kCompute).ns(), 64 * 5);
  EXPECT_EQ(device.InState(DeviceState::kUntracked).ns(), 136 * 5);
  EXPECT_EQ(device.InState(DeviceState::kIdle).ns(), 1000);
  EXPECT_EQ(steps[0].ops[0].launches, 200) << "sums need no intervals";
}

bool SameBooks(const StepTimeline& a, const StepTimeline& b) {
  if (a.ops.size() != b.ops.size()) return false;
  for (std::size_t i = 0; i < a.ops.size(); ++i) {
    if (a.ops[i].launches != b.ops[i].launches || a.ops[i].phase != b.ops[i].phase ||
        a.ops[i].self_time != b.ops[i].self_time) {
      return false;
    }
  }
  return a.devices[0].by_state_and_section == b.devices[0].by_state_and_section &&
         a.start_ns == b.start_ns && a.end_ns == b.end_ns && a.tokens.size() == b.tokens.size();
}

// Steps of 100 ns each with ops, tokens and a section.
RecordBatch SixRandomSteps(std::mt19937& random) {
  RecordBatch all;
  std::int64_t time = 0;
  for (int step = 0; step < 6; ++step) {
    all.markers.push_back(Begin(time, step));
    for (unsigned i = 0, n = random() % 20; i < n; ++i) {
      all.ops.push_back(Op(time + 1 + static_cast<std::int64_t>(random() % 80), time + 90,
                           1 + random() % 3, static_cast<Phase>(random() % 3)));
      all.tokens.push_back({.time_ns = time + 5, .count = 1, .length = 8, .useful_length = 8});
    }
    all.markers.push_back(Section(time + 20, Phase::kEval, true));
    all.markers.push_back(Section(time + 40, Phase::kEval, false));
    all.markers.push_back(End(time + 95));
    time += 100;
  }
  return all;
}

TEST(StepBuilderTest, TheOrderAndTheCutsOfDeliveryChangeNothing) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    const RecordBatch all = SixRandomSteps(random);
    const std::int64_t time = 600;
    StepBuilder straight({});
    straight.Add(all);
    straight.Finish(time);
    const std::vector<StepTimeline> expected = TakeAll(straight);
    ASSERT_EQ(expected.size(), 6u);

    RecordBatch shuffled = all;
    std::shuffle(shuffled.ops.begin(), shuffled.ops.end(), random);
    std::shuffle(shuffled.markers.begin(), shuffled.markers.end(), random);
    std::shuffle(shuffled.tokens.begin(), shuffled.tokens.end(), random);
    StepBuilder permuted({});
    permuted.Add(shuffled);
    permuted.Finish(time);
    const std::vector<StepTimeline> actual = TakeAll(permuted);

    // A cut after every boundary, ops first, as a source delivers them.
    StepBuilder split({});
    std::vector<StepTimeline> pieces;
    for (std::int64_t at = 0; at < time; at += 100) {
      RecordBatch piece;
      for (const OpRecord& op : all.ops) {
        if (op.start_ns >= at - 50 && op.start_ns < at + 50) piece.ops.push_back(op);
      }
      for (const MarkerRecord& marker : all.markers) {
        if (marker.time_ns >= at - 50 && marker.time_ns < at + 50) piece.markers.push_back(marker);
      }
      for (const TokenRecord& token : all.tokens) {
        if (token.time_ns >= at - 50 && token.time_ns < at + 50) piece.tokens.push_back(token);
      }
      split.Add(piece);
      while (auto step = split.Take()) pieces.push_back(std::move(*step));
    }
    RecordBatch rest;
    for (const OpRecord& op : all.ops) {
      if (op.start_ns >= time - 50) rest.ops.push_back(op);
    }
    for (const MarkerRecord& marker : all.markers) {
      if (marker.time_ns >= time - 50) rest.markers.push_back(marker);
    }
    split.Add(rest);
    split.Finish(time);
    while (auto step = split.Take()) pieces.push_back(std::move(*step));
    ASSERT_EQ(actual.size(), 6u);
    ASSERT_EQ(pieces.size(), 6u);
    for (std::size_t i = 0; i < 6; ++i) {
      EXPECT_TRUE(SameBooks(expected[i], actual[i])) << "round " << round << " step " << i;
      EXPECT_TRUE(SameBooks(expected[i], pieces[i])) << "round " << round << " step " << i;
      std::int64_t sum = 0;
      for (std::size_t state = 0; state < kDeviceStateCount; ++state) {
        sum += expected[i].devices[0].InState(static_cast<DeviceState>(state)).ns();
      }
      EXPECT_EQ(sum, expected[i].wall().ns());
    }
  }
}

}  // namespace
}  // namespace flopledger
