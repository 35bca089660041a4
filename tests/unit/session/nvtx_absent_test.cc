// A session of a build without NVTX headers: the part that stands in for the injection, and what
// the session says of it.

#include <gtest/gtest.h>

#include <memory>

#include "base/clock.h"
#include "collect/host_source.h"
#include "session/nvtx_input.h"

namespace flopledger {
namespace {

struct NvtxAbsentTest : testing::Test {
  SystemClock clock;
  std::shared_ptr<HostSource> source = HostSource::Create({}, &clock, {});
  std::shared_ptr<TrainingMarks> marks = std::make_shared<TrainingMarks>(source, 128);
  std::unique_ptr<Log> log = *Log::Create("off", RunIdentity{});
};

TEST_F(NvtxAbsentTest, TheCapabilitySaysThatItIsNotBuilt) {
  NvtxInput input({}, marks);
  const auto said = input.TakeChange(*log);
  ASSERT_TRUE(said.has_value());
  EXPECT_EQ(said->name, "nvtx");
  EXPECT_FALSE(said->available);
  EXPECT_EQ(said->reason, "not_built");
  EXPECT_FALSE(input.TakeChange(*log).has_value()) << "once";
  input.Stop();
  EXPECT_FALSE(input.TakeChange(*log).has_value());
}

TEST_F(NvtxAbsentTest, NotWantedIsSaidEvenSo) {
  NvtxInput input({.enabled = false}, marks);
  EXPECT_EQ(input.TakeChange(*log)->reason, "off");
}

TEST_F(NvtxAbsentTest, ACopyOfNvtxIsRefused) {
  EXPECT_FALSE(AttachNvtxClient([](std::uint32_t) -> const void* { return nullptr; }));
  EXPECT_FALSE(CurrentNvtxState().built);
}

}  // namespace
}  // namespace flopledger
