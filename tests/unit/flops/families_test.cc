#include "flopledger/families.h"

#include <gtest/gtest.h>

#include "flopledger/inference.h"
#include "flopledger/model_flops.h"

namespace flopledger {
namespace {

std::string Forward(const DeclaredWork& work, std::string_view name) {
  for (const DeclaredPart& part : work.parts) {
    if (part.name == name) return part.forward.ToString();
  }
  return "no part " + std::string(name);
}

// The integers of the recorded traces: `../shared/traces/README.md`, "Exact declared work".
TEST(TraceTruth, ResNet18OfTenImages) {
  auto net = DescribeResNet({.blocks = {2, 2, 2, 2}});
  ASSERT_TRUE(net.has_value()) << net.error().message();
  auto work = ModelFlops::FromConvNet(*net)->Evaluate({.samples = 10});
  ASSERT_TRUE(work.has_value());
  EXPECT_EQ(Forward(*work, "convolutions"), "36271226880");
  EXPECT_EQ(Forward(*work, "dense"), "10240000");
  EXPECT_EQ(work->forward.ToString(), "36281466880");
  EXPECT_EQ(work->backward.ToString(), ToString(Int128{70182174720} + 20480000));
  EXPECT_EQ((work->forward + work->backward).ToString(), "106484121600");
}

TEST(TraceTruth, ResNet50Of32Images) {
  auto net = DescribeResNet({.blocks = {3, 4, 6, 3}, .bottleneck = true});
  ASSERT_TRUE(net.has_value()) << net.error().message();
  auto work = ModelFlops::FromConvNet(*net)->Evaluate({.samples = 32});
  ASSERT_TRUE(work.has_value());
  EXPECT_EQ(Forward(*work, "convolutions"), "261576720384");
  EXPECT_EQ(Forward(*work, "dense"), "131072000");
  EXPECT_EQ(work->backward.ToString(), ToString(Int128{515600547840} + 262144000));
  EXPECT_EQ((work->forward + work->backward).ToString(), "777570484224");
}

TEST(TraceTruth, QwenPrefillOfSixteenPrompts) {
  // Qwen1.5-0.5B: 24 layers, 1024 wide, 16 heads of 64, FFN 2816 gated.
  auto model = ModelFlops::FromTransformer({.layers = 24,
                                            .hidden = 1024,
                                            .query_heads = 16,
                                            .ffn = 2816,
                                            .gated_ffn = true,
                                            .vocabulary = 151936,
                                            .tied_embeddings = true});
  ASSERT_TRUE(model.has_value());
  const Workload prefill = PrefillWorkload(559, 16);
  auto dense = model->Evaluate(prefill, {.attention_mask = AttentionMask::kFull});
  ASSERT_TRUE(dense.has_value());
  EXPECT_EQ(Forward(*dense, "layers.attention.core"), "491490115584");
  // q, k, v 1,350,498,779,136; o, gate, up, down 4,164,037,902,336.
  Int128 linear = 0;
  for (const DeclaredPart& part : dense->parts) {
    if (part.name == "layers.attention.projections" || part.name == "layers.ffn") {
      linear += part.forward.count();
    }
  }
  EXPECT_EQ(ToString(linear), ToString(Int128{1350498779136} + 4164037902336));
  EXPECT_EQ(dense->backward.ToString(), "0");
  // Logits of the last token of each prompt: 16 x 2 x 1024 x 151936.
  EXPECT_EQ(Forward(*dense, "head"), "4978638848");
  auto half = model->Evaluate(prefill, {.attention_mask = AttentionMask::kCausalHalf});
  EXPECT_EQ(Forward(*half, "layers.attention.core"), "245745057792");
}

TEST(FamiliesTest, EncoderDecoderByHand) {
  TransformerDescription encoder{
      .layers = 1, .hidden = 4, .query_heads = 1, .ffn = 8, .vocabulary = 10, .causal = false};
  TransformerDescription decoder{
      .layers = 1, .hidden = 4, .query_heads = 1, .ffn = 8, .vocabulary = 10};
  auto model = ModelFlops::FromEncoderDecoder({.encoder = encoder, .decoder = decoder});
  ASSERT_TRUE(model.has_value()) << model.error().message();
  auto work = model->Evaluate({.sequences = {{.length = 3, .count = 2, .source_length = 5}}});
  ASSERT_TRUE(work.has_value());
  // Two pairs: 10 source tokens, 6 target tokens. Per token 2 x 4 x 16 = 128 projections and
  // 2 x 2 x 4 x 8 = 128 feed-forward.
  EXPECT_EQ(Forward(*work, "encoder.attention.projections"), "1280");
  EXPECT_EQ(Forward(*work, "encoder.ffn"), "1280");
  EXPECT_EQ(Forward(*work, "encoder.attention.core"), "800");        // 2 x 2 x 8 x 25
  EXPECT_EQ(Forward(*work, "decoder.attention.core"), "192");        // 2 x 2 x 8 x 6
  EXPECT_EQ(Forward(*work, "decoder.cross_attention.core"), "480");  // 2 x 2 x 8 x 15
  // Queries and output on 6 tokens, keys and values on 10: 2 x 16 x (12 + 20).
  EXPECT_EQ(Forward(*work, "decoder.cross_attention.projections"), "1024");
  EXPECT_EQ(Forward(*work, "head"), "480");
  EXPECT_EQ(work->backward.count() == 2 * work->forward.count(), true);
}

TEST(FamiliesTest, VisionTransformerByHand) {
  VisionTransformerDescription vit{.image_size = 8,
                                   .patch_size = 4,
                                   .channels = 1,
                                   .layers = 1,
                                   .hidden = 4,
                                   .heads = 2,
                                   .ffn = 8,
                                   .classes = 3};
  auto work = ModelFlops::FromVisionTransformer(vit)->Evaluate({.samples = 2});
  ASSERT_TRUE(work.has_value());
  EXPECT_EQ(Forward(*work, "patches"), "1024");               // 2 x 4 patches x 2 x 16 x 4
  EXPECT_EQ(Forward(*work, "layers.attention.core"), "800");  // 2 x 25 pairs x 16
  EXPECT_EQ(Forward(*work, "layers.attention.projections"), "1280");
  EXPECT_EQ(Forward(*work, "classifier"), "48");
  // Everything trains: twice the forward pass, less the gradient of the images.
  EXPECT_EQ(work->backward.count() == 2 * work->forward.count() - 1024, true);
  // Frames of a video attend to themselves: the sum of squares.
  auto frames =
      ModelFlops::FromVisionTransformer(vit)->Evaluate({.sequences = {{.length = 5, .count = 2}}});
  EXPECT_EQ(frames->forward.ToString(), work->forward.ToString());
}

TEST(FamiliesTest, DiffusionTransformerRunsModulationOncePerSample) {
  DiffusionTransformerDescription dit{
      .layers = 2, .hidden = 8, .heads = 2, .ffn = 32, .patch_values = 16, .text_width = 6};
  auto model = ModelFlops::FromDiffusionTransformer(dit);
  ASSERT_TRUE(model.has_value()) << model.error().message();
  auto small = model->Evaluate({.sequences = {{.length = 4, .count = 1, .source_length = 3}}});
  auto large = model->Evaluate({.sequences = {{.length = 400, .count = 1, .source_length = 3}}});
  EXPECT_EQ(Forward(*small, "layers.modulation"), "1536");  // 2 layers x 2 x 8 x 48
  EXPECT_EQ(Forward(*large, "layers.modulation"), "1536");
  EXPECT_EQ(Forward(*small, "layers.cross_attention.core"), "768");  // 2 x 2 x 16 x 12
  EXPECT_EQ(Forward(*small, "layers.attention.core"), "1024");       // 2 x 2 x 16 x 16
  // Sampling: every step, twice with guidance.
  Workload sampling{.sequences = {{.length = 4, .count = 50 * 2, .source_length = 3}},
                    .passes = Passes::kForwardOnly};
  EXPECT_EQ(model->EvaluateTotal(sampling)->forward.count() == 100 * small->forward.count(), true);
}

TEST(FamiliesTest, UNetAddsConvolutionsAndAttention) {
  UNetDescription unet;
  unet.convolutions = {{.in_channels = 4,
                        .out_channels = 8,
                        .kernel_height = 3,
                        .kernel_width = 3,
                        .height = 4,
                        .width = 4,
                        .reads_data = true}};
  unet.attention = {
      {.tokens = 16, .hidden = 8, .heads = 2, .ffn = 32, .text_tokens = 3, .text_width = 6}};
  unet.dense = {{.in = 8, .out = 32, .reads_data = true}, {.in = 32, .out = 32}};
  auto work = ModelFlops::FromUNet(unet)->Evaluate({.samples = 1});
  ASSERT_TRUE(work.has_value());
  EXPECT_EQ(Forward(*work, "convolutions"), "9216");    // 2 x 4 x 9 x 8 x 16
  EXPECT_EQ(Forward(*work, "attention.core"), "8192");  // 16^2 x 2 x 16
  EXPECT_EQ(Forward(*work, "cross_attention.core"), "1536");
  EXPECT_EQ(Forward(*work, "time"), "2560");
  EXPECT_EQ(Forward(*work, "ffn"), "24576");  // 3 x 2 x 8 x 32 x 16
}

TEST(FamiliesTest, RecommenderCountsDotsAndNoLookUps) {
  RecommenderDescription dlrm{
      .bottom = {13, 512, 128}, .top = {479, 1024, 1}, .features = 27, .feature_width = 128};
  auto work = ModelFlops::FromRecommender(dlrm)->Evaluate({.samples = 1});
  ASSERT_TRUE(work.has_value());
  EXPECT_EQ(Forward(*work, "bottom"), ToString(Int128{2} * (13 * 512 + 512 * 128)));
  EXPECT_EQ(Forward(*work, "interaction"), ToString(Int128{27} * 26 * 128));
  EXPECT_EQ(Forward(*work, "top"), ToString(Int128{2} * (479 * 1024 + 1024)));
  // The dense features need no gradient.
  EXPECT_EQ(work->backward.count() == 2 * work->forward.count() - 2 * 13 * 512, true);
}

TEST(FamiliesTest, RecurrentMixersAreMarkedApproximate) {
  TransformerDescription d{.layers = 2, .hidden = 8, .query_heads = 2, .ffn = 16, .vocabulary = 5};
  d.mamba2 = Mamba2Shape{.inner = 16, .state = 4, .groups = 1, .heads = 2};
  d.gated_delta =
      GatedDeltaShape{.key_heads = 2, .value_heads = 2, .key_head_dim = 4, .value_head_dim = 4};
  d.runs = {{.count = 1, .mixer = MixerKind::kMamba2, .feed_forward = FfnKind::kNone},
            {.count = 1, .mixer = MixerKind::kGatedDelta}};
  auto work = ModelFlops::FromTransformer(d)->Evaluate({.sequences = {{.length = 1, .count = 1}}});
  ASSERT_TRUE(work.has_value());
  EXPECT_TRUE(work->approximate);
  // 2 h (2 d_in + 2 g n + n_h) + 2 d_in h = 2 x 8 x 42 + 256; scan 7 x 16 x 4.
  EXPECT_EQ(Forward(*work, "layers.mamba2.projections"), "928");
  EXPECT_EQ(Forward(*work, "layers.mamba2.scan"), "448");
  // qk = v = 8: 2 [h (16 + 16 + 4) + v h] = 704; 2 x 4 x (16 + 8); 2 x 4 x 2 x 16.
  EXPECT_EQ(Forward(*work, "layers.gated_delta.projections"), "704");
  EXPECT_EQ(Forward(*work, "layers.gated_delta.convolution"), "192");
  EXPECT_EQ(Forward(*work, "layers.gated_delta.state"), "256");
}

TEST(FamiliesTest, TeacherAndReferenceAddForwardPasses) {
  auto student = ModelFlops::FromTransformer(
      {.layers = 1, .hidden = 8, .query_heads = 2, .ffn = 16, .vocabulary = 5});
  auto teacher = ModelFlops::FromTransformer(
      {.layers = 3, .hidden = 8, .query_heads = 2, .ffn = 16, .vocabulary = 5});
  auto both = student->WithForwardPassesOf(*teacher, "teacher");
  ASSERT_TRUE(both.has_value());
  const Workload step{.sequences = {{.length = 7, .count = 2}}};
  auto own = student->EvaluateTotal(step);
  auto beside = teacher->EvaluateTotal(step);
  auto sum = both->Evaluate(step);
  EXPECT_EQ(sum->forward.ToString(), (own->forward + beside->forward).ToString());
  EXPECT_EQ(sum->backward.ToString(), own->backward.ToString());
  EXPECT_EQ(sum->parts.back().name, "teacher.head");
  EXPECT_FALSE(student->WithForwardPassesOf(*teacher, "teacher", 0).has_value());
}

TEST(FamiliesTest, PrefillAndDecodeOfLlama) {
  auto llama = ModelFlops::FromTransformer({.layers = 32,
                                            .hidden = 4096,
                                            .query_heads = 32,
                                            .key_value_heads = 8,
                                            .ffn = 14336,
                                            .gated_ffn = true,
                                            .vocabulary = 128256});
  // Published: prefill of 8k 131.9 TF, decode 15.5, 19.3, 83.7 GF behind 1k, 8k, 128k.
  EXPECT_NEAR(llama->EvaluateTotal(PrefillWorkload(8192))->forward.ToDouble() / 1e12, 131.9, 0.05);
  for (const auto& [context, giga] : {std::pair{1024, 15.5}, {8192, 19.3}, {131072, 83.7}}) {
    EXPECT_NEAR(llama->EvaluateTotal(DecodeWorkload(context, 1))->forward.ToDouble() / 1e9, giga,
                0.06);
  }
  // Tokens one by one are the same work as a causal piece.
  Int128 one_by_one = 0;
  for (int i = 0; i < 5; ++i) {
    one_by_one += llama->EvaluateTotal(DecodeWorkload(100 + i, 1))->forward.count();
  }
  EXPECT_EQ(llama->EvaluateTotal(DecodeWorkload(100, 5))->forward.ToString(), ToString(one_by_one));
}

TEST(FamiliesTest, SpeculationCountsAcceptedTokensAsUseful) {
  auto target = ModelFlops::FromTransformer(
      {.layers = 4, .hidden = 8, .query_heads = 2, .ffn = 16, .vocabulary = 5});
  auto draft = ModelFlops::FromTransformer(
      {.layers = 1, .hidden = 8, .query_heads = 2, .ffn = 16, .vocabulary = 5});
  auto round = EvaluateSpeculative(*target, *draft, {.context = 10, .proposed = 4, .accepted = 2});
  ASSERT_TRUE(round.has_value());
  EXPECT_EQ(round->useful.ToString(),
            target->EvaluateTotal(DecodeWorkload(10, 3))->forward.ToString());
  EXPECT_EQ(round->executed.ToString(), (target->EvaluateTotal(DecodeWorkload(10, 5))->forward +
                                         draft->EvaluateTotal(DecodeWorkload(10, 4))->forward)
                                            .ToString());
  EXPECT_FALSE(EvaluateSpeculative(*target, *draft, {.proposed = 1, .accepted = 2}).has_value());
}

TEST(FamiliesTest, AFunctionGivesNamedParts) {
  auto model = ModelFlops::FromFunction(
      "mine", [](const Workload& workload) -> Result<std::vector<DeclaredPart>> {
        return std::vector<DeclaredPart>{
            {.name = "a",
             .forward = Flops::FromInteger(workload.sequences.at(0).length),
             .backward_weight = Flops::FromInteger(5)}};
      });
  auto work = model->Evaluate({.sequences = {{.length = 7, .count = 1}}});
  EXPECT_EQ(work->forward.ToString(), "7");
  EXPECT_EQ(work->backward.ToString(), "5");
  EXPECT_FALSE(ModelFlops::FromFunction("none", nullptr).has_value());
}

}  // namespace
}  // namespace flopledger
