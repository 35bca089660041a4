#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "flops/op_rules.h"
#include "unit/flops/op_signature.h"

namespace flopledger {
namespace {

using testing::Bool;
using testing::Int;
using testing::None;
using testing::Op;
using testing::Real;
using testing::Tensor;

const OpArgument kSquare = Tensor({1, 12, 64, 64});

OpSignature CpuForward(OpArgument q, OpArgument k, OpArgument v, bool causal,
                       OpArgument mask = None()) {
  return Op(
      "aten::_scaled_dot_product_flash_attention_for_cpu",
      {std::move(q), std::move(k), std::move(v), Real(), Bool(causal), std::move(mask), None()});
}

OpSignature CpuBackward(OpArgument q, OpArgument k, OpArgument v, bool causal) {
  OpArgument out = q;
  OpArgument gradient = q;
  return Op("aten::_scaled_dot_product_flash_attention_for_cpu_backward",
            {std::move(gradient), std::move(q), std::move(k), std::move(v), std::move(out),
             Tensor({1}), Real(), Bool(causal), None(), None()});
}

Int128 Executed(const OpSignature& signature) {
  const OpCost cost = CountOp(signature);
  EXPECT_EQ(cost.coverage, CoverageKind::kCounted) << signature.name;
  EXPECT_EQ(cost.op_class, OpClass::kAttention);
  return cost.executed.count();
}

/// Pairs by looking at every one: query i sees keys i + offset - left to i + offset + right.
std::int64_t CountedPairs(std::int64_t queries, std::int64_t keys, std::int64_t offset,
                          std::int64_t left, std::int64_t right) {
  std::int64_t pairs = 0;
  for (std::int64_t i = 0; i < queries; ++i) {
    for (std::int64_t j = 0; j < keys; ++j) {
      const std::int64_t distance = j - (i + offset);
      if (distance >= -left && distance <= right) ++pairs;
    }
  }
  return pairs;
}

constexpr std::int64_t kUnlimited = 1000;

TEST(OpAttentionTest, FullMaskIsFourPerPairAndDimension) {
  EXPECT_EQ(Executed(CpuForward(kSquare, kSquare, kSquare, false)), 12582912);
}

TEST(OpAttentionTest, CausalCountsTruePairs) {
  // 64 * 65 / 2 = 2080 pairs a head.
  EXPECT_EQ(Executed(CpuForward(kSquare, kSquare, kSquare, true)), 4 * 12 * 2080 * 64);
}

TEST(OpAttentionTest, MaskTensorCountsAllPairs) {
  EXPECT_EQ(Executed(CpuForward(kSquare, kSquare, kSquare, false, Tensor({64, 64}))), 12582912);
}

TEST(OpAttentionTest, BackwardIsFiveMatmulsOneOfThemExcess) {
  const Int128 forward = Executed(CpuForward(kSquare, kSquare, kSquare, true));
  const OpCost backward = CountOp(CpuBackward(kSquare, kSquare, kSquare, true));
  EXPECT_EQ(2 * backward.executed.count(), 5 * forward);
  ASSERT_EQ(backward.excess.size(), 1U);
  EXPECT_EQ(backward.excess[0].cause, "attention_score_recompute");
  EXPECT_EQ(2 * backward.excess[0].flops.count(), forward);
}

TEST(OpAttentionTest, ValueWidthMayDiffer) {
  // d_q = 24, d_v = 16: scores at 24, mixing at 16; backward three at 24 and two at 16.
  const OpArgument q = Tensor({2, 4, 10, 24});
  const OpArgument v = Tensor({2, 4, 10, 16});
  EXPECT_EQ(Executed(CpuForward(q, q, v, false)), 2 * 2 * 4 * 100 * (24 + 16));
  const OpCost backward = CountOp(CpuBackward(q, q, v, false));
  EXPECT_EQ(backward.executed.count(), 2 * 2 * 4 * 100 * (3 * 24 + 2 * 16));
  EXPECT_EQ(backward.excess.at(0).flops.count(), 2 * 2 * 4 * 100 * 24);
}

TEST(OpAttentionTest, GroupedKeysCountEveryQueryHead) {
  EXPECT_EQ(Executed(CpuForward(Tensor({1, 12, 64, 64}), Tensor({1, 4, 64, 64}),
                                Tensor({1, 4, 64, 64}), false)),
            12582912);
  EXPECT_EQ(CountOp(CpuForward(Tensor({1, 12, 64, 64}), Tensor({1, 5, 64, 64}),
                               Tensor({1, 5, 64, 64}), false))
                .coverage,
            CoverageKind::kUnknown);
}

TEST(OpAttentionTest, CausalOfUnequalLengthsFollowsTheOpsAlignment) {
  for (std::int64_t queries : {1, 2, 5, 9}) {
    for (std::int64_t keys : {1, 3, 5, 12}) {
      const OpArgument q = Tensor({1, 1, queries, 1});
      const OpArgument k = Tensor({1, 1, keys, 1});
      EXPECT_EQ(Executed(CpuForward(q, k, k, true)),
                4 * CountedPairs(queries, keys, 0, kUnlimited, 0));
      EXPECT_EQ(Executed(Op("aten::_scaled_dot_product_efficient_attention",
                            {q, k, k, None(), Bool(true), Real(), Bool(true), None()})),
                4 * CountedPairs(queries, keys, 0, kUnlimited, 0));
      EXPECT_EQ(Executed(Op("aten::_scaled_dot_product_flash_attention",
                            {q, k, k, Real(), Bool(true), Bool(false), None()})),
                4 * CountedPairs(queries, keys, keys - queries, kUnlimited, 0));
    }
  }
}

TEST(OpAttentionTest, FlashWindowsCountWhatTheyLeave) {
  for (std::int64_t queries : {1, 4, 9}) {
    for (std::int64_t keys : {1, 4, 13}) {
      for (std::int64_t left : {-1, 0, 2, 20}) {
        for (std::int64_t right : {-1, 0, 3}) {
          for (bool causal : {false, true}) {
            const OpArgument q = Tensor({1, queries, 1, 1});  // [batch, sequence, head, dim]
            const OpArgument k = Tensor({1, keys, 1, 1});
            const std::int64_t pairs =
                CountedPairs(queries, keys, keys - queries, left < 0 ? kUnlimited : left,
                             causal ? 0 : (right < 0 ? kUnlimited : right));
            EXPECT_EQ(Executed(Op("aten::_flash_attention_forward",
                                  {q, k, k, None(), None(), Int(queries), Int(keys), Real(),
                                   Bool(causal), Bool(false), None(), Int(left), Int(right)})),
                      4 * pairs)
                << queries << " " << keys << " " << left << " " << right << " " << causal;
          }
        }
      }
    }
  }
}

TEST(OpAttentionTest, HeadsLastLayoutReadsTheSequenceFromTheSecondDimension) {
  const OpArgument q = Tensor({2, 64, 12, 32});
  EXPECT_EQ(Executed(Op("aten::_efficient_attention_forward",
                        {q, q, q, None(), None(), None(), None(), None(), Real(), Int(1),
                         Bool(true), None(), None(), None()})),
            Int128{4} * 2 * 12 * 2080 * 32);
}

TEST(OpAttentionTest, PackedSequencesHaveLengthsThatNobodySees) {
  const OpArgument q = Tensor({1, 64, 12, 32});
  const OpCost cost = CountOp(
      Op("aten::_flash_attention_forward", {q, q, q, Tensor({3}), Tensor({3}), Int(40), Int(40),
                                            Real(), Bool(true), Bool(false), None()}));
  EXPECT_EQ(cost.coverage, CoverageKind::kUnknown);
  EXPECT_EQ(cost.reason, GapReason::kNoShape);
}

TEST(OpAttentionTest, EveryFusedBackwardIsTwoAndAHalfForwards) {
  const OpArgument q = Tensor({2, 3, 8, 4});
  const OpArgument t = Tensor({1});
  const Int128 forward = 4 * 2 * 3 * 36 * 4;  // 8 * 9 / 2 pairs
  const std::vector<OpSignature> ops = {
      Op("aten::_scaled_dot_product_flash_attention_backward",
         {q, q, q, q, q, t, None(), None(), Int(8), Int(8), Real(), Bool(true), t, t, None()}),
      Op("aten::_scaled_dot_product_efficient_attention_backward",
         {q, q, q, q, None(), q, t, t, t, Real(), testing::Ints({1, 1, 1, 0}), Bool(true), None()}),
      Op("aten::_scaled_dot_product_cudnn_attention_backward",
         {q, q, q, q, q, t, t, t, None(), None(), None(), Int(8), Int(8), Real(), Bool(true),
          None()}),
      Op("aten::_scaled_dot_product_fused_attention_overrideable_backward",
         {q, q, q, q, None(), testing::Ints({1, 1, 1, 0}), q, t, None(), None(), Int(8), Int(8),
          Real(), Bool(true), t, t, None()}),
  };
  for (const OpSignature& op : ops) {
    EXPECT_EQ(2 * Executed(op), 5 * forward) << op.name;
    EXPECT_EQ(2 * CountOp(op).excess.at(0).flops.count(), forward) << op.name;
  }
}

TEST(OpAttentionTest, OperandsThatDoNotFitAreNotCounted) {
  const OpArgument q = Tensor({2, 3, 8, 4});
  for (const OpArgument& other : {Tensor({2, 3, 8, 5}), Tensor({1, 3, 8, 4}), Tensor({2, 3, 8}),
                                  Tensor({2, 0, 8, 4}), None()}) {
    EXPECT_EQ(CountOp(CpuForward(q, other, other, false)).reason, GapReason::kNoShape);
    EXPECT_EQ(CountOp(CpuForward(q, other, other, false)).coverage, CoverageKind::kUnknown);
  }
  EXPECT_EQ(CountOp(CpuForward(q, q, Tensor({2, 3, 9, 4}), false)).coverage,
            CoverageKind::kUnknown);
  EXPECT_EQ(
      Executed(CpuForward(Tensor({2, 3, 8, 4}), Tensor({2, 3, 0, 4}), Tensor({2, 3, 0, 4}), true)),
      0);
}

TEST(OpAttentionTest, AllPairsIgnoreTheMaskAndNothingElse) {
  const OpArgument q = Tensor({2, 3, 8, 4});
  // 2 matmuls of 4 for each of 8 x 8 pairs, or of 8 x 9 / 2.
  const OpSignature causal = CpuForward(q, q, q, true);
  EXPECT_EQ(Executed(causal), 2 * 2 * 3 * (4 + 4) * 36);
  EXPECT_EQ(CountOpAllPairs(causal)->count(), 2 * 2 * 3 * (4 + 4) * 64);
  EXPECT_EQ(CountOpAllPairs(CpuForward(q, q, q, false)), CountOpAllPairs(causal));
  const OpSignature matmul = testing::Op("aten::mm", {Tensor({2, 3}), Tensor({3, 4})});
  EXPECT_EQ(CountOpAllPairs(matmul)->count(), 2 * 2 * 3 * 4);
  EXPECT_FALSE(CountOpAllPairs(testing::Op("aten::mm", {Tensor({2, 3})})).has_value());
  EXPECT_FALSE(CountOpAllPairs(testing::Op("aten::relu", {q})).has_value());
}

}  // namespace
}  // namespace flopledger
