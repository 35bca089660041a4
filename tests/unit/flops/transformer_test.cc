#include <gtest/gtest.h>

#include "flopledger/model_flops.h"

namespace flopledger {
namespace {

/// The tiny GQA model of the public reports, forward 9344 by hand: per token and layer 384 for the
/// projections and 576 for the gated FFN, head 256; pairs 10, core 4 x 4 x 2 x 10 a layer.
TransformerDescription TinyGqa(bool tied) {
  return {.layers = 2,
          .hidden = 8,
          .query_heads = 4,
          .key_value_heads = 2,
          .head_dim = 2,
          .ffn = 12,
          .gated_ffn = true,
          .vocabulary = 16,
          .tied_embeddings = tied};
}

std::string Total(const Result<DeclaredWork>& work) {
  if (!work.has_value()) return work.error().message();
  return (work->forward + work->backward).ToString();
}

TEST(TransformerCases, C07GroupedQueryProjections) {
  auto model = ModelFlops::FromTransformer(TinyGqa(false));
  ASSERT_TRUE(model.has_value());
  auto work = model->Evaluate({.sequences = {{.length = 4, .count = 1}}});
  ASSERT_TRUE(work.has_value());
  EXPECT_EQ(work->forward.ToString(), "9344");
  EXPECT_EQ(Total(work), "28032");
  // By hand: 2 layers x 4 tokens x (384, 576), head 4 x 256, core 2 x 4 x 4 x 2 x 10 pairs.
  ASSERT_EQ(work->parts.size(), 4u);
  EXPECT_EQ(work->parts[0].name, "layers.attention.projections");
  EXPECT_EQ(work->parts[0].forward.ToString(), "3072");
  EXPECT_EQ(work->parts[1].name, "layers.attention.core");
  EXPECT_EQ(work->parts[1].forward.ToString(), "640");
  EXPECT_EQ(work->parts[2].name, "layers.ffn");
  EXPECT_EQ(work->parts[2].forward.ToString(), "4608");
  EXPECT_EQ(work->parts[3].name, "head");
  EXPECT_EQ(work->parts[3].forward.ToString(), "1024");
}

TEST(TransformerCases, C10TiedEmbeddingsMoveParametersNotWork) {
  auto untied = ModelFlops::FromTransformer(TinyGqa(false));
  auto tied = ModelFlops::FromTransformer(TinyGqa(true));
  const Workload workload{.sequences = {{.length = 4, .count = 1}}};
  EXPECT_EQ(Total(untied->Evaluate(workload)), "28032");
  EXPECT_EQ(Total(tied->Evaluate(workload)), "28032");
  EXPECT_EQ(ToString(untied->Size().parameters - tied->Size().parameters), "128");
}

TEST(TransformerCases, C12PackedSequences) {
  auto model = ModelFlops::FromTransformer(
      {.layers = 2, .hidden = 8, .query_heads = 4, .head_dim = 2, .ffn = 12, .vocabulary = 16});
  auto work =
      model->Evaluate({.sequences = {{.length = 1024, .count = 1}, {.length = 512, .count = 2}}});
  ASSERT_TRUE(work.has_value());
  EXPECT_EQ(work->parts[1].name, "layers.attention.core");
  EXPECT_EQ(work->parts[1].forward.ToString(), "50397184");
  EXPECT_EQ(work->parts[1].backward_input.ToString(), "100794368");
  EXPECT_EQ(work->parts[1].backward_weight.ToString(), "0");
}

TEST(TransformerTest, NamesEveryMissingField) {
  auto model = ModelFlops::FromTransformer({.layers = 2, .query_heads = 4, .window = -3});
  ASSERT_FALSE(model.has_value());
  EXPECT_EQ(model.error().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(model.error().message(),
            "transformer description: missing hidden, ffn, vocabulary; window is -3 (accepted: 1 "
            "to 2^30)");
}

TEST(TransformerTest, RefusesAWorkloadThatCannotBe) {
  auto model = ModelFlops::FromTransformer(TinyGqa(false));
  auto work = model->Evaluate({.sequences = {{.length = 4, .count = 1}, {.length = -1}}});
  ASSERT_FALSE(work.has_value());
  EXPECT_EQ(work.error().message(), "sequences[1].length is -1; accepted: 0 to 2^53");
}

TEST(TransformerTest, RefusesInsteadOfWrapping) {
  auto model = ModelFlops::FromTransformer({.layers = 1 << 30,
                                            .hidden = 1 << 30,
                                            .query_heads = 1 << 20,
                                            .ffn = 1 << 30,
                                            .vocabulary = 1 << 30});
  ASSERT_TRUE(model.has_value()) << model.error().message();
  const Workload huge{.sequences = {{.length = std::int64_t{1} << 53, .count = 1 << 30}}};
  auto work = model->Evaluate(huge);
  ASSERT_FALSE(work.has_value());
  EXPECT_EQ(work.error().code(), StatusCode::kOverflow);
  EXPECT_EQ(model->EvaluateTotal(huge).error().code(), StatusCode::kOverflow);
}

TEST(TransformerTest, DescribesItself) {
  EXPECT_EQ(ModelFlops::FromTransformer(TinyGqa(false))->Describe(),
            "transformer L=2 h=8 heads=4/2 ffn=12 V=16");
}

}  // namespace
}  // namespace flopledger
