#include "flopledger/peak.h"

#include <gtest/gtest.h>

namespace flopledger {
namespace {

TEST(PeakCases, C05UnitSlipsAreRefusedAtConfiguration) {
  EXPECT_FALSE(ParsePeakRate("312 FLOP/s").has_value());
  EXPECT_FALSE(ParsePeakRate("3.12e17 FLOP/s").has_value());
  constexpr double kAchieved = 1.404e14;
  for (const char* text : {"312 TFLOP/s", "3.12e14 FLOP/s", "3.12e14", "0.312 PFLOP/s"}) {
    auto rate = ParsePeakRate(text);
    ASSERT_TRUE(rate.has_value()) << rate.error().message();
    EXPECT_NEAR(kAchieved / rate->value(), 0.45, 1e-12) << text;
  }
}

TEST(PeakTest, RefusesWhatIsNoRate) {
  for (const char* text : {"", "fast", "312", "nan", "inf TFLOP/s", "-312 TFLOP/s", "312 TFLOPS",
                           "312 TFLOP", "1e400", "0x10 TFLOP/s", "312 TFLOP/s extra"}) {
    EXPECT_FALSE(ParsePeakRate(text).has_value()) << text;
  }
  EXPECT_EQ(ParsePeakRate("312").error().message(),
            "peak '312' is out of range without a unit; accepted: 1e9 to 1e17 FLOP/s, as in '312 "
            "TFLOP/s' or '3.12e14'");
}

}  // namespace
}  // namespace flopledger
