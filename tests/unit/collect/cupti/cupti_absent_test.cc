// The source of a build without CUPTI's headers: it says so, and everything can be called.

#include <gtest/gtest.h>

#include "collect/cupti/cupti_source.h"

namespace flopledger {
namespace {

TEST(CuptiAbsentTest, SaysNotBuiltAndCountsNothing) {
  EXPECT_FALSE(CuptiIsBuilt());
  const ManualClock clock;
  auto source = CuptiSource::Create({}, &clock, nullptr);
  ASSERT_TRUE(source.has_value());
  const DeviceSourceState state = (*source)->state();
  EXPECT_EQ(state.kind, DeviceSourceState::Kind::kUnavailable);
  EXPECT_EQ(state.reason, "not_built");
  EXPECT_NE(state.text.find("CUPTI_ROOT"), std::string::npos);
  (*source)->PushOp(1, Phase::kForward);
  (*source)->Fence(1);
  (*source)->PopOp();
  RecordBatch batch;
  (*source)->Drain(batch);
  EXPECT_TRUE(batch.kernels.empty() && batch.fences.empty() && batch.losses.empty());
  (*source)->BecomeInert();
  (*source)->Stop();
  EXPECT_TRUE((*source)->devices().empty());
  EXPECT_EQ((*source)->kernels().size(), 0u);
}

TEST(CuptiAbsentTest, RefusesTheSameOptions) {
  const ManualClock clock;
  CuptiOptions options;
  options.buffers = 0;
  auto source = CuptiSource::Create(options, &clock, nullptr);
  ASSERT_FALSE(source.has_value());
  EXPECT_EQ(source.error().message(), "buffers is 0; accepted: 2 to 4096");
}

}  // namespace
}  // namespace flopledger
