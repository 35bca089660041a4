// The per-subscriber family of CUDA 13.3 and later: taken where the library has it, never mixed
// with the global one.

#include <cupti.h>

#include "unit/collect/cupti/cupti_fixture.h"

namespace flopledger {
namespace {

using ::testing::SizeIs;

class CuptiV2Test : public CuptiFixture {};

TEST_F(CuptiV2Test, CountsThroughItAndCallsNothingOfTheOther) {
  fakecupti_set_version(130300);
  CuptiOptions options = Manual();
  options.link_ops = true;
  CuptiSource& source = Start(options);
  ASSERT_EQ(source.state().reason, "ok") << source.state().text;
  source.PushOp(5, Phase::kForward);
  const std::uint32_t correlation = Launch();
  source.PopOp();
  source.Fence(now_ns());
  const RecordBatch batch = Drain();
  ASSERT_THAT(batch.kernels, SizeIs(1));
  EXPECT_EQ(batch.kernels[0].launch_order, correlation);
  EXPECT_EQ(batch.kernels[0].op, 5u);
  EXPECT_THAT(batch.fences, SizeIs(1));
  source.Stop();
  EXPECT_FALSE(fakecupti_kind_enabled(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  for (const char* function :
       {"cuptiSubscribe", "cuptiActivityRegisterCallbacks", "cuptiActivityEnable",
        "cuptiActivityDisable", "cuptiActivityEnableDriverApi", "cuptiActivityEnableRuntimeApi",
        "cuptiActivitySetAttribute", "cuptiActivityGetNumDroppedRecords", "cuptiGetTimestamp",
        "cuptiActivityPushExternalCorrelationId", "cuptiActivityPopExternalCorrelationId"}) {
    EXPECT_EQ(fakecupti_calls(function), 0u) << function;
  }
  EXPECT_EQ(fakecupti_calls("cuptiActivityRegisterCallbacks_v2"), 1u);
}

TEST_F(CuptiV2Test, WorksBesideAnotherSubscriber) {
  fakecupti_subscribe_by_other(1);
  CuptiSource& source = Start();
  EXPECT_EQ(source.state().reason, "ok");
  Launch();
  EXPECT_THAT(Drain().kernels, SizeIs(1));
}

TEST_F(CuptiV2Test, AnOldDriverLeavesTheGlobalFamily) {
  fakecupti_fail("cuptiSubscribe_v2", 27, -1);
  CuptiSource& source = Start();
  EXPECT_EQ(source.state().reason, "ok");
  Launch();
  EXPECT_THAT(Drain().kernels, SizeIs(1));
  EXPECT_EQ(fakecupti_calls("cuptiActivityRegisterCallbacks"), 1u);
  EXPECT_EQ(fakecupti_calls("cuptiActivityRegisterCallbacks_v2"), 0u);
}

TEST_F(CuptiV2Test, LossesAreCountedThroughItToo) {
  Start();
  fakecupti_drop(3);
  EXPECT_EQ(Lost(Drain(), LossRecord::Reason::kFull), 3);
  fakecupti_fail("cuptiActivityGetNumDroppedRecords_v2", 14, 1);
  EXPECT_EQ(Lost(Drain(), LossRecord::Reason::kUnknownCount), 1);
}

}  // namespace
}  // namespace flopledger
