// Cases of public bug reports on formulas and recomputation, by their ids.
#include <gtest/gtest.h>

#include "flopledger/auxiliary.h"
#include "flopledger/model_flops.h"
#include "flopledger/ratios.h"

namespace flopledger {
namespace {

Workload OneSequence(std::int64_t length) {
  return {.sequences = {{.length = length, .count = 1}}};
}

ModelFlops Transformer(const TransformerDescription& description) {
  Result<ModelFlops> model = ModelFlops::FromTransformer(description);
  EXPECT_TRUE(model.has_value()) << model.error().message();
  return *model;
}

/// Forward and backward of the parts whose kind is (or is not) core attention.
Int128 Sum(const DeclaredWork& work, bool core) {
  Int128 sum = 0;
  for (const DeclaredPart& part : work.parts) {
    if ((part.kind == PartKind::kCoreAttention) != core) continue;
    sum += (part.forward + part.backward_input + part.backward_weight).count();
  }
  return sum;
}

DeclaredPart PartOf(const DeclaredWork& work, std::string_view name) {
  for (const DeclaredPart& part : work.parts) {
    if (part.name == name) return part;
  }
  ADD_FAILURE() << "no part " << name;
  return {};
}

TEST(FormulaCases, C08GatedFfnAndItsWidth) {
  const ModelFlops model = Transformer({.layers = 32,
                                        .hidden = 4096,
                                        .query_heads = 32,
                                        .head_dim = 128,
                                        .ffn = 11008,
                                        .gated_ffn = true,
                                        .vocabulary = 32000});
  auto work = model.Evaluate(OneSequence(1));
  ASSERT_TRUE(work.has_value());
  EXPECT_EQ(ToString(PartOf(*work, "layers.attention.projections").forward.count() / 32),
            "134217728");
  EXPECT_EQ(ToString(PartOf(*work, "layers.ffn").forward.count() / 32), "270532608");
  EXPECT_EQ(PartOf(*work, "head").forward.ToString(), "262144000");
  EXPECT_EQ(ToString(Sum(*work, false)), "39642464256");
}

TEST(FormulaCases, C09ActiveExperts) {
  TransformerDescription d{.layers = 32,
                           .hidden = 4096,
                           .query_heads = 32,
                           .key_value_heads = 8,
                           .head_dim = 128,
                           .gated_ffn = true,
                           .vocabulary = 32000};
  d.experts = ExpertShape{.experts = 8, .active = 2, .expert_ffn = 14336};
  auto work = Transformer(d).Evaluate(OneSequence(1));
  ASSERT_TRUE(work.has_value());
  EXPECT_EQ(ToString(PartOf(*work, "layers.attention.projections").forward.count() / 32),
            "83886080");
  EXPECT_EQ(ToString(PartOf(*work, "layers.router").forward.count() / 32), "65536");
  EXPECT_EQ(ToString(PartOf(*work, "layers.experts").forward.count() / 32), "704643072");
  EXPECT_EQ(ToString(Sum(*work, false)), "76491522048");
}

TEST(FormulaCases, C11MasksAreLabelledAndNeverClamped) {
  const ModelFlops model = Transformer(
      {.layers = 1, .hidden = 4096, .query_heads = 32, .head_dim = 128, .ffn = 1, .vocabulary = 1});
  const auto core = [&model](AttentionMask mask) {
    auto work = model.Evaluate(OneSequence(16384), {.attention_mask = mask});
    return ToString(Sum(*work, true));
  };
  EXPECT_EQ(core(AttentionMask::kFull), "13194139533312");
  EXPECT_EQ(core(AttentionMask::kCausalHalf), "6597069766656");
  EXPECT_EQ(core(AttentionMask::kExact), "6597472419840");
  const std::array device = {DeviceGroup{.count = 1, .peak = FlopsPerSecond(312e12)}};
  const DurationNs second(1'000'000'000);
  EXPECT_NEAR(100 * *Utilization(Flops::FromInteger(189'000'000'000'000), second, device), 60.577,
              0.002);
  EXPECT_NEAR(100 * *Utilization(Flops::FromInteger(378'000'000'000'000), second, device), 121.154,
              0.002);
  EXPECT_EQ(IdentifyConvention({.attention_mask = AttentionMask::kFull}).name, "full_mask");
}

TEST(FormulaCases, C13UsefulTokensArePaddingFree) {
  // Linear forward 2176 a token: 2 x 8 x (8 + 8 + 8 + 8) projections, 2 x 2 x 8 x 48 + 2 x 8 x 8.
  const ModelFlops model =
      Transformer({.layers = 1, .hidden = 8, .query_heads = 1, .ffn = 48, .vocabulary = 8});
  Workload workload{.sequences = {{.length = 512, .count = 1},
                                  {.length = 300, .count = 1},
                                  {.length = 128, .count = 1},
                                  {.length = 60, .count = 1}}};
  workload.padded_sequences = {{.length = 512, .count = 4}};
  auto useful = model.Evaluate(workload);
  ASSERT_TRUE(useful.has_value());
  EXPECT_EQ(ToString(Sum(*useful, false)), "6528000");
  auto computed = model.Evaluate(workload, {.tokens = CountedTokens::kComputed});
  EXPECT_EQ(ToString(Sum(*computed, false)), "13369344");
}

TEST(FormulaCases, C14FrozenWeightsHaveNoWeightGradient) {
  // One frozen and one trained matrix of the case's sizes, rows of one token each.
  const auto four = FindConvention("FROZEN4");
  ASSERT_TRUE(four.has_value());
  auto frozen = ModelFlops::FromFormula("4*N*T + 6*A*T", {{"N", 70553706496}, {"A", 175636480}});
  auto work = frozen->EvaluateTotal(OneSequence(1));
  EXPECT_EQ((work->forward + work->backward).ToString(), "283268644864");
  EXPECT_NEAR((work->forward + work->backward).ToDouble() / (6.0 * (70553706496.0 + 175636480.0)),
              0.667494, 1e-6);
}

TEST(FormulaCases, C14AdaptersOverAFrozenModel) {
  TransformerDescription d{.layers = 80,
                           .hidden = 8192,
                           .query_heads = 64,
                           .key_value_heads = 8,
                           .head_dim = 128,
                           .ffn = 28672,
                           .gated_ffn = true,
                           .vocabulary = 128256};
  d.trainable = TrainableParts::None();
  d.lora = LoraShape{.rank = 16};
  auto work = Transformer(d).Evaluate(OneSequence(1), *FindConvention("FROZEN4"));
  ASSERT_TRUE(work.has_value());
  // By hand, parameters: layer 8192 x (8192 + 2 x 1024 + 8192) + 3 x 8192 x 28672; head; adapters
  // 16 x the sum of both sides of the seven matrices.
  const Int128 layer = Int128{8192} * (8192 + 2 * 1024 + 8192) + Int128{3} * 8192 * 28672;
  const Int128 frozen = 80 * layer + Int128{8192} * 128256;
  const Int128 adapters =
      Int128{80} * 16 * (2 * (8192 + 8192) + 2 * (8192 + 1024) + 3 * (8192 + 28672));
  EXPECT_EQ((work->forward + work->backward).ToString(), ToString(4 * frozen + 6 * adapters));
}

TEST(FormulaCases, C15TheDeclaredShapeWinsOverStorage) {
  auto model = ModelFlops::FromFormula(
      "4*(M*R*C + O)*T + 6*A*T",
      {{"M", 224}, {"R", 4096}, {"C", 4096}, {"O", 524550144}, {"A", 39976960}});
  auto work = model->EvaluateTotal(OneSequence(1));
  EXPECT_EQ((work->forward + work->backward).ToString(), "17370447872");
}

TEST(RecomputeCases, C16TheHeadIsNotReplayed) {
  DeclaredWork work{
      .parts = {{.name = "layers", .forward = Flops::FromInteger(800'000'000'000'000)},
                {.name = "head",
                 .forward = Flops::FromInteger(50'000'000'000'000),
                 .kind = PartKind::kHead}}};
  const Flops model =
      Flops::FromInteger(3).count() * (work.parts[0].forward + work.parts[1].forward);
  auto replayed = RecomputedFlops(work, {.layers_ratio = 1});
  ASSERT_TRUE(replayed.has_value());
  EXPECT_EQ(replayed->ToString(), "800000000000000");
  const Flops executed = model + *replayed;
  EXPECT_EQ(executed.ToString(), "3350000000000000");
  const std::array device = {DeviceGroup{.count = 1, .peak = FlopsPerSecond(989.4e12)}};
  const DurationNs wall(5'000'000'000);
  EXPECT_NEAR(100 * *Utilization(model, wall, device), 51.546, 0.002);
  EXPECT_NEAR(100 * *Utilization(executed, wall, device), 67.718, 0.002);
  EXPECT_NEAR(100 * replayed->ToDouble() / executed.ToDouble(), 23.881, 0.002);
  // A policy is a fraction: three quarters of the layers' forward.
  EXPECT_EQ(RecomputedFlops(work, {.layers_ratio = 0.75})->ToString(), "600000000000000");
  EXPECT_FALSE(RecomputedFlops(work, {.layers_ratio = 1.5}).has_value());
}

TEST(FormulaCases, C17BothAttentionMatmuls) {
  const ModelFlops model = Transformer({.layers = 57,
                                        .hidden = 3072,
                                        .query_heads = 24,
                                        .head_dim = 128,
                                        .ffn = 1,
                                        .vocabulary = 1});
  auto work = model.Evaluate(OneSequence(4096), {.attention_mask = AttentionMask::kFull});
  EXPECT_EQ(ToString(Sum(*work, true) / 4096), "8606711808");
}

TEST(FormulaCases, C18TheHeadHasItsBackward) {
  const ModelFlops model =
      Transformer({.layers = 1, .hidden = 4096, .query_heads = 32, .ffn = 1, .vocabulary = 128256});
  const DeclaredPart head = PartOf(*model.Evaluate(OneSequence(1)), "head");
  EXPECT_EQ(head.forward.ToString(), "1050673152");
  EXPECT_EQ((head.forward + head.backward_input + head.backward_weight).ToString(), "3152019456");
}

TEST(FormulaCases, C19TheObservedLengthCounts) {
  // The linear part of the case is 1e6 a token; attention 8 heads of 64 in 4 layers.
  auto model = ModelFlops::FromFormula("3*(1000000*T + 4*8*64*4*S*(S+1)/2)", {});
  auto work = model->EvaluateTotal(OneSequence(2048));
  EXPECT_EQ((work->forward + work->backward).ToString(), "57708773376");
  EXPECT_TRUE(model->NeedsSequenceLengths());
  // The same attention by shape.
  const ModelFlops shape = Transformer(
      {.layers = 4, .hidden = 512, .query_heads = 8, .head_dim = 64, .ffn = 1, .vocabulary = 1});
  EXPECT_EQ(ToString(Sum(*shape.Evaluate(OneSequence(2048)), true)),
            ToString(Int128{3} * 4 * 8 * 64 * 4 * 2098176));
}

TEST(FormulaCases, C20OptimizerMatmulsAreAuxiliary) {
  const std::array matrix = {MuonMatrix{.rows = 1024, .columns = 4096}};
  auto muon = MuonFlops(matrix);
  ASSERT_TRUE(muon.has_value());
  EXPECT_EQ(muon->ToString(), "96636764160");
  const std::array device = {DeviceGroup{.count = 1, .peak = FlopsPerSecond(989.4e12)}};
  const Flops model = Flops::FromInteger(3'000'000'000'000);
  EXPECT_NEAR(100 * *Utilization(model, DurationNs(20'000'000), device), 15.161, 0.002);
  EXPECT_NEAR(100 * *Utilization(model + *muon, DurationNs(20'000'000), device), 15.649, 0.002);
  EXPECT_EQ(MuonFlops(std::array{MuonMatrix{.rows = 4096, .columns = 1024}})->ToString(),
            "96636764160");
  EXPECT_FALSE(MuonFlops(std::array{MuonMatrix{.rows = -1, .columns = 4}}).has_value());
}

TEST(FormulaCases, C21ADeclaredFormulaForAnotherArchitecture) {
  auto model = ModelFlops::FromFormula(
      "(6*N + 3*4*H*K*V*L)*T", {{"N", 350000000}, {"H", 4}, {"K", 256}, {"V", 256}, {"L", 24}});
  ASSERT_TRUE(model.has_value()) << model.error().message();
  EXPECT_FALSE(model->NeedsSequenceLengths());
  auto work = model->EvaluateTotal(OneSequence(32768));
  const double per_token = (work->forward + work->backward).ToDouble() / 32768;
  EXPECT_EQ(per_token, 2175497472.0);
  const std::array device = {DeviceGroup{.count = 1, .peak = FlopsPerSecond(989.4e12)}};
  EXPECT_NEAR(100 * *UtilizationOfTokenRate(per_token, 180000, device), 39.578, 0.002);
}

}  // namespace
}  // namespace flopledger
