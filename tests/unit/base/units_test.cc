#include "flopledger/units.h"

#include <gtest/gtest.h>

#include <limits>

namespace flopledger {
namespace {

constexpr Int128 kLargest = (((Int128{1} << 126) - 1) * 2) + 1;

TEST(UnitsTest, PrintsAndReadsTheWholeRange) {
  for (Int128 value :
       {Int128{0}, Int128{1}, Int128{-1}, Int128{std::numeric_limits<std::int64_t>::max()},
        kLargest, -kLargest, -kLargest - 1}) {
    Result<Int128> read = ParseInt128(ToString(value));
    ASSERT_TRUE(read.has_value()) << ToString(value);
    EXPECT_TRUE(*read == value);
  }
  EXPECT_EQ(ToString(kLargest), "170141183460469231731687303715884105727");
  EXPECT_EQ(ToString(-kLargest - 1), "-170141183460469231731687303715884105728");
}

TEST(UnitsTest, RefusesWhatIsNotAnIntegerAndWhatIsTooLarge) {
  for (const char* text : {"", "-", "1.5", "1e3", " 1", "0x10", "--1"}) {
    ASSERT_FALSE(ParseInt128(text).has_value()) << text;
    EXPECT_EQ(ParseInt128(text).error().code(), StatusCode::kInvalidArgument);
  }
  auto wide = ParseInt128("170141183460469231731687303715884105728");
  ASSERT_FALSE(wide.has_value());
  EXPECT_EQ(wide.error().code(), StatusCode::kOverflow);
}

TEST(UnitsTest, CheckedArithmeticRefusesInsteadOfWrapping) {
  Int128 out = 7;
  EXPECT_FALSE(CheckedAdd(kLargest, 1, &out));
  EXPECT_FALSE(CheckedMultiply(kLargest, 2, &out));
  EXPECT_TRUE(out == 7);
  EXPECT_TRUE(CheckedMultiply(Int128{1} << 60, Int128{1} << 60, &out));
  EXPECT_TRUE(out == (Int128{1} << 120));
}

TEST(UnitsTest, WholeStepSumsStayExactBeyond1e22) {
  // 30 days at 1 PFLOP/s is 2.6e21; a double's unit there is half a million.
  Flops total = Flops::FromInteger(Int128{10'000'000'000} * 1'000'000'000'000);
  const Flops before = total;
  for (int i = 0; i < 1000; ++i) total += Flops::FromInteger(1);
  EXPECT_EQ((total - before).ToString(), "1000");
}

}  // namespace
}  // namespace flopledger
