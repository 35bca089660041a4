#include "cli/playback.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "fakes/fake_run.h"

namespace flopledger::cli {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

/// Steps that end at these times, one after the other from 10 s on.
StepLog LogOf(int rank, const std::vector<std::int64_t>& ends_ns) {
  fakes::FakeRun run;
  StepLog log;
  log.run = run.description();
  log.run.identity.rank = rank;
  std::int64_t start = 10 * kSecond;
  for (const std::int64_t end : ends_ns) {
    StepReport step = run.NextStep();
    step.start_ns = start;
    step.end_ns = end;
    step.wall = DurationNs(end - start);
    step.end_unix_seconds = 1.7e9 + static_cast<double>(end) * 1e-9;
    start = end;
    log.steps.push_back(std::move(step));
  }
  return log;
}

std::unique_ptr<Playback> Play(std::vector<StepLog> logs, double speed, bool loop = false) {
  auto playback = Playback::Create(std::move(logs), {.speed = speed, .loop = loop, .base_port = 0});
  EXPECT_TRUE(playback.has_value());
  return playback.has_value() ? *std::move(playback) : nullptr;
}

TEST(Playback, PublishesAStepWhenItsTimeHasCome) {
  auto playback = Play({LogOf(0, {11 * kSecond, 13 * kSecond})}, 2);
  EXPECT_EQ(playback->PublishDue(500)->ns(), kSecond / 2);
  EXPECT_EQ(playback->published_steps(), 0);
  EXPECT_EQ(playback->PublishDue(500 + kSecond / 2)->ns(), kSecond);
  EXPECT_EQ(playback->published_steps(), 1);
  EXPECT_EQ(playback->PublishDue(500 + 10 * kSecond), std::nullopt);
  EXPECT_EQ(playback->published_steps(), 2);
}

TEST(Playback, RanksKeepTheirOrder) {
  auto playback = Play({LogOf(0, {12 * kSecond}), LogOf(1, {11 * kSecond, 14 * kSecond})}, 1);
  EXPECT_EQ(playback->PublishDue(0)->ns(), kSecond);
  EXPECT_EQ(playback->PublishDue(kSecond)->ns(), kSecond);
  EXPECT_EQ(playback->PublishDue(2 * kSecond)->ns(), 2 * kSecond);
  EXPECT_EQ(playback->published_steps(), 2);
  EXPECT_EQ(playback->addresses().size(), 2U);
}

TEST(Playback, ALoopBeginsAfterTheLastStep) {
  auto playback = Play({LogOf(0, {11 * kSecond, 13 * kSecond})}, 1, /*loop=*/true);
  playback->PublishDue(0);
  // Rounds of 3 s with steps at 1 and 3: by 7 s it is two rounds and one step.
  EXPECT_EQ(playback->PublishDue(7 * kSecond)->ns(), 2 * kSecond);
  EXPECT_EQ(playback->published_steps(), 5);
}

TEST(Playback, AtSpeedZeroAllIsDueAtOnce) {
  auto playback = Play({LogOf(0, {11 * kSecond, 99 * kSecond})}, 0);
  EXPECT_EQ(playback->PublishDue(0), std::nullopt);
  EXPECT_EQ(playback->published_steps(), 2);
}

TEST(Playback, RefusesAnAddressThatOthersReach) {
  std::vector<StepLog> logs;
  logs.push_back(LogOf(0, {11 * kSecond}));
  const auto playback = Playback::Create(std::move(logs), {.address = "0.0.0.0", .base_port = 0});
  ASSERT_FALSE(playback.has_value());
  EXPECT_EQ(playback.error().code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace flopledger::cli
