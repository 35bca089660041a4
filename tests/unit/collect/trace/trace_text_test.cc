// The layers under the Kineto reader: decimal times, JSON's grammar, op arguments.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "collect/trace/json_tokens.h"
#include "collect/trace/op_arguments.h"
#include "collect/trace/time_text.h"

namespace flopledger {
namespace {

TEST(TimeText, IsExactAndRoundsHalfToEven) {
  EXPECT_EQ(MicrosecondsToNs("4203669604595.407"), 4'203'669'604'595'407);
  EXPECT_EQ(MicrosecondsToNs("9007199254740993"), 9'007'199'254'740'993'000);  // no double has it
  EXPECT_EQ(MicrosecondsToNs("0"), 0);
  EXPECT_EQ(MicrosecondsToNs("-1.5"), -1500);
  EXPECT_EQ(MicrosecondsToNs("0.0005"), 0);
  EXPECT_EQ(MicrosecondsToNs("0.0015"), 2);
  EXPECT_EQ(MicrosecondsToNs("0.0025"), 2);
  EXPECT_EQ(MicrosecondsToNs("0.00250000000000000000001"), 3);
  EXPECT_EQ(MicrosecondsToNs("0.0009999"), 1);
  EXPECT_EQ(MicrosecondsToNs("1.5e3"), 1'500'000);
  EXPECT_EQ(MicrosecondsToNs("15E-1"), 1500);
  EXPECT_EQ(MicrosecondsToNs("1e-60"), 0);
  EXPECT_EQ(MicrosecondsToNs("000000000000000000000000000007"), 7000);
}

TEST(TimeText, RefusesWhatIsNoNumber) {
  for (const char* text : {"", "-", ".", "abc", "1.2.3", "1e", "1e99", "0x10", "1 ", "null", "inf",
                           "9300000000000000", "99999999999999999999999999999999"}) {
    EXPECT_FALSE(MicrosecondsToNs(text).has_value()) << text;
  }
}

TEST(TimeText, AgreesWithIntegerArithmetic) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 20'000; ++i) {
    const auto units = static_cast<std::int64_t>(random() % 9'000'000'000'000'000'000ULL);
    const int places = static_cast<int>(random() % 7);  // decimals of a microsecond
    std::int64_t scale = 1;
    for (int p = 0; p < places; ++p) scale *= 10;
    std::string fraction = std::to_string(units % scale);
    fraction.insert(0,
                    static_cast<std::size_t>(places) -
                        std::min<std::size_t>(static_cast<std::size_t>(places), fraction.size()),
                    '0');
    const std::string text =
        std::to_string(units / scale) + (places > 0 ? "." + fraction : std::string());
    const Int128 thousand = Int128{units} * 1000;
    Int128 expected = thousand / scale;
    const Int128 twice = 2 * (thousand % scale);
    if (twice > scale || (twice == scale && expected % 2 == 1)) ++expected;
    const std::optional<std::int64_t> read = MicrosecondsToNs(text);
    if (expected > INT64_MAX) {
      EXPECT_FALSE(read.has_value()) << text;
    } else {
      ASSERT_EQ(read, static_cast<std::int64_t>(expected)) << text;
    }
  }
}

TEST(TimeText, IdsKeepAllTheirBits) {
  EXPECT_EQ(ParseId("18446744073709551615"), 18'446'744'073'709'551'615ULL);
  EXPECT_EQ(ParseId("9007199254740993"), 9'007'199'254'740'993ULL);
  EXPECT_EQ(ParseId("7.0"), 7U);
  for (const char* text : {"", "18446744073709551616", "7.5", "x", "1e3"}) {
    EXPECT_FALSE(ParseId(text).has_value()) << text;
  }
}

JsonTokens::Verdict VerdictOn(const std::string& text, bool lenient = false) {
  JsonTokens tokens(lenient);
  if (tokens.Scan(text) != JsonTokens::Scanned::kOk) return JsonTokens::Verdict::kBad;
  if (tokens.CheckEscapes() != JsonTokens::Verdict::kOk) return JsonTokens::Verdict::kBad;
  std::size_t i = 0;
  const JsonTokens::Verdict verdict = tokens.SkipValue(&i);
  if (verdict == JsonTokens::Verdict::kOk && i != tokens.size()) return JsonTokens::Verdict::kBad;
  return verdict;
}

TEST(JsonTokens, TakesJsonAndNothingElse) {
  for (const char* text :
       {"1", "-0.5e+10", "true", "false", "null", R"("a\u00e9\"\\\/\b\f\n\r\t")", "[]", "{}",
        "[1, [2, {\"a\": []}], \"x\"]", " { \"a\" : 1 , \"b\" : { } } ", "\"\xc3\xa9\"", "0"}) {
    EXPECT_EQ(VerdictOn(text), JsonTokens::Verdict::kOk) << text;
  }
  for (const char* text : {"01",       "+1",       "1.",        ".5",
                           "1e",       "0x1",      "--1",       "tru",
                           "nul",      "True",     "NaN",       "inf",
                           "-inf",     "{1: 2}",   "{\"a\" 1}", "{\"a\": 1,}",
                           "[1,]",     "[1 2]",    "[1}",       "{\"a\": 1]",
                           "1 2",      "]",        R"("\x")",   R"("\u12g4")",
                           "\"\x01\"", "\"\xff\"", "'a'",       "[\"a\" \"b\"]",
                           "\"a\"b",   "[,1]",     "{\"a\":}",  "{,}",
                           "[1,,2]",   "\\n"}) {
    EXPECT_EQ(VerdictOn(text), JsonTokens::Verdict::kBad) << text;
  }
  for (const char* text : {"[", "[1", "[1,", "{", "{\"a\"", "{\"a\":", "{\"a\": 1", "[[[]"}) {
    EXPECT_EQ(VerdictOn(text), JsonTokens::Verdict::kMore) << text;
  }
  EXPECT_EQ(VerdictOn(std::string(300, '[') + std::string(300, ']')), JsonTokens::Verdict::kBad);
  EXPECT_EQ(VerdictOn(std::string(200, '[') + std::string(200, ']')), JsonTokens::Verdict::kOk);
}

TEST(JsonTokens, LenientTakesWhatProgramsPrint) {
  for (const char* text :
       {"NaN", "-inf", "Infinity", "[1,]", "{\"a\": nan,}", R"("C:\temp\logs")"}) {
    EXPECT_EQ(VerdictOn(text, true), JsonTokens::Verdict::kOk) << text;
  }
  for (const char* text : {"nothing", "[1 2]", "{\"a\"}", "[,]"}) {
    EXPECT_EQ(VerdictOn(text, true), JsonTokens::Verdict::kBad) << text;
  }
}

TEST(OpArguments, AreThoseThatAnObserverSees) {
  JsonTokens tokens(false);
  const std::string text =
      R"([[[2, 3], [], [], [], [], [[1, 2], [3]], []],)"
      R"( ["c10::BFloat16", "ScalarList", "Scalar", "Scalar", "Scalar", "TensorList", ""],)"
      R"( ["", "[1, -2]", "False", "7", "0.5", "", ""]])";
  ASSERT_EQ(tokens.Scan(text), JsonTokens::Scanned::kOk);
  std::size_t types = 1;
  ASSERT_EQ(tokens.SkipValue(&types), JsonTokens::Verdict::kOk);
  std::size_t concrete = ++types;
  ASSERT_EQ(tokens.SkipValue(&concrete), JsonTokens::Verdict::kOk);
  const std::vector<OpArgument> arguments =
      ReadOpArguments(tokens, {.dims = 1, .types = types, .concrete = concrete + 1});
  using Kind = OpArgument::Kind;
  ASSERT_EQ(arguments.size(), 7U);
  EXPECT_EQ(arguments[0], (OpArgument{Kind::kTensor, DType::kBfloat16, {2, 3}, 0}));
  EXPECT_EQ(arguments[1], (OpArgument{Kind::kIntegerList, DType::kOther, {1, -2}, 0}));
  EXPECT_EQ(arguments[2], (OpArgument{Kind::kBoolean, DType::kOther, {0}, 0}));
  EXPECT_EQ(arguments[3], (OpArgument{Kind::kInteger, DType::kOther, {7}, 0}));
  EXPECT_EQ(arguments[4], (OpArgument{Kind::kReal, DType::kOther, {}, 0.5}));
  EXPECT_EQ(arguments[5].kind, Kind::kNone);  // a list of tensors
  EXPECT_EQ(arguments[6].kind, Kind::kNone);
}

}  // namespace
}  // namespace flopledger
