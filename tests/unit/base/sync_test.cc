#include "base/sync.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <thread>

namespace flopledger {
namespace {

TEST(SpscRingTest, RefusesWhenFullAndRecoversWhenRead) {
  SpscRing<int> ring(4);
  ASSERT_EQ(ring.capacity(), 4u);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(ring.TryPush(i));
  EXPECT_FALSE(ring.TryPush(4));
  int out = -1;
  ASSERT_TRUE(ring.TryPop(&out));
  EXPECT_EQ(out, 0);
  EXPECT_TRUE(ring.TryPush(4));
  for (int i = 1; i <= 4; ++i) {
    ASSERT_TRUE(ring.TryPop(&out));
    EXPECT_EQ(out, i);
  }
  EXPECT_FALSE(ring.TryPop(&out));
}

TEST(SpscRingTest, WritesPlusRefusalsEqualAttemptsAcrossThreads) {
  constexpr std::int64_t kAttempts = 200'000;
  SpscRing<std::int64_t> ring(64);
  std::int64_t refused = 0;
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (std::int64_t i = 0; i < kAttempts; ++i) refused += ring.TryPush(i) ? 0 : 1;
    done.store(true, std::memory_order_release);
  });
  std::int64_t read = 0;
  std::int64_t last = -1;
  bool ordered = true;
  for (;;) {
    const bool finished = done.load(std::memory_order_acquire);
    std::int64_t value = 0;
    bool any = false;
    while (ring.TryPop(&value)) {
      ordered = ordered && value > last;
      last = value;
      ++read;
      any = true;
    }
    if (finished && !any) break;
  }
  writer.join();
  EXPECT_TRUE(ordered);
  EXPECT_EQ(read + refused, kAttempts);
}

}  // namespace
}  // namespace flopledger
