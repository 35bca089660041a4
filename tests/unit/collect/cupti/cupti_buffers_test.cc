// The life of the activity buffers: split, shuffled, late, refused, kept; and what that costs.

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <thread>
#include <vector>

#include "collect/cupti/activity_callbacks.h"
#include "collect/cupti/activity_decoder.h"
#include "collect/cupti/activity_flusher.h"
#include "collect/cupti/buffer_pool.h"
#include "collect/cupti/cupti_api.h"
#include "fakes/allocation_counter.h"
#include "unit/collect/cupti/cupti_fixture.h"

namespace flopledger {
namespace {

using ::testing::SizeIs;
using testing_support::AllocationsOf;

class CuptiBuffersTest : public CuptiFixture {
 protected:
  std::vector<LaunchOrder> LaunchMany(int count) {
    std::vector<LaunchOrder> orders;
    for (int i = 0; i < count; ++i) orders.push_back(Launch());
    return orders;
  }
  static std::vector<LaunchOrder> Orders(const RecordBatch& batch) {
    std::vector<LaunchOrder> orders;
    for (const KernelRecord& kernel : batch.kernels) orders.push_back(kernel.launch_order);
    std::sort(orders.begin(), orders.end());
    return orders;
  }
};

TEST_F(CuptiBuffersTest, SplitOverManyTinyBuffers) {
  CuptiOptions options = Manual();
  options.buffer_bytes = 4096;  // 18 kernels
  options.buffers = 64;
  options.cap_bytes = 64 * 4096;
  Start(options);
  const std::vector<LaunchOrder> launched = LaunchMany(1000);
  EXPECT_EQ(Orders(Drain()), launched);
  EXPECT_EQ(fakecupti_requests(), (1000 + 17) / 18u);
  EXPECT_EQ(source_->counts().buffers_outstanding, 0);
}

TEST_F(CuptiBuffersTest, DeliveredInAnyOrder) {
  for (std::uint32_t seed = 1; seed <= 5; ++seed) {
    Start();
    fakecupti_set_records_per_buffer(100);
    fakecupti_hold(1);
    const std::vector<LaunchOrder> launched = LaunchMany(300);
    EXPECT_TRUE(Drain().kernels.empty()) << "late";
    fakecupti_shuffle(seed);
    fakecupti_hold(0);
    EXPECT_EQ(Orders(Drain()), launched);
    source_.reset();
    fakecupti_reset();
    Advance(0);
  }
}

TEST_F(CuptiBuffersTest, DeliveredFromTheLibrarysThread) {
  Start();
  fakecupti_use_thread(1);
  fakecupti_set_records_per_buffer(50);
  std::vector<LaunchOrder> launched, seen;
  for (int round = 0; round < 20; ++round) {
    const std::vector<LaunchOrder> orders = LaunchMany(120);
    launched.insert(launched.end(), orders.begin(), orders.end());
    RecordBatch batch = Drain();
    fakecupti_wait_delivered();
    source_->Drain(batch);
    const std::vector<LaunchOrder> found = Orders(batch);
    seen.insert(seen.end(), found.begin(), found.end());
  }
  std::sort(seen.begin(), seen.end());
  EXPECT_EQ(seen, launched);
  fakecupti_use_thread(0);
}

TEST_F(CuptiBuffersTest, AnEmptyPoolIsCountedLoss) {
  Start();  // 4 buffers of 64 KiB, API version 130001: may be refused
  const int launched = 5000;
  LaunchMany(launched);
  const RecordBatch batch = Drain();
  const std::int64_t kept = 4 * (65536 / 216);
  EXPECT_EQ(static_cast<std::int64_t>(batch.kernels.size()), kept);
  EXPECT_EQ(Lost(batch, LossRecord::Reason::kFull), launched - kept);
  EXPECT_EQ(fakecupti_dropped_total(), static_cast<std::uint64_t>(launched - kept));
  EXPECT_GT(source_->counts().buffers_refused, 0);
  EXPECT_LE(source_->counts().buffer_bytes, 4 * 65536);
  LaunchMany(10);
  EXPECT_THAT(Drain().kernels, SizeIs(10)) << "and goes on";
}

TEST_F(CuptiBuffersTest, ABufferThatIsNotReturnedIsNeverFreed) {
  CuptiSource& source = Start();
  fakecupti_keep_buffers(2);
  LaunchMany(500);
  Drain();
  EXPECT_EQ(source.counts().buffers_outstanding, 2);
  source_.reset();
  EXPECT_EQ(fakecupti_outstanding(), 2);
  fakecupti_return_kept();  // writes to both: a crash if they were unmapped
  EXPECT_EQ(fakecupti_outstanding(), 0);
}

TEST_F(CuptiBuffersTest, BuffersThatComeAfterTheEndAreStillRead) {
  CuptiSource& source = Start();
  fakecupti_hold(1);
  const std::vector<LaunchOrder> launched = LaunchMany(10);
  source.Stop();
  fakecupti_hold(0);  // the library's thread was late
  EXPECT_EQ(Orders(Drain()), launched);
}

TEST_F(CuptiBuffersTest, WhatHasNotComeBackAtTheEndIsAnUnknownLoss) {
  CuptiSource& source = Start();
  fakecupti_hold(1);
  LaunchMany(10);
  source.Stop();
  EXPECT_EQ(Lost(Drain(), LossRecord::Reason::kUnknownCount), 1);
  EXPECT_TRUE(Drain().losses.empty()) << "once";
  fakecupti_hold(0);
}

TEST_F(CuptiBuffersTest, LateBuffersOfAnEndedSourceDoNotDisturbTheNext) {
  Start();
  fakecupti_keep_buffers(1);
  LaunchMany(10);
  Drain();
  source_.reset();
  Start();
  LaunchMany(5);
  fakecupti_return_kept();
  EXPECT_THAT(Drain().kernels, SizeIs(5));
}

std::int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// A sanitizer's shadow is resident too, and it makes large buffers slow.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

// C39: a consumer that stalls for 1000 requests; 4 MiB x 64 is the most there may be.
class CuptiStallTest : public CuptiBuffersTest,
                       public ::testing::WithParamInterface<std::uint32_t> {};

TEST_P(CuptiStallTest, StaysUnderItsCapAndCountsWhatItLost) {
  constexpr std::int64_t kBuffer = kSanitized ? 1 << 16 : 4 << 20;
  constexpr std::int64_t kCap = 64 * kBuffer;
  CuptiOptions options = Manual();
  options.buffer_bytes = kBuffer;
  options.buffers = 16;
  options.cap_bytes = kCap;
  fakecupti_set_version(GetParam());
  fakecupti_set_records_per_buffer(4);
  Start(options);
  const std::int64_t resident_before = ResidentBytes();
  std::int64_t launched = 0;
  while (fakecupti_requests() < 1000) {
    Launch();
    ++launched;
    ASSERT_LE(source_->counts().buffer_bytes, kCap);
  }
  if (!kSanitized) {
    EXPECT_LE(ResidentBytes() - resident_before, kCap + (8 << 20));
  }
  RecordBatch batch = Drain();
  const auto delivered = static_cast<std::int64_t>(batch.kernels.size());
  EXPECT_LT(delivered, launched);
  if (GetParam() >= 27) {
    EXPECT_EQ(delivered, 16 * 4);
    EXPECT_EQ(delivered + Lost(batch, LossRecord::Reason::kFull), launched);
  } else {
    EXPECT_EQ(fakecupti_requests_refused(), 0u);
    EXPECT_GT(Lost(batch, LossRecord::Reason::kUnknownCount), 0) << "buffers reused unread";
  }
  EXPECT_EQ(fakecupti_violations(), 0u);
  while (!batch.kernels.empty()) batch = Drain();
  EXPECT_EQ(source_->counts().buffer_bytes, 16 * kBuffer) << "the spare ones are given back";
  LaunchMany(3);
  EXPECT_THAT(Drain().kernels, SizeIs(3));
}

INSTANTIATE_TEST_SUITE_P(ApiVersions, CuptiStallTest, ::testing::Values(26u, 27u));

// With an old library the flush thread gives completed buffers up before there are none, and
// counts what was in them.
TEST_F(CuptiBuffersTest, ReclaimedBuffersAreCountedRecordByRecord) {
  fakecupti_set_version(26);
  fakecupti_set_records_per_buffer(7);
  CuptiApi api;
  DeviceSourceState refusal;
  ASSERT_TRUE(api.Load(dlopen("libcupti.so.13", RTLD_LAZY | RTLD_NOLOAD), &refusal));
  auto pool = ActivityBufferPool::Create(4096, 8, 8);
  ASSERT_NE(pool, nullptr);
  CallbackTarget target(pool.get(), false);
  ActivityFlusher flusher(&api, pool.get(), true);
  ASSERT_TRUE(target.Connect());
  ASSERT_EQ(CallbackTarget::Register(api), CUPTI_SUCCESS);
  ASSERT_EQ(api.Enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL), CUPTI_SUCCESS);
  constexpr int kLaunched = 7 * 1000;
  for (int i = 0; i < kLaunched; ++i) {
    Launch();
    if (i % 7 == 0) flusher.Reclaim();
  }
  flusher.FlushOnce();
  std::int64_t kept = 0;
  ActivityBufferPool::Completed completed;
  while (pool->Pop(&completed)) {
    kept += ActivityDecoder::CountRecords(api, completed.buffer, completed.valid);
    pool->Recycle(completed);
  }
  EXPECT_EQ(kept + flusher.TakeLosses().given_up, kLaunched);
  EXPECT_GE(kept, 7 * 12) << "all but the four that are held free";
  EXPECT_EQ(target.discarded(), 0);
  EXPECT_EQ(fakecupti_requests_refused(), 0u);
  EXPECT_TRUE(target.Disconnect());
}

TEST_F(CuptiBuffersTest, CallbacksTakeNoMemory) {
  auto pool = ActivityBufferPool::Create(4096, 8, 8);
  CallbackTarget target(pool.get(), false);
  std::uint8_t* buffers[20] = {};
  std::size_t size = 0;
  const std::int64_t allocations = AllocationsOf([&] {
    for (int round = 0; round < 100; ++round) {
      for (std::uint8_t*& buffer : buffers) target.Request(&buffer, &size);
      for (std::uint8_t* buffer : buffers) target.Complete(buffer, 128);
      ActivityBufferPool::Completed completed;
      while (pool->Pop(&completed)) pool->Recycle(completed);
    }
  });
  EXPECT_EQ(allocations, 0);
  EXPECT_EQ(target.refused(), 400);
}

TEST_F(CuptiBuffersTest, MarksTakeNoMemory) {
  CuptiOptions options = Manual();
  options.link_ops = true;
  CuptiSource& source = Start(options);
  auto marks = [&] {
    for (int i = 0; i < 50; ++i) {
      source.PushOp(3, Phase::kBackward);
      source.Fence(now_ns());
      source.PopOp();
    }
  };
  marks();  // the double's own vectors grow once
  EXPECT_EQ(AllocationsOf(marks), 0);
  Drain();
}

TEST_F(CuptiBuffersTest, DecodingTakesNoMemoryOnceTheBatchHasGrown) {
  CuptiSource& source = Start();
  RecordBatch batch;
  std::int64_t allocations = -1;
  for (int round = 0; round < 3; ++round) {
    LaunchMany(200);
    batch.Clear();
    fakecupti_hold(1);  // completed by the flush below, not counted
    source.Drain(batch);
    fakecupti_hold(0);
    allocations = AllocationsOf([&] { source.Drain(batch); });
    EXPECT_THAT(batch.kernels, SizeIs(200));
  }
  EXPECT_EQ(allocations, 0);
}

TEST_F(CuptiBuffersTest, AnotherBufferThanOursIsIgnored) {
  auto pool = ActivityBufferPool::Create(4096, 2, 0);
  std::uint8_t foreign[16] = {};
  EXPECT_FALSE(pool->Complete(foreign, 16));
  std::uint8_t* buffer = pool->Take();
  EXPECT_FALSE(pool->Complete(buffer + 8, 16)) << "not a buffer's begin";
  EXPECT_TRUE(pool->Complete(buffer, 1 << 30)) << "a length beyond its end is cut";
  EXPECT_FALSE(pool->Complete(buffer, 16)) << "twice";
  ActivityBufferPool::Completed completed;
  ASSERT_TRUE(pool->Pop(&completed));
  EXPECT_EQ(completed.valid, 4096u);
}

TEST(IndexQueueTest, KeepsOrderAndLosesNothing) {
  IndexQueue queue(5);
  std::uint32_t index = 0;
  EXPECT_FALSE(queue.Pop(&index));
  for (std::uint32_t lap = 0; lap < 100; ++lap) {
    for (std::uint32_t i = 0; i < 5; ++i) queue.Push(i);
    for (std::uint32_t i = 0; i < 5; ++i) {
      ASSERT_TRUE(queue.Pop(&index));
      EXPECT_EQ(index, i);
    }
    EXPECT_FALSE(queue.Pop(&index));
  }
}

// Four threads take, complete, pop and recycle: every index is at one place at a time.
TEST(BufferPoolThreadsTest, EveryBufferHasOneOwner) {
  auto pool = ActivityBufferPool::Create(4096, 6, 2);
  std::atomic<std::int64_t> completed_count{0}, popped_count{0};
  auto work = [&](std::uint8_t mark) {
    for (int i = 0; i < 5000; ++i) {
      if (std::uint8_t* buffer = pool->Take()) {
        EXPECT_EQ(buffer[0], 0) << "zeroed, and nobody else's";
        buffer[0] = mark;
        EXPECT_EQ(buffer[0], mark);
        EXPECT_TRUE(pool->Complete(buffer, 1));
        ++completed_count;
      }
      ActivityBufferPool::Completed completed;
      if (pool->Pop(&completed)) {
        ++popped_count;
        pool->Recycle(completed);
      }
    }
  };
  std::vector<std::thread> threads;
  for (std::uint8_t mark = 1; mark <= 4; ++mark) threads.emplace_back(work, mark);
  for (std::thread& thread : threads) thread.join();
  ActivityBufferPool::Completed completed;
  while (pool->Pop(&completed)) {
    ++popped_count;
    pool->Recycle(completed);
  }
  EXPECT_EQ(popped_count, completed_count);
  EXPECT_EQ(pool->free(), 8);
  EXPECT_EQ(pool->outstanding(), 0);
}

}  // namespace
}  // namespace flopledger
