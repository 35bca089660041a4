// A real NVTX client on the injection.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nvtx3/nvToolsExt.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "collect/nvtx/nvtx_injection.h"
#include "fakes/allocation_counter.h"
#include "fakes/nvtx_recorder.h"

namespace flopledger {
namespace {

using testing_support::Event;
using NvtxRangesTest = testing_support::NvtxTest;

using testing::ElementsAre;
using testing::IsEmpty;

TEST_F(NvtxRangesTest, AStepAPhaseAndTokens) {
  Listen();
  Push("step", 41);
  Push("forward");
  const nvtxEventAttributes_t tokens = Event("tokens", 1024);
  nvtxDomainMarkEx(ours, &tokens);
  Pop();
  Pop();
  Push("step");
  Pop();
  EXPECT_THAT(recorder->Take(), ElementsAre("step 41", "forward", "tokens 1024", "forward end",
                                            "step end", "step ?", "step end"));
  EXPECT_GE(CurrentNvtxState().clients, 1);
}

TEST_F(NvtxRangesTest, EveryIntegerPayloadIsANumberAndNothingElseIs) {
  Listen();
  nvtxEventAttributes_t event = Event("step 3");
  const auto step = [&] {
    nvtxDomainRangePushEx(ours, &event);
    Pop();
    return recorder->Take().front();
  };
  EXPECT_EQ(step(), "step 3");  // the name's
  event.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64;
  event.payload.ullValue = 9;
  EXPECT_EQ(step(), "step 9");
  event.payloadType = NVTX_PAYLOAD_TYPE_INT32;
  event.payload.ullValue = 0;
  event.payload.iValue = 10;
  EXPECT_EQ(step(), "step 10");
  event.payloadType = NVTX_PAYLOAD_TYPE_UNSIGNED_INT32;
  event.payload.uiValue = 11;
  EXPECT_EQ(step(), "step 11");
  event.payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
  event.payload.dValue = 12.5;
  EXPECT_EQ(step(), "step 3");
  event.payloadType = NVTX_PAYLOAD_TYPE_INT64;
  event.payload.llValue = -4;
  EXPECT_EQ(step(), "step 3");
  event.size = 16;  // a structure that ends before the message
  nvtxDomainRangePushEx(ours, &event);
  Pop();
  EXPECT_THAT(recorder->Take(), IsEmpty());

  nvtxEventAttributes_t tokens = Event("tokens");
  nvtxDomainMarkEx(ours, &tokens);
  EXPECT_THAT(recorder->Take(), ElementsAre("tokens -1"));  // refused further on, not taken for 0
}

TEST_F(NvtxRangesTest, LevelsAreWhatAToolReturns) {
  // C48: the return value is the nesting level, with a session and without one.
  for (const bool with_session : {false, true}) {
    if (with_session) Listen("step*");
    EXPECT_EQ(nvtxRangePushA("a"), 0);
    EXPECT_EQ(nvtxRangePushA("step"), 1);
    EXPECT_EQ(Push("step"), 0);  // each domain nests for itself
    EXPECT_EQ(nvtxDomainRangePushEx(foreign, nullptr), 0);
    EXPECT_EQ(nvtxRangePop(), 1);
    EXPECT_EQ(nvtxRangePop(), 0);
    EXPECT_EQ(nvtxRangePop(), -1);  // nothing is open
    EXPECT_EQ(nvtxDomainRangePop(foreign), 0);
    EXPECT_EQ(Pop(), 0);
    EXPECT_EQ(Pop(), -1);
  }
}

TEST_F(NvtxRangesTest, C48ACodeThatAsksTheReturnValueHasItsSteps) {
  Listen();
  int pops = 0;
  for (int i = 0; i < 3; ++i) {
    if (Push("step") >= 0) {
      Pop();
      ++pops;
    }
  }
  EXPECT_EQ(pops, 3);
  EXPECT_EQ(recorder->steps_begun, 3);
  EXPECT_EQ(recorder->steps_ended, 3);
}

TEST_F(NvtxRangesTest, ForeignRangesAreNotSeenAndTheirPopsEndNothing) {
  Listen();
  Push("step");
  Push("layer 3");
  nvtxRangePushA("step");
  const nvtxEventAttributes_t event = Event("step", 1);
  nvtxDomainRangePushEx(foreign, &event);
  nvtxDomainMarkEx(foreign, &event);
  nvtxDomainRangePop(foreign);
  nvtxRangePop();
  nvtxRangePop();
  Pop();  // the layer's
  EXPECT_THAT(recorder->Take(), ElementsAre("step ?"));
  Pop();
  EXPECT_THAT(recorder->Take(), ElementsAre("step end"));
  Pop();
  EXPECT_THAT(recorder->Take(), IsEmpty());
}

TEST_F(NvtxRangesTest, NamesOfTheConfigurationInEveryForm) {
  Listen("step*,ProfilerStep*,train@trainer", "forward=fwd*");
  nvtxRangePushA("step 7");
  nvtxRangePushW(L"fwd 1");
  nvtxRangePop();
  nvtxRangePop();
  nvtxEventAttributes_t event = Event("ProfilerStep#12");
  nvtxRangePushEx(&event);
  nvtxRangePop();
  nvtxDomainHandle_t trainer = nvtxDomainCreateW(L"trainer");
  event.messageType = NVTX_MESSAGE_TYPE_UNICODE;
  event.message.unicode = L"train";
  nvtxDomainRangePushEx(trainer, &event);
  nvtxDomainRangePop(trainer);
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = nvtxDomainRegisterStringA(nullptr, "step 13");
  nvtxDomainRangePushEx(nullptr, &event);  // the default domain by another name
  nvtxRangePop();
  EXPECT_THAT(recorder->Take(),
              ElementsAre("step 7", "forward", "forward end", "step end", "step 12", "step end",
                          "step ?", "step end", "step 13", "step end"));
}

TEST_F(NvtxRangesTest, StartAndEndBelongToTheProcess) {
  Listen("step*", "data=load*");
  const nvtxRangeId_t step = nvtxRangeStartA("step 5");
  nvtxRangeId_t load = 0;
  std::thread([&] { load = nvtxRangeStartW(L"load"); }).join();
  const nvtxEventAttributes_t again = Event("load again");
  const nvtxRangeId_t second = nvtxRangeStartEx(&again);
  EXPECT_NE(load, second);
  nvtxRangeEnd(load);
  nvtxRangeEnd(load);  // twice is once
  std::thread([&] { nvtxRangeEnd(step); }).join();
  nvtxRangeEnd(second);
  const nvtxRangeId_t nothing = nvtxRangeStartA("nothing of ours");
  nvtxRangeEnd(nothing);
  nvtxRangeEnd(0);
  nvtxDomainRangeEnd(ours, nvtxDomainRangeStartEx(ours, nullptr));
  EXPECT_THAT(recorder->Take(), ElementsAre("step 5", "data of process", "data of process",
                                            "data end", "step end", "data end"));
}

TEST_F(NvtxRangesTest, OneStepAtATime) {
  Listen();
  const std::int64_t before = CurrentNvtxState().inner_steps;
  Push("step", 1);
  Push("step", 2);  // a micro-batch by the same name
  std::thread([&] {
    Push("step", 3);
    Pop();
  }).join();
  Pop();
  EXPECT_THAT(recorder->Take(), ElementsAre("step 1"));
  Pop();
  EXPECT_THAT(recorder->Take(), ElementsAre("step end"));
  EXPECT_EQ(CurrentNvtxState().inner_steps - before, 2);
}

TEST_F(NvtxRangesTest, AThreadThatEndsInsideOfAStepGivesItUp) {
  Listen();
  std::thread([&] {
    Push("step", 1);
    Push("backward");
  }).join();
  EXPECT_THAT(recorder->Take(), ElementsAre("step 1", "backward", "backward end", "step failed"));
  Push("step", 2);
  Pop();
  EXPECT_THAT(recorder->Take(), ElementsAre("step 2", "step end"));
}

TEST_F(NvtxRangesTest, WhatTheListenerDoesNotTakeDoesNotEnd) {
  Listen();
  recorder->take = false;
  Push("step");
  Push("forward");
  Pop();
  Pop();
  EXPECT_EQ(recorder->steps_ended, 0);
  EXPECT_EQ(recorder->phases_ended, 0);
  recorder->take = true;
  Push("step");  // the one before holds nothing
  Pop();
  EXPECT_EQ(recorder->steps_ended, 1);
}

TEST_F(NvtxRangesTest, RangesAreNotKeptForASessionThatComesLater) {
  nvtxStringHandle_t early = nvtxDomainRegisterStringA(ours, "step");
  Push("step", 1);
  Listen();
  Pop();  // began before
  EXPECT_THAT(recorder->Take(), IsEmpty());
  nvtxEventAttributes_t event = Event("");
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  event.message.registered = early;  // known before, but means something only now
  nvtxDomainRangePushEx(ours, &event);
  listening.reset();
  EXPECT_THAT(recorder->Take(), ElementsAre("step ?"));
  Pop();
  nvtxDomainRangePushEx(ours, &event);
  Pop();
  recorder->Take();
  Listen();
  nvtxDomainRangePushEx(ours, &event);
  Pop();
  EXPECT_THAT(recorder->Take(), ElementsAre("step ?", "step end"));
}

TEST_F(NvtxRangesTest, OneSessionListens) {
  Listen();
  EXPECT_EQ(NvtxListening::Create(recorder, *NvtxRuleBook::Create("", "")), nullptr);
  listening.reset();
  EXPECT_NE(NvtxListening::Create(recorder, *NvtxRuleBook::Create("", "")), nullptr);
}

TEST_F(NvtxRangesTest, MoreThanAThreadMayHaveOpenIsCounted) {
  Listen();
  const std::int64_t before = CurrentNvtxState().untaken;
  for (int i = 0; i < 20; ++i) Push("data");
  for (int i = 0; i < 20; ++i) Pop();
  EXPECT_EQ(recorder->phases_begun, 16);
  EXPECT_EQ(recorder->phases_ended, 16);
  EXPECT_EQ(CurrentNvtxState().untaken - before, 4);
}

TEST_F(NvtxRangesTest, HandlesOfOneNameAreOneAndStringsAreBounded) {
  EXPECT_EQ(nvtxDomainCreateA("flopledger"), ours);
  EXPECT_EQ(nvtxDomainCreateW(L"flopledger"), ours);
  EXPECT_NE(foreign, ours);
  Listen();
  const nvtxStringHandle_t first = nvtxDomainRegisterStringA(ours, "step 1");
  EXPECT_EQ(nvtxDomainRegisterStringA(ours, "step 1"), first);
  EXPECT_NE(nvtxDomainRegisterStringA(foreign, "step 1"), first);
  // A program that registers the name of every step: past the limit a handle is a number.
  nvtxEventAttributes_t event = Event("");
  event.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
  const int steps = 20000;
  for (int i = 1; i <= steps; ++i) {
    event.message.registered =
        nvtxDomainRegisterStringA(ours, ("step " + std::to_string(i)).c_str());
    nvtxDomainRangePushEx(ours, &event);
    Pop();
  }
  EXPECT_EQ(recorder->steps_begun, steps);
  const std::vector<std::string> lines = recorder->Take();
  EXPECT_EQ(lines[lines.size() - 2], "step " + std::to_string(steps));
  event.message.registered = nvtxDomainRegisterStringA(ours, "one more that is nothing");
  nvtxDomainRangePushEx(ours, &event);
  Pop();
  EXPECT_THAT(recorder->Take(), IsEmpty());
}

TEST_F(NvtxRangesTest, RangesAllocateNothing) {
  Listen("step*");
  recorder->quiet = true;
  const nvtxEventAttributes_t ex = Event("step", 3);
  const auto run = [&] {
    for (int i = 0; i < 1000; ++i) {
      nvtxRangePushA("step 1");
      nvtxRangePushA("something else");
      nvtxRangePop();
      nvtxRangePop();
      nvtxDomainRangePushEx(ours, &ex);
      nvtxDomainRangePushEx(foreign, &ex);
      nvtxDomainRangePop(foreign);
      nvtxDomainRangePop(ours);
      nvtxRangeEnd(nvtxRangeStartA("step 2"));
      nvtxDomainMarkEx(foreign, &ex);
    }
  };
  run();  // the thread's first range registers its end
  EXPECT_EQ(testing_support::AllocationsOf(run), 0);
  EXPECT_GE(recorder->steps_begun, 4000);
}

}  // namespace
}  // namespace flopledger
