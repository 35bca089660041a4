#include "flops/op_rules.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <string>

#include "unit/flops/op_signature.h"

namespace flopledger {
namespace {

using testing::Bool;
using ::testing::Contains;
using testing::Int;
using testing::Ints;
using testing::None;
using ::testing::Not;
using testing::Op;
using testing::Real;
using testing::Tensor;

Int128 Executed(const OpSignature& signature) {
  const OpCost cost = CountOp(signature);
  EXPECT_EQ(cost.coverage, CoverageKind::kCounted) << signature.name;
  return cost.executed.count();
}

void ExpectUnknown(const OpSignature& signature, GapReason reason) {
  const OpCost cost = CountOp(signature);
  EXPECT_EQ(cost.coverage, CoverageKind::kUnknown) << signature.name;
  EXPECT_EQ(cost.reason, reason) << signature.name;
  EXPECT_EQ(cost.executed, Flops());
}

TEST(OpRulesTest, EveryMatmulFormCountsTwoPerMultiplyAdd) {
  EXPECT_EQ(Executed(Op("aten::mm", {Tensor({5, 7}), Tensor({7, 3})})), 210);
  EXPECT_EQ(Executed(Op("aten::addmm", {Tensor({3}), Tensor({5, 7}), Tensor({7, 3}), Int(1)})),
            210);
  EXPECT_EQ(Executed(Op("aten::addmm_", {Tensor({5, 3}), Tensor({5, 7}), Tensor({7, 3})})), 210);
  EXPECT_EQ(Executed(Op("aten::baddbmm",
                        {Tensor({2, 5, 7}), Tensor({2, 5, 6}), Tensor({2, 6, 7}), Int(1), Int(1)})),
            840);
  EXPECT_EQ(Executed(Op("aten::bmm", {Tensor({2, 5, 6}), Tensor({2, 6, 7})})), 840);
  EXPECT_EQ(Executed(Op("aten::addbmm", {Tensor({5, 7}), Tensor({2, 5, 6}), Tensor({2, 6, 7})})),
            840);
  EXPECT_EQ(Executed(Op("aten::mv", {Tensor({5, 7}), Tensor({7})})), 70);
  EXPECT_EQ(Executed(Op("aten::addmv", {Tensor({5}), Tensor({5, 7}), Tensor({7})})), 70);
  EXPECT_EQ(Executed(Op("aten::dot", {Tensor({7}), Tensor({7})})), 14);
  EXPECT_EQ(Executed(Op("aten::mkldnn_linear", {Tensor({4, 5, 7}), Tensor({3, 7}), None()})),
            2 * 4 * 5 * 7 * 3);
  EXPECT_EQ(Executed(Op("aten::_scaled_mm", {Tensor({16, 32}, DType::kFloat8),
                                             Tensor({32, 64}, DType::kFloat8), Tensor({1})})),
            65536);
}

TEST(OpRulesTest, ContractionsOutsideOfModulesArriveAsTheirKernels) {
  // einsum bhid,bhjd->bhij with b=2 h=3 i=5 j=7 d=4 is one bmm of 6 matrices; baddbmm 2x5x6x7; a@b.
  const Int128 total =
      Executed(Op("aten::bmm", {Tensor({6, 5, 4}), Tensor({6, 4, 7})})) +
      Executed(Op("aten::baddbmm", {Tensor({2, 5, 7}), Tensor({2, 5, 6}), Tensor({2, 6, 7})})) +
      Executed(Op("aten::mm", {Tensor({5, 7}), Tensor({7, 3})}));
  EXPECT_EQ(total, 2730);
}

TEST(OpRulesTest, MultilayerPerceptronIsNotAMacCount) {
  Int128 total = 0;
  const std::vector<std::int64_t> widths = {784, 512, 512, 10};
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    total += Executed(Op("aten::addmm", {Tensor({widths[i + 1]}), Tensor({64, widths[i]}),
                                         Tensor({widths[i], widths[i + 1]})}));
  }
  EXPECT_EQ(total, 85590016);
}

TEST(OpRulesTest, OptimizerMatmulsCountLikeAnyOther) {
  // Newton-Schulz on 1024 x 4096: X X^T, A A, B X; five steps.
  const Int128 step = Executed(Op("aten::mm", {Tensor({1024, 4096}), Tensor({4096, 1024})})) +
                      Executed(Op("aten::mm", {Tensor({1024, 1024}), Tensor({1024, 1024})})) +
                      Executed(Op("aten::mm", {Tensor({1024, 1024}), Tensor({1024, 4096})}));
  EXPECT_EQ(5 * step, Int128{96636764160});
}

TEST(OpRulesTest, GroupedMatmulIsTheSumOfItsGroups) {
  // 24 rows shared out over 3 experts of 8 x 5.
  EXPECT_EQ(Executed(Op("aten::_grouped_mm", {Tensor({24, 8}), Tensor({3, 8, 5}), Tensor({3})})),
            2 * 24 * 8 * 5);
  // The weight gradient: each group contracts its share of the 24 rows.
  EXPECT_EQ(Executed(Op("aten::_grouped_mm", {Tensor({8, 24}), Tensor({24, 5}), Tensor({3})})),
            2 * 24 * 8 * 5);
  EXPECT_EQ(Executed(Op("aten::_grouped_mm", {Tensor({3, 4, 8}), Tensor({8, 24}), Tensor({3})})),
            2 * 4 * 8 * 24);
  EXPECT_EQ(Executed(Op("aten::_grouped_mm", {Tensor({3, 4, 8}), Tensor({3, 8, 5})})),
            3 * 2 * 4 * 8 * 5);
}

TEST(OpRulesTest, FusedRecurrentLayerCountsItsGates) {
  // LSTM: 4 gates of 16, 10 inputs, 7 steps, batch 3; backward is one gradient for the data and one
  // for the weights.
  const std::vector<OpArgument> arguments = {Tensor({7, 3, 10}), Tensor({64, 10}),
                                             Tensor({64, 16}),   Tensor({64}),
                                             Tensor({64}),       Tensor({1, 3, 16})};
  const Int128 forward = 2 * 7 * 3 * (64 * 10 + 64 * 16);
  EXPECT_EQ(Executed(Op("aten::mkldnn_rnn_layer", arguments)), forward);
  EXPECT_EQ(Executed(Op("aten::mkldnn_rnn_layer_backward", arguments)), 2 * forward);
}

TEST(OpRulesTest, CompositesNeverCount) {
  for (std::string name :
       {"aten::linear", "aten::matmul", "aten::einsum", "aten::tensordot", "aten::reshape",
        "aten::convolution", "aten::conv2d", "aten::scaled_dot_product_attention",
        "aten::_scaled_dot_product_attention_math", "aten::inner", "aten::chain_matmul",
        "aten::lstm", "flopledger::composite", "autograd::engine::evaluate_function: MmBackward0",
        "detach"}) {
    const OpCost cost = CountOp(Op(name, {Tensor({5, 7}), Tensor({7, 3})}));
    EXPECT_EQ(cost.coverage, CoverageKind::kOutside) << name;
    EXPECT_EQ(cost.op_class, OpClass::kComposite) << name;
    EXPECT_EQ(cost.executed, Flops()) << name;
    EXPECT_EQ(ActivityOf(cost.op_class), ActivityClass::kNone) << name;
  }
}

TEST(OpRulesTest, CompositeAndKernelOfOneCallCountOnce) {
  const std::vector<OpArgument> call = {Tensor({2, 5, 9, 4}), Tensor({2, 5, 9, 4}),
                                        Tensor({2, 5, 9, 4}), Real(), Bool(false)};
  const Flops total =
      CountOp(Op("aten::scaled_dot_product_attention", call)).executed +
      CountOp(Op("aten::_scaled_dot_product_flash_attention_for_cpu", call)).executed;
  EXPECT_EQ(total.count(), 12960);
}

TEST(OpRulesTest, DtypeIsTheOperandsNotTheBias) {
  EXPECT_EQ(
      CountOp(Op("aten::addmm", {Tensor({3}, DType::kFloat32), Tensor({5, 7}, DType::kBfloat16),
                                 Tensor({7, 3}, DType::kBfloat16)}))
          .dtype,
      DType::kBfloat16);
}

TEST(OpRulesTest, IntegerOrComplexMatmulHasNoRule) {
  ExpectUnknown(Op("aten::mm", {Tensor({5, 7}, DType::kOther), Tensor({7, 3}, DType::kOther)}),
                GapReason::kNoRule);
}

TEST(OpRulesTest, OutsideOpsHaveAClass) {
  const std::vector<std::pair<std::string, OpClass>> expected = {
      {"aten::add_", OpClass::kElementwise},
      {"aten::gelu_backward", OpClass::kElementwise},
      {"aten::silu", OpClass::kElementwise},
      {"aten::_foreach_addcdiv_", OpClass::kElementwise},
      {"aten::_fused_adamw_", OpClass::kElementwise},
      {"aten::_foreach_norm", OpClass::kReduction},
      {"aten::native_layer_norm_backward", OpClass::kNormalization},
      {"aten::_softmax_backward_data", OpClass::kNormalization},
      {"aten::nll_loss_backward", OpClass::kReduction},
      {"aten::embedding_dense_backward", OpClass::kIndexing},
      {"aten::index_select", OpClass::kIndexing},
      {"aten::native_dropout_backward", OpClass::kRandom},
      {"aten::bernoulli_", OpClass::kRandom},
      {"aten::copy_", OpClass::kCopy},
      {"aten::_foreach_copy_", OpClass::kCopy},
      {"aten::view_copy", OpClass::kCopy},
      {"aten::cat", OpClass::kCopy},
      {"aten::view", OpClass::kComposite},
      {"aten::empty_strided", OpClass::kComposite},
      {"c10d::allreduce_", OpClass::kCommunication},
      {"_c10d_functional::all_gather_into_tensor", OpClass::kCommunication},
  };
  for (const auto& [name, op_class] : expected) {
    const OpCost cost = CountOp(Op(name));
    EXPECT_EQ(cost.coverage, CoverageKind::kOutside) << name;
    EXPECT_EQ(cost.op_class, op_class) << name;
    EXPECT_EQ(ClassifyOp(Op(name)), op_class) << name;
  }
}

TEST(OpRulesTest, OpsWithoutARuleAreUnknownNotZero) {
  for (std::string name :
       {"mylib::fast_attention", "aten::linalg_svd", "aten::linear_backward", "aten::no_such_op",
        "aten::", "", "mm", "aten::_foreach_mm", "aten::_foreach_linear"}) {
    ExpectUnknown(Op(name, {Tensor({5, 7}), Tensor({7, 3})}), GapReason::kNoRule);
    EXPECT_EQ(ClassifyOp(Op(name)), OpClass::kUnknown) << name;
  }
}

TEST(OpRulesTest, CountedOpWithoutShapesIsAGapOfItsClass) {
  ExpectUnknown(Op("aten::mm"), GapReason::kNoShape);
  EXPECT_EQ(CountOp(Op("aten::mm")).op_class, OpClass::kMatmul);
  EXPECT_EQ(ClassifyOp(Op("aten::mm")), OpClass::kMatmul);
}

TEST(OpRulesTest, ContradictingShapesAreNotCounted) {
  ExpectUnknown(Op("aten::mm", {Tensor({5, 7}), Tensor({8, 3})}), GapReason::kNoShape);
  ExpectUnknown(Op("aten::mm", {Tensor({5, 7, 1}), Tensor({7, 3})}), GapReason::kNoShape);
  ExpectUnknown(Op("aten::bmm", {Tensor({2, 5, 7}), Tensor({3, 7, 3})}), GapReason::kNoShape);
  ExpectUnknown(Op("aten::mm", {Int(5), Tensor({7, 3})}), GapReason::kNoShape);
  ExpectUnknown(Op("aten::mkldnn_linear", {Tensor({}), Tensor({3, 7})}), GapReason::kNoShape);
}

TEST(OpRulesTest, EmptyMatmulIsZeroAndCounted) {
  EXPECT_EQ(Executed(Op("aten::mm", {Tensor({0, 7}), Tensor({7, 3})})), 0);
}

TEST(OpRulesTest, NegativeAndHugeDimensionsAreNotCounted) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  ExpectUnknown(Op("aten::mm", {Tensor({-5, 7}), Tensor({7, 3})}), GapReason::kNoShape);
  ExpectUnknown(Op("aten::mm", {Tensor({kMost, kMost}), Tensor({kMost, kMost})}),
                GapReason::kNoShape);
  // Every dimension is possible by itself; the product leaves 128 bits.
  constexpr std::int64_t kLarge = std::int64_t{1} << 48;
  ExpectUnknown(Op("aten::mm", {Tensor({kLarge, kLarge}), Tensor({kLarge, kLarge})}),
                GapReason::kNoShape);
}

TEST(OpRulesTest, LargestRealisticMatmulIsExact) {
  // 2^40 x 2^20 x 2^20: beyond 64 bits, exact in 128.
  EXPECT_EQ(Executed(Op("aten::mm",
                        {Tensor({std::int64_t{1} << 40, 1 << 20}), Tensor({1 << 20, 1 << 20})})),
            Int128{1} << 81);
}

TEST(OpRulesTest, EveryCountedNameSurvivesHostileArguments) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  const std::vector<OpArgument> hostile = {
      None(),
      Tensor({}),
      Tensor({0}),
      Tensor({-1, -1, -1, -1}),
      Tensor({kMost, kMost, kMost, kMost}),
      Tensor({1, 0, 0, 1}),
      Tensor({kLeast, 2}),
      Int(kMost),
      Int(kLeast),
      Ints({}),
      Ints({0}),
      Ints({kMost, kLeast}),
      Bool(true),
      Real(),
      {OpArgument::Kind::kText, DType::kOther, {}, 0},
      {OpArgument::Kind::kBoolean, DType::kOther, {}, 0},
      {OpArgument::Kind::kInteger, DType::kOther, {}, 0},
  };
  for (std::string_view name : CountedOpNames()) {
    for (const OpArgument& argument : hostile) {
      for (std::size_t count : {1U, 2U, 3U, 5U, 12U, 20U}) {
        const OpCost cost =
            CountOp(Op(std::string(name), std::vector<OpArgument>(count, argument)));
        EXPECT_GE(cost.executed, Flops()) << name;
      }
    }
  }
}

TEST(OpRulesTest, CountedNamesAreSortedAndUnique) {
  const std::vector<std::string_view> names = CountedOpNames();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(std::set<std::string_view>(names.begin(), names.end()).size(), names.size());
  EXPECT_THAT(names, Contains("aten::mm"));
  EXPECT_THAT(names, Not(Contains("aten::linear")));
}

}  // namespace
}  // namespace flopledger
