#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "flopledger/model_flops.h"
#include "flops/expression.h"

namespace flopledger {
namespace {

using ::testing::HasSubstr;

std::string Value(std::string_view text, const FormulaVariables& variables = {}) {
  auto expression = flops::Expression::Parse(text);
  if (!expression.has_value()) return expression.error().message();
  auto value = expression->Evaluate(variables);
  if (!value.has_value()) return value.error().message();
  return ToString(value->numerator()) +
         (value->denominator() == 1 ? "" : "/" + ToString(value->denominator()));
}

TEST(FormulaTest, IsExact) {
  EXPECT_EQ(Value("1/3 + 1/6"), "1/2");
  EXPECT_EQ(Value("0.1 + 0.2"), "3/10");
  EXPECT_EQ(Value("1.5e9"), "1500000000");
  EXPECT_EQ(Value("2^10 - 2**3"), "1016");
  EXPECT_EQ(Value("-2^2"), "-4");
  EXPECT_EQ(Value("2^-1"), "1/2");
  EXPECT_EQ(Value("2^3^2"), "512");
  EXPECT_EQ(Value("7 - 2 - 1"), "4");
  EXPECT_EQ(Value("12/2/3"), "2");
  EXPECT_EQ(Value("min(3, W) * max(1, 2)", {{"W", 5}}), "6");
  EXPECT_EQ(Value("(a_1 + B)*2", {{"a_1", 1}, {"B", 2}}), "6");
  EXPECT_EQ(Value("170141183460469231731687303715884105727"),
            "170141183460469231731687303715884105727");
}

TEST(FormulaTest, ErrorsHaveAColumn) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"", "column 1: the formula ends"},
      {"6*", "column 3: the formula ends"},
      {"6*N)", "column 4: ')' is not expected"},
      {"(6*N", "column 5: a closing parenthesis"},
      {"6 $ 2", "column 3: '$' is not expected"},
      {"system(1)", "column 1: 'system' is no function"},
      {"1e", "column 3: an exponent has no digits"},
      {"1e999", "column 1: the number leaves 128 bits"},
      {"1/0", "column 2: division by 0"},
      {"2^(1/2)", "column 2: the exponent is no integer"},
      {"2^63 * 2^63 * 2^63", "128 bits"},
      {"N", "column 1: variable 'N' has no value"},
      {"1.2.3", "column 4"},
      {"\x80", "column 1: '?'"},
      {".", "a number has no digits"},
  };
  for (const auto& [text, error] : cases) EXPECT_THAT(Value(text), HasSubstr(error)) << text;
  EXPECT_THAT(Value(std::string(5000, '1')), HasSubstr("4096"));
  EXPECT_THAT(Value(std::string(1000, '(')), HasSubstr("deeper than 64"));
  EXPECT_THAT(Value(std::string(1000, '-')), HasSubstr("deeper than 64"));
}

TEST(FormulaTest, SumsOverTheSequencesOfAPack) {
  auto model =
      ModelFlops::FromFormula("6*N*T + 12*L*H*Q*S*T", {{"N", 100}, {"L", 1}, {"H", 2}, {"Q", 3}});
  ASSERT_TRUE(model.has_value()) << model.error().message();
  auto work =
      model->EvaluateTotal({.sequences = {{.length = 10, .count = 2}, {.length = 5, .count = 1}}});
  // 600 x 25 + 72 x (2 x 100 + 25).
  EXPECT_EQ((work->forward + work->backward).ToString(), "31200");
  EXPECT_TRUE(model->NeedsSequenceLengths());
  EXPECT_FALSE(ModelFlops::FromFormula("6*N*T", {{"N", 1}})->NeedsSequenceLengths());
  auto per_sample = ModelFlops::FromFormula("9*B", {});
  EXPECT_EQ(per_sample->EvaluateTotal({.samples = 4})->forward.ToString(), "12");
}

TEST(FormulaTest, NamesWhatHasNoValue) {
  EXPECT_EQ(ModelFlops::FromFormula("6*N*T + K*J", {{"N", 1}}).error().message(),
            "formula: no value for K, J");
  EXPECT_THAT(ModelFlops::FromFormula("T", {{"T", 1}}).error().message(),
              HasSubstr("bound to the step's tokens"));
  auto negative = ModelFlops::FromFormula("-1*T", {});
  EXPECT_FALSE(negative->EvaluateTotal({.sequences = {{.length = 1, .count = 1}}}).has_value());
}

}  // namespace
}  // namespace flopledger
