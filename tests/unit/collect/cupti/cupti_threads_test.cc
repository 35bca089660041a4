// Everything at once: four launching threads, the library's delivery thread, the flush thread and
// the draining one. Meant for the thread sanitizer; the counts hold in any build.

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "unit/collect/cupti/cupti_fixture.h"

namespace flopledger {
namespace {

class CuptiThreadsTest : public CuptiFixture {};

TEST_F(CuptiThreadsTest, NothingIsLostOrCountedTwice) {
  constexpr int kThreads = 4;
  constexpr int kLaunches = 3000;
  CuptiOptions options = Manual();
  options.flush_interval_ms = 1;
  options.link_ops = true;
  options.buffers = 64;
  options.cap_bytes = 64 * 65536;
  CuptiSource& source = Start(options);
  fakecupti_use_thread(1);
  fakecupti_set_records_per_buffer(64);

  std::atomic<int> running{kThreads};
  auto train = [&](std::uint32_t op) {
    for (int i = 0; i < kLaunches; ++i) {
      source.PushOp(op, Phase::kForward);
      Launch();
      source.PopOp();
      if (i % 100 == 0) source.Fence(now_ns());
    }
    --running;
  };
  std::vector<std::thread> threads;
  for (std::uint32_t op = 1; op <= kThreads; ++op) threads.emplace_back(train, op);

  RecordBatch batch;
  while (running > 0) source.Drain(batch);
  for (std::thread& thread : threads) thread.join();
  source.Stop();
  fakecupti_wait_delivered();
  fakecupti_use_thread(0);
  source.Drain(batch);

  std::set<LaunchOrder> launches;
  for (const KernelRecord& kernel : batch.kernels) launches.insert(kernel.launch_order);
  EXPECT_EQ(launches.size(), batch.kernels.size()) << "none twice";
  std::int64_t lost = 0;
  for (const LossRecord& loss : batch.losses) lost += loss.count;
  // Dropped records are of every kind; without drops all kernels are here.
  EXPECT_EQ(static_cast<std::uint64_t>(lost), fakecupti_dropped_total());
  if (lost == 0) {
    EXPECT_EQ(batch.kernels.size(), static_cast<std::size_t>(kThreads * kLaunches));
    EXPECT_EQ(batch.fences.size(), static_cast<std::size_t>(kThreads * kLaunches / 100));
    for (const KernelRecord& kernel : batch.kernels) EXPECT_TRUE(kernel.op_known);
  }
  EXPECT_EQ(source.counts().fences_set, kThreads * kLaunches / 100);
}

TEST_F(CuptiThreadsTest, StopsWhileThreadsMark) {
  CuptiOptions options = Manual();
  options.flush_interval_ms = 1;
  options.link_ops = true;
  for (int round = 0; round < 20; ++round) {
    CuptiSource& source = Start(options);
    std::atomic<bool> stop{false};
    std::atomic<int> started{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        do {
          source.PushOp(1, Phase::kForward);
          source.Fence(now_ns());
          source.PopOp();
          ++started;
        } while (!stop);
      });
    }
    while (started < 4) {
    }
    RecordBatch batch;
    source.Drain(batch);
    source.Stop();
    stop = true;
    for (std::thread& thread : threads) thread.join();
    source.Drain(batch);
    EXPECT_EQ(source.state().reason, "stopped");
    source_.reset();
  }
}

}  // namespace
}  // namespace flopledger
