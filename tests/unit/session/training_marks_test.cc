#include "session/training_marks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace flopledger {
namespace {

using testing::ElementsAre;
using testing::Pair;
using enum MarkerRecord::Kind;
using Origin = TrainingMarks::Origin;

struct TrainingMarksTest : testing::Test {
  std::vector<std::pair<MarkerRecord::Kind, std::int64_t>> Steps() {
    RecordBatch batch;
    source->Drain(batch);
    std::vector<std::pair<MarkerRecord::Kind, std::int64_t>> steps;
    for (const MarkerRecord& marker : batch.markers) steps.emplace_back(marker.kind, marker.step);
    return steps;
  }

  ManualClock clock;
  std::shared_ptr<HostSource> source = HostSource::Create({}, &clock, {});
  TrainingMarks marks{source, 128};
};

TEST_F(TrainingMarksTest, StepsAreNumberedOnwardsFromTheLastOne) {
  marks.BeginStep(Origin::kApi, std::nullopt);
  marks.BeginStep(Origin::kApi, 41);
  marks.BeginStep(Origin::kApi, std::nullopt);
  marks.EndStep(Origin::kApi, true);
  EXPECT_THAT(Steps(), ElementsAre(Pair(kStepBegin, 0), Pair(kStepBegin, 41), Pair(kStepBegin, 42),
                                   Pair(kStepFailed, 0)));
}

TEST_F(TrainingMarksTest, RangesMakeTheSameStepsAsCalls) {
  EXPECT_TRUE(marks.BeginStep(Origin::kNvtx, 7));
  marks.EndStep(Origin::kNvtx, false);
  EXPECT_TRUE(marks.BeginStep(Origin::kNvtx, std::nullopt));
  EXPECT_THAT(Steps(), ElementsAre(Pair(kStepBegin, 7), Pair(kStepEnd, 0), Pair(kStepBegin, 8)));
  EXPECT_EQ(marks.ignored(), 0);
}

TEST_F(TrainingMarksTest, AStepOfBothIsCountedOnce) {
  // The first range opens before the API is known to mark steps; from then on ranges are ignored.
  marks.BeginStep(Origin::kNvtx, std::nullopt);
  marks.BeginStep(Origin::kApi, 100);
  marks.EndStep(Origin::kApi, false);
  marks.EndStep(Origin::kNvtx, false);
  EXPECT_FALSE(marks.BeginStep(Origin::kNvtx, std::nullopt));
  marks.BeginStep(Origin::kApi, std::nullopt);
  marks.EndStep(Origin::kNvtx, false);
  marks.EndStep(Origin::kApi, false);
  EXPECT_THAT(Steps(), ElementsAre(Pair(kStepBegin, 0), Pair(kStepFailed, 0), Pair(kStepBegin, 100),
                                   Pair(kStepEnd, 0), Pair(kStepBegin, 101), Pair(kStepEnd, 0)));
  EXPECT_EQ(marks.ignored(), 1);
}

TEST_F(TrainingMarksTest, TokensOfBothAreCountedOnce) {
  const auto useful = [&] {
    RecordBatch batch;
    source->Drain(batch);
    std::int64_t sum = 0;
    for (const TokenRecord& rows : batch.tokens) sum += rows.count * rows.useful_length;
    return sum;
  };
  marks.Tokens(Origin::kNvtx, {.useful = 128});
  marks.Tokens(Origin::kNvtx, {.useful = 128});
  EXPECT_EQ(useful(), 256);
  marks.Tokens(Origin::kApi, {.useful = 64});
  marks.Tokens(Origin::kNvtx, {.useful = 64});
  EXPECT_EQ(useful(), 64);
  EXPECT_EQ(marks.ignored(), 1);
}

TEST_F(TrainingMarksTest, OnlyTheThreadOfTheStepIsInIt) {
  EXPECT_TRUE(marks.OnStepThread());  // nobody has begun one
  std::thread([&] { marks.BeginStep(Origin::kApi, std::nullopt); }).join();
  EXPECT_FALSE(marks.OnStepThread());
  marks.BeginStep(Origin::kApi, std::nullopt);
  EXPECT_TRUE(marks.OnStepThread());
}

}  // namespace
}  // namespace flopledger
