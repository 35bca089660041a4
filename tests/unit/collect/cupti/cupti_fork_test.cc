// C43: a fork in the middle of collecting. The children are inert and end as they would without
// us; the parent counts on.

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "unit/collect/cupti/cupti_fixture.h"

namespace flopledger {
namespace {

CuptiSource* forked_source = nullptr;  // of the handler, which has no argument

class CuptiForkTest : public CuptiFixture {
 protected:
  /// Runs `child` in a fork; its wait status. A child that hangs is ended by its alarm.
  template <typename Child>
  static int Fork(Child child) {
    const pid_t pid = fork();
    if (pid == 0) {
      alarm(5);
      child();
      _exit(99);
    }
    int status = 0;
    EXPECT_EQ(waitpid(pid, &status, 0), pid);
    return status;
  }

  /// What a DataLoader's worker may come to: everything of ours.
  void UseEverythingInTheChild() {
    const std::uint64_t calls = fakecupti_calls(nullptr);
    source_->PushOp(2, Phase::kForward);
    source_->Fence(1);
    source_->PopOp();
    RecordBatch batch;
    source_->Drain(batch);
    source_->Stop();
    source_.reset();
    if (fakecupti_calls(nullptr) != calls || !batch.kernels.empty()) _exit(98);
  }
};

// The session's own handler does the same.
void BecomeInertInForks() {
  static const int registered = pthread_atfork(nullptr, nullptr, [] {
    if (forked_source != nullptr) forked_source->BecomeInert();
  });
  ASSERT_EQ(registered, 0);
}

TEST_F(CuptiForkTest, ChildrenAreInertAndTheParentCountsOn) {
  BecomeInertInForks();
  CuptiOptions options = Manual();
  options.flush_interval_ms = 1;
  options.link_ops = true;
  options.buffers = 64;
  options.cap_bytes = 64 * 65536;
  CuptiSource& source = Start(options);
  forked_source = &source;
  fakecupti_use_thread(1);

  std::atomic<bool> stop{false};
  std::atomic<int> launched{0};
  std::thread trainer([&] {
    while (!stop) {
      source.PushOp(1, Phase::kForward);
      Launch();
      source.PopOp();
      source.Fence(now_ns());
      ++launched;
      while (launched % 2000 == 0 && !stop) {  // enough until the next drain
        std::this_thread::yield();
      }
    }
  });
  while (launched < 100) {
  }

  const int exited = Fork([&] {
    UseEverythingInTheChild();
    _exit(0);
  });
  EXPECT_TRUE(WIFEXITED(exited) && WEXITSTATUS(exited) == 0) << exited;
  const int quick = Fork([] { _exit(0); });
  EXPECT_TRUE(WIFEXITED(quick) && WEXITSTATUS(quick) == 0) << quick;
  const int terminated = Fork([&] {
    UseEverythingInTheChild();
    raise(SIGTERM);
  });
  EXPECT_TRUE(WIFSIGNALED(terminated) && WTERMSIG(terminated) == SIGTERM) << terminated;
  const int executed = Fork([] { execl("/bin/sh", "sh", "-c", "exit 7", nullptr); });
  EXPECT_TRUE(WIFEXITED(executed) && WEXITSTATUS(executed) == 7) << executed;

  stop = true;
  trainer.join();
  forked_source = nullptr;
  source.Stop();
  fakecupti_wait_delivered();
  fakecupti_use_thread(0);
  const RecordBatch batch = Drain();
  std::int64_t lost = 0;
  for (const LossRecord& loss : batch.losses) lost += loss.count;
  EXPECT_EQ(lost, static_cast<std::int64_t>(fakecupti_dropped_total()));
  EXPECT_EQ(lost, 0);
  EXPECT_EQ(batch.kernels.size(), static_cast<std::size_t>(launched));
  EXPECT_EQ(batch.fences.size(), static_cast<std::size_t>(launched));
}

}  // namespace
}  // namespace flopledger
