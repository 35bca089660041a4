// What may go wrong with the library, and the state that each fault ends in.

#include <cupti.h>

#include <algorithm>

#include "unit/collect/cupti/cupti_fixture.h"

namespace flopledger {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;
using Kind = DeviceSourceState::Kind;

// One sentence for the log, saying whose it is.
void ExpectOneSentence(const DeviceSourceState& state) {
  EXPECT_TRUE(state.text.starts_with("device records: ")) << state.text;
  EXPECT_EQ(state.text.find('\n'), std::string::npos);
  EXPECT_LT(state.text.size(), 300u);
}

struct Fault {
  const char* function;
  int code;
  Kind kind;
  const char* reason;
};

class CuptiFaultMatrix : public CuptiFixture, public ::testing::WithParamInterface<Fault> {};

TEST_P(CuptiFaultMatrix, EndsInAStatedState) {
  const Fault& fault = GetParam();
  fakecupti_fail(fault.function, fault.code, -1);
  CuptiSource& source = Start();
  EXPECT_EQ(source.state().kind, fault.kind);
  EXPECT_EQ(source.state().reason, fault.reason);
  ExpectOneSentence(source.state());
  EXPECT_THAT(source.state().text, HasSubstr(std::to_string(fault.code)));
  const std::string text = source.state().text;
  // The training loop goes on, and nothing is said again.
  for (int step = 0; step < 20; ++step) {
    source.PushOp(1, Phase::kForward);
    Launch();
    source.PopOp();
    source.Fence(now_ns());
    Advance(kSecond);
    EXPECT_TRUE(Drain().kernels.empty());
  }
  EXPECT_EQ(source.state().text, text);
  source.Stop();
  EXPECT_EQ(fakecupti_calls("cuptiFinalize"), 0u);
}

INSTANTIATE_TEST_SUITE_P(
    Codes, CuptiFaultMatrix,
    ::testing::Values(Fault{"cuptiActivityEnable", 8, Kind::kUnavailable, "out_of_memory"},
                      Fault{"cuptiActivityEnable", 14, Kind::kUnavailable, "not_compatible"},
                      Fault{"cuptiActivityEnable", 15, Kind::kUnavailable, "not_initialized"},
                      Fault{"cuptiActivityEnable", 26, Kind::kWaiting, "hardware_busy"},
                      Fault{"cuptiActivityEnable", 27, Kind::kUnavailable, "not_supported"},
                      Fault{"cuptiActivityEnable", 33, Kind::kUnavailable, "not_supported"},
                      Fault{"cuptiActivityEnable", 35, Kind::kUnavailable, "permission"},
                      Fault{"cuptiActivityEnable", 39, Kind::kWaiting, "other_tool"},
                      Fault{"cuptiActivityEnable", 999, Kind::kUnavailable, "not_initialized"},
                      Fault{"cuptiActivityEnable", 7, Kind::kUnavailable, "library_error"},
                      Fault{"cuptiActivityRegisterCallbacks", 14, Kind::kUnavailable,
                            "not_compatible"},
                      Fault{"cuptiSubscribe", 15, Kind::kUnavailable, "not_initialized"},
                      Fault{"cuptiSubscribe", 39, Kind::kWaiting, "other_tool"},
                      Fault{"cuptiSubscribe", 999, Kind::kUnavailable, "not_initialized"},
                      Fault{"cuptiGetVersion", 999, Kind::kUnavailable, "not_initialized"}));

class CuptiFaultTest : public CuptiFixture {
 protected:
  /// A step with a launch; whether its records come is the library's affair.
  RecordBatch Step() {
    Launch();
    source_->Fence(now_ns());
    Advance(2 * kSecond);
    return Drain();
  }
};

TEST_F(CuptiFaultTest, AnOldLibraryIsRefusedWithTheAcceptedOnes) {
  fakecupti_set_version(17);
  CuptiSource& source = Start();
  EXPECT_EQ(source.state().kind, Kind::kUnavailable);
  EXPECT_EQ(source.state().reason, "too_old");
  EXPECT_EQ(source.state().text,
            "device records: libcupti has API version 17; accepted: from 18 on (CUDA 11.8)");
  EXPECT_EQ(fakecupti_calls("cuptiActivityEnable"), 0u);
}

TEST_F(CuptiFaultTest, KindsThatAreRefusedDoNotStopTheKernels) {
  fakecupti_fail("cuptiActivityEnable:17", 1, -1);  // OVERHEAD
  fakecupti_fail("cuptiActivityEnable:22", 1, -1);  // MEMCPY2
  CuptiSource& source = Start();
  EXPECT_EQ(source.state().reason, "ok");
  EXPECT_THAT(Step().kernels, SizeIs(1));
}

TEST_F(CuptiFaultTest, WithoutFencesItCountsAndSaysSo) {
  for (const char* function : {"cuptiActivityEnable:39", "cuptiActivityEnableDriverApi"}) {
    fakecupti_reset();
    Advance(0);
    fakecupti_fail(function, 27, -1);
    CuptiSource& source = Start();
    EXPECT_EQ(source.state().kind, Kind::kCounting);
    EXPECT_EQ(source.state().reason, "no_fence");
    ExpectOneSentence(source.state());
    const RecordBatch batch = Step();
    EXPECT_THAT(batch.kernels, SizeIs(1));
    EXPECT_TRUE(batch.fences.empty());
    EXPECT_EQ(source.counts().fences_set, 0);
    source_.reset();
  }
}

// C38: busy three times, then free; tried again after 1, 2 and 4 s: 7 s of steps have no records.
TEST_F(CuptiFaultTest, BusyHardwareIsTriedAgainAfterOneTwoFourSeconds) {
  fakecupti_fail("cuptiActivityEnable:10", 26, 3);
  CuptiSource& source = Start();
  std::vector<int> seconds_without;
  for (int second = 0; second < 12; ++second) {
    Drain();
    if (source.state().kind == Kind::kWaiting) seconds_without.push_back(second);
    Advance(kSecond);
  }
  EXPECT_THAT(seconds_without, ::testing::ElementsAre(0, 1, 2, 3, 4, 5, 6));
  EXPECT_EQ(fakecupti_calls("cuptiActivityRegisterCallbacks"), 4u) << "no more tries than four";
  EXPECT_EQ(source.state().reason, "ok");
  EXPECT_THAT(Step().kernels, SizeIs(1));
}

// C37: no permission. Training goes on, the source says why, once.
TEST_F(CuptiFaultTest, NoPermissionIsSaidOnceAndNeverTriedAgain) {
  fakecupti_fail("cuptiActivityEnable:10", 35, -1);
  CuptiSource& source = Start();
  EXPECT_EQ(source.state().reason, "permission");
  const std::uint64_t calls = fakecupti_calls(nullptr);
  for (int step = 0; step < 100; ++step) Step();
  const std::uint64_t launches = 0;  // the double counts none of them as calls of its API
  EXPECT_EQ(fakecupti_calls(nullptr) - calls, launches);
}

TEST_F(CuptiFaultTest, TheSubscriptionIsTriedAndGivenBack) {
  Start();
  EXPECT_EQ(fakecupti_calls("cuptiSubscribe"), 1u);
  EXPECT_EQ(fakecupti_calls("cuptiUnsubscribe"), 1u);
}

TEST_F(CuptiFaultTest, WaitsUntilAnotherToolHasLeft) {
  fakecupti_subscribe_by_other(1);
  CuptiSource& source = Start();
  EXPECT_EQ(source.state().kind, Kind::kWaiting);
  EXPECT_EQ(source.state().reason, "other_tool");
  for (int i = 0; i < 100; ++i) Step();
  EXPECT_EQ(fakecupti_calls("cuptiActivityRegisterCallbacks"), 0u) << "never stolen";
  fakecupti_subscribe_by_other(0);
  Advance(64 * kSecond);
  Drain();
  EXPECT_EQ(source.state().reason, "ok");
  EXPECT_THAT(Step().kernels, SizeIs(1));
}

TEST_F(CuptiFaultTest, AForeignFinalizeIsMendedOnce) {
  CuptiSource& source = Start();
  EXPECT_THAT(Step().kernels, SizeIs(1));
  fakecupti_finalize_by_other();
  int steps = 0;
  while (source.counts().registrations == 1 && steps < 100) {
    Step();
    ++steps;
  }
  EXPECT_EQ(steps, 8) << "as many silent fences; 16 s, more than ten";
  EXPECT_EQ(source.state().kind, Kind::kCounting);
  EXPECT_THAT(Step().kernels, SizeIs(1)) << "counts again";

  fakecupti_finalize_by_other();
  for (int i = 0; i < 9; ++i) Step();
  EXPECT_EQ(source.state().kind, Kind::kDisabled);
  EXPECT_EQ(source.state().reason, "taken_over");
  ExpectOneSentence(source.state());
  const std::uint64_t calls = fakecupti_calls(nullptr);
  for (int i = 0; i < 50; ++i) Step();
  source.Stop();
  EXPECT_EQ(fakecupti_calls(nullptr), calls) << "the library is another tool's now";
}

TEST_F(CuptiFaultTest, FewFencesOrLittleTimeIsNoSilence) {
  CuptiSource& source = Start();
  Step();
  fakecupti_finalize_by_other();
  for (int i = 0; i < 1000; ++i) {  // many fences in 9 s
    source.Fence(now_ns());
    Advance(9 * kSecond / 1000);
    Drain();
  }
  EXPECT_EQ(source.counts().registrations, 1);
  source_.reset();

  CuptiSource& slow = Start();
  Step();
  fakecupti_finalize_by_other();
  for (int i = 0; i < 7; ++i) {  // seven fences in an hour
    slow.Fence(now_ns());
    Advance(600 * kSecond);
    Drain();
  }
  EXPECT_EQ(slow.counts().registrations, 1);
}

// A process that trains on its CPU beside a GPU: the driver traces nothing before its first use.
TEST_F(CuptiFaultTest, NoFenceEverIsNoSilence) {
  CuptiSource& source = Start();
  fakecupti_finalize_by_other();
  for (int i = 0; i < 50; ++i) Step();
  EXPECT_EQ(source.counts().registrations, 1);
  EXPECT_EQ(source.state().reason, "ok");
}

TEST_F(CuptiFaultTest, AProfilerThatTookTheCallbacksIsLeftToFinish) {
  CuptiSource& source = Start();
  Step();
  fakecupti_register_by_other();
  fakecupti_subscribe_by_other(1);
  for (int i = 0; i < 20; ++i) Step();
  EXPECT_EQ(source.state().kind, Kind::kWaiting);
  EXPECT_EQ(source.state().reason, "other_tool");
  EXPECT_EQ(source.counts().registrations, 1);
  fakecupti_subscribe_by_other(0);
  for (int i = 0; i < 6; ++i) Step();
  EXPECT_EQ(source.counts().registrations, 2);
  EXPECT_EQ(source.state().kind, Kind::kCounting);
  EXPECT_THAT(Step().kernels, SizeIs(1));
}

TEST_F(CuptiFaultTest, FlushesThatFailEndInAState) {
  CuptiSource& source = Start();
  fakecupti_fail("cuptiActivityFlushAll", 999, -1);
  for (int i = 0; i < 40; ++i) Step();
  EXPECT_EQ(source.state().kind, Kind::kDisabled);
  EXPECT_EQ(source.state().reason, "taken_over");
  EXPECT_EQ(source.counts().registrations, 2);
}

TEST_F(CuptiFaultTest, DroppedRecordsAreCounted) {
  Start();
  fakecupti_drop(1500);
  const RecordBatch batch = Step();
  EXPECT_EQ(Lost(batch, LossRecord::Reason::kFull), 1500);
  EXPECT_EQ(source_->counts().dropped_records, 1500);
  EXPECT_TRUE(Step().losses.empty()) << "once";
}

TEST_F(CuptiFaultTest, AnUnansweredDropQueryIsNotZero) {
  Start();
  fakecupti_fail("cuptiActivityGetNumDroppedRecords", 14, 1);
  const RecordBatch batch = Step();
  EXPECT_EQ(Lost(batch, LossRecord::Reason::kUnknownCount), 1);
  EXPECT_EQ(Lost(batch, LossRecord::Reason::kFull), 0);
  EXPECT_TRUE(Step().losses.empty());
}

TEST_F(CuptiFaultTest, ABufferThatCannotBeWalkedLosesItsRest) {
  Start();
  fakecupti_set_records_per_buffer(3);
  const std::uint32_t nonsense[4] = {0x7FFFFF, 1, 2, 3};
  fakecupti_kernel kernel = Kernel(1);
  fakecupti_add_kernel(&kernel);
  fakecupti_add_raw(nonsense, sizeof(nonsense));
  fakecupti_add_kernel(&kernel);                              // behind it: lost with it
  for (int i = 0; i < 3; ++i) fakecupti_add_kernel(&kernel);  // the next buffer
  const RecordBatch batch = Drain();
  EXPECT_THAT(batch.kernels, SizeIs(4));
  EXPECT_EQ(Lost(batch, LossRecord::Reason::kUnknownCount), 1);
}

// ---- times

TEST_F(CuptiFaultTest, TimesThatCannotBeAreLostInTheStepThatLaunchedThem) {
  CuptiSource& source = Start();
  const std::int64_t boundary = now_ns();
  source.Fence(boundary);
  Advance(kSecond);
  fakecupti_kernel untimed = Kernel(fakecupti_launch());
  untimed.start = untimed.end = 0;
  fakecupti_add_kernel(&untimed);
  fakecupti_kernel backward = Kernel(fakecupti_launch());
  std::swap(backward.start, backward.end);
  fakecupti_add_kernel(&backward);
  fakecupti_kernel early = Kernel(fakecupti_launch());  // a second and more before its step
  early.start = Stamp(boundary - kSecond - 1);
  fakecupti_add_kernel(&early);
  fakecupti_kernel late = Kernel(fakecupti_launch());  // more than a second from now
  late.end = Stamp(now_ns() + kSecond + 1);
  fakecupti_add_kernel(&late);
  fakecupti_kernel just = Kernel(fakecupti_launch());  // within both
  just.start = Stamp(boundary - kSecond);
  just.end = Stamp(now_ns() + kSecond);
  fakecupti_add_kernel(&just);
  fakecupti_kernel instant = Kernel(fakecupti_launch(), 0);  // shorter than the clock's tick
  fakecupti_add_kernel(&instant);
  const RecordBatch batch = Drain();
  EXPECT_THAT(batch.kernels, SizeIs(2));
  ASSERT_THAT(batch.losses, SizeIs(1));
  EXPECT_EQ(batch.losses[0].reason, LossRecord::Reason::kInvalidTime);
  EXPECT_EQ(batch.losses[0].count, 4);
  EXPECT_EQ(batch.losses[0].time_ns, boundary);
}

TEST_F(CuptiFaultTest, AnUnfinishedKernelComesWhenItIsFinished) {
  Start();
  fakecupti_kernel running = Kernel(fakecupti_launch());
  const std::uint64_t end = running.end;
  running.end = 0;
  fakecupti_add_kernel(&running);
  EXPECT_TRUE(Drain().kernels.empty()) << "its buffer is withheld";
  Advance(kSecond);
  fakecupti_finish(running.correlation, end);
  const RecordBatch batch = Drain();
  ASSERT_THAT(batch.kernels, SizeIs(1));
  EXPECT_EQ(batch.kernels[0].end_ns - batch.kernels[0].start_ns, 1000);
  EXPECT_TRUE(batch.losses.empty());
}

TEST_F(CuptiFaultTest, AKernelThatAnotherToolFlushedUnfinishedIsAGap) {
  Start();
  fakecupti_kernel running = Kernel(fakecupti_launch());
  running.end = 0;
  fakecupti_add_kernel(&running);
  fakecupti_flush_forced();
  const RecordBatch batch = Drain();
  EXPECT_TRUE(batch.kernels.empty());
  EXPECT_EQ(Lost(batch, LossRecord::Reason::kInvalidTime), 1);
}

class CuptiClockStepTest : public CuptiFaultTest, public ::testing::WithParamInterface<int> {};

TEST_P(CuptiClockStepTest, IsReportedAndRecordsOfBothSidesAreRight) {
  const std::int64_t jump = GetParam() * 3600 * kSecond;
  Start();
  Drain();
  const std::int64_t before_ns = now_ns();
  const fakecupti_kernel before = Kernel(fakecupti_launch());
  fakecupti_add_kernel(&before);
  Advance(2 * kSecond);
  fakecupti_step_clock(jump);
  fakecupti_kernel after = Kernel(fakecupti_launch());
  const std::int64_t after_ns = now_ns();
  after.start += static_cast<std::uint64_t>(jump);
  after.end += static_cast<std::uint64_t>(jump);
  fakecupti_add_kernel(&after);
  const RecordBatch batch = Drain();
  ASSERT_THAT(batch.clock_steps, SizeIs(1));
  EXPECT_EQ(batch.clock_steps[0].jump_ns, jump);
  EXPECT_EQ(batch.clock_steps[0].time_ns, now_ns());
  ASSERT_THAT(batch.kernels, SizeIs(2));
  EXPECT_EQ(batch.kernels[0].start_ns, before_ns);
  EXPECT_EQ(batch.kernels[1].start_ns, after_ns);
  EXPECT_TRUE(batch.losses.empty());
  EXPECT_TRUE(Step().clock_steps.empty());
}

INSTANTIATE_TEST_SUITE_P(Directions, CuptiClockStepTest, ::testing::Values(-1, 1));

TEST_F(CuptiFaultTest, ASlewIsNoStep) {
  Start();
  for (int i = 0; i < 50; ++i) {
    fakecupti_step_clock(100'000);  // 0.1 ms a drain: 5 ms in sum
    const RecordBatch batch = Step();
    EXPECT_TRUE(batch.clock_steps.empty());
    EXPECT_THAT(batch.kernels, SizeIs(1));
  }
}

// The record-count hazard: after many records the library's stamps go bad for good.
TEST_F(CuptiFaultTest, BadTimestampsAreMendedOnceThenEndTheSource) {
  CuptiSource& source = Start();
  auto run = [&](int kernels, int backward) {
    RecordBatch batch;
    for (int i = 0; i < kernels; ++i) {
      fakecupti_kernel kernel = Kernel(fakecupti_launch());
      if (i < backward) kernel.end = kernel.start - 1;
      fakecupti_add_kernel(&kernel);
      if (i % 500 == 499) source.Drain(batch);
    }
    source.Drain(batch);
    return batch;
  };
  EXPECT_EQ(Lost(run(10'000, 99), LossRecord::Reason::kInvalidTime), 99);
  EXPECT_EQ(fakecupti_calls("cuptiActivityDisable"), 0u) << "less than one in a hundred";
  run(10'000, 100);
  EXPECT_EQ(fakecupti_calls("cuptiActivityDisable"), 1u) << "the kind is switched off and on";
  EXPECT_EQ(source.state().kind, Kind::kCounting);
  run(10'000, 100);
  EXPECT_EQ(source.state().kind, Kind::kDisabled);
  EXPECT_EQ(source.state().reason, "bad_timestamps");
  ExpectOneSentence(source.state());
  EXPECT_FALSE(fakecupti_kind_enabled(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
}

TEST_F(CuptiFaultTest, StopDoesNotWaitForALibraryThatHangs) {
  CuptiOptions options = Manual();
  options.flush_interval_ms = 1;
  CuptiSource& source = Start(options);
  fakecupti_block_flush(1);
  const std::uint64_t flushes = fakecupti_calls("cuptiActivityFlushAll");
  while (fakecupti_calls("cuptiActivityFlushAll") == flushes) source.Fence(now_ns());
  source.Stop();  // 2 s; the test's own limit ends it if it waits for ever
  EXPECT_EQ(source.state().reason, "stopped");
  source_.reset();  // what the thread inside still uses is kept
  const std::uint64_t before = fakecupti_calls("cuptiActivityGetNumDroppedRecords");
  fakecupti_block_flush(0);
  while (fakecupti_calls("cuptiActivityGetNumDroppedRecords") == before) {
  }
}

}  // namespace
}  // namespace flopledger
