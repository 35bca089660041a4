// The broken and odd files of ../shared/traces/malformed: what each must give.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "session/replay.h"

namespace flopledger {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

std::string PathOf(const std::string& name) {
  return std::string(FLOPLEDGER_SHARED_DIR) + "/traces/malformed/" + name;
}

class ReplayMalformed : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(PathOf("01_gzip_cut_60pct.json.gz"))) {
      GTEST_SKIP() << "the malformed traces are not here: " << PathOf("");
    }
  }
};

std::int64_t CountOf(const ReplayTrace& trace, const std::string& kind) {
  for (const TraceWarning& warning : trace.description.warnings) {
    if (warning.kind == kind) return warning.count;
  }
  return 0;
}

TEST_F(ReplayMalformed, StrictRefusesWithAPosition) {
  for (const char* name :
       {"01_gzip_cut_60pct.json.gz", "02_plain_cut_mid_event.json", "03_array_unterminated.json",
        "04_trailing_comma.json", "05_bare_inf.json", "06_bare_nan.json", "07_backslash_path.json",
        "17_empty.json.gz", "20_control_char_in_name.json"}) {
    SCOPED_TRACE(name);
    const Result<ReplayResult> result = Replay({PathOf(name)}, {});
    ASSERT_FALSE(result.has_value());
    EXPECT_THAT(result.error().message(), HasSubstr(name));
    EXPECT_THAT(result.error().message(), MatchesRegex(".*: byte [0-9]+.*"));
  }
}

TEST_F(ReplayMalformed, PositionsAreThoseOfTheFault) {
  const auto message = [](const char* name) {
    return Replay({PathOf(name)}, {}).error().message();
  };
  // Found with grep -b and grep -n.
  EXPECT_THAT(message("05_bare_inf.json"), HasSubstr("byte 45796, line 817"));
  EXPECT_THAT(message("06_bare_nan.json"), HasSubstr("byte 45774, line 817"));
  EXPECT_THAT(message("07_backslash_path.json"), HasSubstr("byte 66782, line 1382"));
  EXPECT_THAT(message("20_control_char_in_name.json"), HasSubstr("byte 14469, line 295"));
}

TEST_F(ReplayMalformed, LenientRecoversAndSaysSo) {
  struct Case {
    const char* name;
    const char* warning;
    bool whole;  // nothing is lost
  };
  for (const Case& each : {Case{"01_gzip_cut_60pct.json.gz", "gzip_damaged", false},
                           Case{"02_plain_cut_mid_event.json", "cut", false},
                           Case{"03_array_unterminated.json", "unterminated", false},
                           Case{"04_trailing_comma.json", "trailing_comma", true},
                           Case{"05_bare_inf.json", "not_a_number", true},
                           Case{"06_bare_nan.json", "not_a_number", true},
                           Case{"07_backslash_path.json", "invalid_escape", true},
                           Case{"20_control_char_in_name.json", "control_character", true}}) {
    SCOPED_TRACE(each.name);
    ReplayOptions options;
    options.lenient = true;
    const Result<ReplayResult> result = Replay({PathOf(each.name)}, options);
    ASSERT_TRUE(result.has_value()) << result.error().message();
    const ReplayTrace& trace = result->traces.front();
    EXPECT_GT(CountOf(trace, each.warning), 0);
    EXPECT_GT(trace.description.events, 0);
    if (!each.whole) continue;
    EXPECT_EQ(trace.total.activity.busy_kernels_ns, 110'881);
    EXPECT_EQ(trace.total.activity.kernels, 14);
  }
}

TEST_F(ReplayMalformed, OddFilesAreReadWithACountedWarning) {
  struct Case {
    const char* name;
    const char* warning;
    std::int64_t kernels;
    std::int64_t busy_ns;
  };
  // 10 and 11 have one kernel of 8,320 ns without its time; the others keep theirs.
  for (const Case& each :
       {Case{"08_crlf_bom.json", "byte_order_mark", 14, 110'881},
        Case{"09_string_ts.json", "string_number", 14, 110'881},
        Case{"10_negative_dur.json", "negative_duration", 14, 110'881 - 8'320},
        Case{"11_ts0_dur0.json", "untimed", 14, 110'881 - 8'320},
        Case{"12_missing_stream_device_corr.json", "missing_fields", 14, 110'881},
        Case{"13_huge_ids.json", "huge_id", 14, 110'881},
        Case{"14_dup_correlation.json", "shared_correlation", 14, 110'881},
        Case{"15_no_gpu_events.json", "no_device_work", 0, 0},
        Case{"16_overlapping_identical_kernel.json", "duplicate_event", 15, 110'881},
        Case{"18_gzip_trailing_garbage.json.gz", "gzip_padding", 14, 110'881},
        Case{"19_two_gzip_members.json.gz", "several_gzip_members", 14, 110'881}}) {
    SCOPED_TRACE(each.name);
    const Result<ReplayResult> result = Replay({PathOf(each.name)}, {});
    ASSERT_TRUE(result.has_value()) << result.error().message();
    const ReplayTrace& trace = result->traces.front();
    EXPECT_GT(CountOf(trace, each.warning), 0);
    EXPECT_EQ(trace.total.activity.kernels, each.kernels);
    EXPECT_EQ(trace.total.activity.busy_kernels_ns, each.busy_ns);
    if (each.kernels > 0) {
      const TimeSpan& span = trace.total.activity.span;
      EXPECT_EQ(span.end_ns - span.start_ns, 8'911'887);
    }
  }
}

TEST_F(ReplayMalformed, TwoMembersAreTheWholeTrace) {
  const Result<ReplayResult> result = Replay({PathOf("19_two_gzip_members.json.gz")}, {});
  ASSERT_TRUE(result.has_value());
  const ReplayDevice& total = result->traces.front().total;
  EXPECT_EQ(total.activity.busy_all_ns, 149'042);
  EXPECT_EQ(total.activity.idle_ns, 8'762'845);
  EXPECT_EQ(total.flops.all_pairs.count(), 327'680);
  EXPECT_EQ(total.counted_kernel_time_ns, 37'120);
}

}  // namespace
}  // namespace flopledger
