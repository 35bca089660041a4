#include "flopledger/convention.h"

#include <gtest/gtest.h>

#include <set>

namespace flopledger {
namespace {

TEST(ConventionTest, HouseIsTheDefault) {
  EXPECT_EQ(IdentifyConvention({}).name, "house");
  EXPECT_EQ(IdentifyConvention({}).hash, 14695981039346656037ULL);  // FNV-1a of nothing
  EXPECT_EQ(IdentifyConvention({.attention_mask = AttentionMask::kFull}).name, "full_mask");
  const FlopConvention odd{.attention_mask = AttentionMask::kFull, .router = false};
  EXPECT_EQ(IdentifyConvention(odd).name, "house,attention_mask=full,router=out");
}

TEST(ConventionTest, EverySwitchMovesTheHash) {
  std::set<std::uint64_t> hashes = {IdentifyConvention({}).hash};
  for (const char* text : {"attention_mask=full",
                           "attention_mask=causal_half",
                           "attention_mask=none",
                           "local_attention=out",
                           "linear_work=all_parameters",
                           "linear_work=parameters_without_input_lookup",
                           "shape=classic_gpt",
                           "embedding_as_matmul=in",
                           "router=out",
                           "multi_token_prediction=out",
                           "ffn_gate=out",
                           "vocabulary_multiple=128",
                           "backward=twice_forward",
                           "backward=every_input",
                           "backward=inputs_only",
                           "replayed_forward=core_attention",
                           "replayed_forward=layers",
                           "replayed_forward=whole_core_attention",
                           "replayed_forward=everything",
                           "score_recompute=in",
                           "tokens=computed",
                           "flops_per_multiply_add=1"}) {
    auto convention = FindConvention("house," + std::string(text));
    ASSERT_TRUE(convention.has_value()) << convention.error().message();
    EXPECT_TRUE(hashes.insert(IdentifyConvention(*convention).hash).second) << text;
  }
}

TEST(ConventionTest, NamesRoundTrip) {
  for (const NamedConvention& known : KnownConventions()) {
    auto found = FindConvention(known.name);
    ASSERT_TRUE(found.has_value());
    EXPECT_EQ(*found, known.convention);
    EXPECT_EQ(*FindConvention(IdentifyConvention(*found).name), *found);
  }
}

TEST(ConventionTest, SaysWhatWasMeant) {
  EXPECT_EQ(FindConvention("megatorn").error().message(),
            "no convention is named 'megatorn'; did you mean 'MEGATRON'?");
  EXPECT_EQ(FindConvention("house,ruoter=in").error().message(),
            "'ruoter' is no switch of a convention; did you mean 'router'?");
  EXPECT_EQ(FindConvention("house,router=maybe").error().message(),
            "switch router is 'maybe'; accepted: in, out");
}

}  // namespace
}  // namespace flopledger
