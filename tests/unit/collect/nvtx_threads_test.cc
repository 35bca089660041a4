// Ranges in threads, sessions that come and go, and forks. The thread sanitizer has its work here.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nvtx3/nvToolsExt.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "collect/nvtx/nvtx_injection.h"
#include "fakes/nvtx_recorder.h"

namespace flopledger {
namespace {

using testing::ElementsAre;
using testing_support::Event;
using NvtxThreadsTest = testing_support::NvtxTest;

TEST_F(NvtxThreadsTest, ThreadsAndSessionsAtOnce) {
  recorder->quiet = true;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      int n = 0;
      while (!stop.load(std::memory_order_relaxed)) {
        const std::string name = "step " + std::to_string(t * 100 + n++ % 50);
        nvtxEventAttributes_t event = Event("");
        event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
        event.message.registered = nvtxDomainRegisterStringA(ours, name.c_str());
        nvtxDomainRangePushEx(ours, &event);
        Push("forward");
        nvtxRangeId_t range = nvtxRangeStartA("load");
        nvtxRangePushA("step");
        nvtxRangePop();
        nvtxRangeEnd(range);
        Pop();
        Pop();
      }
    });
  }
  for (int i = 0; i < 100; ++i) {
    Listen("step*", "data=load");
    const int before = recorder->steps_begun;
    while (recorder->steps_begun == before) std::this_thread::yield();
    listening.reset();
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_GE(recorder->phases_begun, recorder->phases_ended);
  EXPECT_GT(recorder->steps_begun, 99);
}

TEST_F(NvtxThreadsTest, AForkedChildMarksOn) {
  Listen();
  Push("step", 1);
  std::atomic<bool> stop{false};
  std::thread registering([&] {  // holds the names' lock now and then
    for (int i = 0; !stop.load(); ++i) {
      nvtxDomainRegisterStringA(foreign, ("f" + std::to_string(i % 100)).c_str());
    }
  });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(10);
      listening->BecomeInert();
      nvtxDomainRegisterStringA(foreign, "child");
      Pop();
      Push("step", 2);
      Pop();
      // A session of the child's own finds the place free.
      const bool free = NvtxListening::Create(recorder, *NvtxRuleBook::Create("", "")) != nullptr;
      _exit(free ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  stop = true;
  registering.join();
  Pop();
  EXPECT_THAT(recorder->Take(), ElementsAre("step 1", "step end"));
}

}  // namespace
}  // namespace flopledger
