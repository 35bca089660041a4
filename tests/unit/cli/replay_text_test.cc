#include "cli/replay_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace flopledger::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

ReplayResult OneDevice() {
  ReplayTrace trace;
  trace.file = "trace.json";
  ReplayDevice device;
  device.activity.kernels = 3;
  device.steps.push_back({.name = "ProfilerStep#1"});
  trace.devices.push_back(device);
  ReplayResult result;
  result.traces.push_back(trace);
  return result;
}

std::string LineOf(const std::string& text, const std::string& label) {
  const std::size_t at = text.find(label);
  return at == std::string::npos ? "" : text.substr(at, text.find('\n', at) - at);
}

TEST(ReplayText, WhatNobodyCouldCountIsUnknownNotZero) {
  ReplayResult result = OneDevice();
  for (const char* gap : {"no_shapes", "no_op"}) {
    result.traces[0].description.gaps = {{.kind = gap, .count = 3, .text = "why"}};
    const std::string text = WriteText(result, Ink(false));
    EXPECT_THAT(LineOf(text, "FLOPs counted"), HasSubstr("unknown")) << gap;
    EXPECT_THAT(LineOf(text, "ProfilerStep#1"), HasSubstr("unknown")) << gap;
  }
}

TEST(ReplayText, AZeroWithoutAGapIsAZero) {
  const std::string text = WriteText(OneDevice(), Ink(false));
  EXPECT_THAT(LineOf(text, "FLOPs counted"), HasSubstr("0"));
  EXPECT_THAT(text, Not(HasSubstr("unknown")));
}

TEST(ReplayText, ACountWithAGapStaysACount) {
  ReplayResult result = OneDevice();
  result.traces[0].description.gaps = {{.kind = "no_op", .count = 1, .text = "why"}};
  result.traces[0].devices[0].flops.all_pairs = Flops::FromInteger(4096);
  result.traces[0].devices[0].flops.executed = Flops::FromInteger(3072);
  const std::string line = LineOf(WriteText(result, Ink(false)), "FLOPs counted");
  EXPECT_THAT(line, HasSubstr("4096"));
  EXPECT_THAT(line, HasSubstr("3072"));
}

TEST(ReplayText, ARefusedPeakSaysWhatGivesOne) {
  ReplayResult result = OneDevice();
  result.traces[0].peak_refusal = "no peak is known for 'X'";
  const std::string text = WriteText(result, Ink(false));
  EXPECT_THAT(text, HasSubstr("no peak is known for 'X'"));
  EXPECT_THAT(text, HasSubstr("--peak"));
}

}  // namespace
}  // namespace flopledger::cli
