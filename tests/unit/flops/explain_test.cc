#include "flopledger/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace flopledger {
namespace {

using ::testing::HasSubstr;

ModelFlops Llama8b() {
  return *ModelFlops::FromTransformer({.layers = 32,
                                       .hidden = 4096,
                                       .query_heads = 32,
                                       .key_value_heads = 8,
                                       .ffn = 14336,
                                       .gated_ffn = true,
                                       .vocabulary = 128256});
}

Workload Sequence(std::int64_t length) { return {.sequences = {{.length = length, .count = 1}}}; }

TEST(ExplainTest, LinesAddUpToTheTotal) {
  auto explanation = Explain(Llama8b(), Sequence(4096));
  ASSERT_TRUE(explanation.has_value());
  Int128 forward = 0;
  Int128 backward = 0;
  for (const ExplainedLine& line : explanation->lines) {
    forward += line.forward.count();
    backward += (line.backward_input + line.backward_weight).count();
  }
  EXPECT_EQ(ToString(forward), explanation->work.forward.ToString());
  EXPECT_EQ(ToString(backward), explanation->work.backward.ToString());
  const std::string text = WriteText(*explanation);
  EXPECT_THAT(text, HasSubstr("14336 -> 4096"));
  EXPECT_THAT(text, HasSubstr("pairs (causal)"));
  EXPECT_THAT(text, HasSubstr("parameters 8,030,261,248"));
}

// The published table of the error of 6N, in the causal count. The table halves the square, which
// is 1/(s+1) of attention below the triangle: nothing at its one decimal.
TEST(ExplainTest, PrintsTheErrorOfTheRuleOfThumb) {
  for (const auto& [length, percent] : {std::pair{1024, 5.1},
                                        {2048, 3.3},
                                        {4096, -0.1},
                                        {8192, -6.4},
                                        {32768, -31.9},
                                        {131072, -67.5}}) {
    auto explanation = Explain(Llama8b(), Sequence(length));
    ASSERT_TRUE(explanation->rule_of_thumb_error.has_value());
    EXPECT_NEAR(100 * *explanation->rule_of_thumb_error, percent, 0.06) << length;
  }
  auto forward = Sequence(1024);
  forward.passes = Passes::kForwardOnly;
  EXPECT_FALSE(Explain(Llama8b(), forward)->rule_of_thumb_error.has_value());
}

TEST(ExplainTest, SplitsADifferenceBySwitch) {
  auto comparison = CompareConventions(Llama8b(), Sequence(8192), {}, *FindConvention("TITAN"));
  ASSERT_TRUE(comparison.has_value());
  Int128 sum = 0;
  for (const SwitchDifference& difference : comparison->switches) sum += difference.change.count();
  EXPECT_EQ(ToString(sum), (comparison->second_total - comparison->first_total).ToString());
  ASSERT_FALSE(comparison->switches.empty());
  EXPECT_EQ(comparison->switches[0].name, "attention_mask");
  EXPECT_THAT(WriteText(*comparison), HasSubstr("attention_mask: exact -> full"));
  auto same = CompareConventions(Llama8b(), Sequence(8192), {}, {});
  EXPECT_TRUE(same->switches.empty());
}

TEST(ExplainTest, AFormulaTextExplainsItself) {
  auto model = ModelFlops::FromFormula("6*N*T", {{"N", 10}});
  auto explanation = Explain(*model, Sequence(2));
  ASSERT_TRUE(explanation.has_value());
  EXPECT_TRUE(explanation->lines.empty());
  EXPECT_THAT(WriteText(*explanation), HasSubstr("total    120 FLOPs"));
}

}  // namespace
}  // namespace flopledger
