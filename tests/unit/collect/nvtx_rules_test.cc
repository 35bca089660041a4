#include "collect/nvtx/nvtx_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace flopledger {
namespace {

using testing::HasSubstr;
using Kind = NvtxMeaning::Kind;

NvtxMeaning Step(std::int64_t number = -1) { return {.kind = Kind::kStep, .number = number}; }
NvtxMeaning Of(Phase phase) { return {.kind = Kind::kPhase, .phase = phase}; }

TEST(NvtxRulesTest, OurDomainHasFixedNames) {
  const auto book = NvtxRuleBook::Create("", "");
  const NvtxRules* ours = book->Find("flopledger");
  ASSERT_NE(ours, nullptr);
  EXPECT_EQ(ours->Match("step"), Step());
  EXPECT_EQ(ours->Match("step 12"), Step(12));
  EXPECT_EQ(ours->Match("step#7"), Step(7));
  EXPECT_EQ(ours->Match("step_0"), Step(0));
  EXPECT_EQ(ours->Match(L"step 12"), Step(12));
  for (const char* other : {"steps", "Step", "step_optimizer", "step ", "", "ste"}) {
    EXPECT_EQ(ours->Match(other), NvtxMeaning()) << other;
  }
  EXPECT_EQ(ours->Match("forward"), Of(Phase::kForward));
  EXPECT_EQ(ours->Match(L"checkpoint"), Of(Phase::kCheckpoint));
  EXPECT_EQ(ours->Match("other"), NvtxMeaning());  // what nobody named
  EXPECT_EQ(ours->Match("tokens").kind, Kind::kTokens);
  EXPECT_EQ(ours->Match(static_cast<const char*>(nullptr)), NvtxMeaning());
  EXPECT_EQ(book->Find(""), nullptr);
  EXPECT_EQ(book->Find("NCCL"), nullptr);
}

TEST(NvtxRulesTest, PatternsOfOtherDomains) {
  const auto book = NvtxRuleBook::Create("step*, ProfilerStep*,train_step@megatron",
                                         "forward=fwd*,data=load batch, eval=validate@megatron");
  ASSERT_TRUE(book) << book.error().message();
  const NvtxRules* standard = book->Find("");
  ASSERT_NE(standard, nullptr);
  EXPECT_EQ(standard->Match("step"), Step());
  EXPECT_EQ(standard->Match("step 41"), Step(41));
  EXPECT_EQ(standard->Match("ProfilerStep#12"), Step(12));
  EXPECT_EQ(standard->Match("step 7/100"), Step(7));  // the first number is the step's
  EXPECT_EQ(standard->Match("step 99999999999999999999"), Step());  // no number that can be
  EXPECT_EQ(standard->Match("train_step"), NvtxMeaning());
  EXPECT_EQ(standard->Match("fwd_attention"), Of(Phase::kForward));
  EXPECT_EQ(standard->Match("load batch"), Of(Phase::kData));
  EXPECT_EQ(standard->Match("load batches"), NvtxMeaning());
  EXPECT_EQ(standard->Match("aten::mm"), NvtxMeaning());
  const NvtxRules* megatron = book->Find("megatron");
  ASSERT_NE(megatron, nullptr);
  EXPECT_EQ(megatron->Match("train_step"), Step());
  EXPECT_EQ(megatron->Match("train_step 1"), NvtxMeaning());
  EXPECT_EQ(megatron->Match("validate"), Of(Phase::kEval));
}

TEST(NvtxRulesTest, AStarAloneTakesEveryName) {
  const auto book = NvtxRuleBook::Create("*@steps_only", "");
  EXPECT_EQ(book->Find("steps_only")->Match("anything 3"), Step(3));
  EXPECT_EQ(book->Find("steps_only")->Match(""), Step());
}

TEST(NvtxRulesTest, NamesBeyondAscii) {
  const auto book = NvtxRuleBook::Create("\xC3\xA9tape*", "");  // UTF-8
  EXPECT_EQ(book->Find("")->Match("\xC3\xA9tape 4"), Step(4));
  EXPECT_EQ(book->Find("")->Match(L"\u4e2d"), NvtxMeaning());
}

TEST(NvtxRulesTest, AWrongPatternIsNamed) {
  const auto message = [](const char* steps, const char* phases) {
    const auto book = NvtxRuleBook::Create(steps, phases);
    return book ? std::string() : book.error().message();
  };
  EXPECT_THAT(message("st*ep", ""), HasSubstr("nvtx_steps has 'st*ep'; accepted: name, name*"));
  EXPECT_THAT(message("@domain", ""), HasSubstr("nvtx_steps has '@domain'"));
  EXPECT_THAT(message("step@flopledger", ""),
              HasSubstr("names of the domain flopledger are fixed"));
  EXPECT_THAT(message("", "fwd*"), HasSubstr("nvtx_phases has 'fwd*'; accepted: phase=pattern"));
  EXPECT_THAT(message("", "foward=fwd*"), HasSubstr("of the phases forward, backward"));
  EXPECT_EQ(message(" , ,", ","), "");
}

TEST(NvtxRulesTest, AMeaningSurvivesItsPacking) {
  for (const NvtxMeaning& meaning :
       {NvtxMeaning(), Step(), Step(0), Step(123456789012345), Of(Phase::kData), Of(Phase::kEval),
        NvtxMeaning{.kind = Kind::kTokens}}) {
    EXPECT_EQ(NvtxMeaning::Unpacked(meaning.Packed()), meaning);
    EXPECT_LT(meaning.Packed(), std::uint64_t{1} << 60);  // there is room for a tag
  }
}

}  // namespace
}  // namespace flopledger
