#include <gtest/gtest.h>

#include <string>

#include "flops/op_rules.h"
#include "unit/flops/op_signature.h"

namespace flopledger {
namespace {

using testing::Bool;
using testing::Int;
using testing::Ints;
using testing::None;
using testing::Op;
using testing::Tensor;

OpSignature General(std::vector<std::int64_t> input, std::vector<std::int64_t> weight,
                    std::vector<std::int64_t> stride, std::vector<std::int64_t> padding,
                    std::vector<std::int64_t> dilation, bool transposed, std::int64_t groups) {
  return Op("aten::_convolution",
            {Tensor(std::move(input)), Tensor(std::move(weight)), None(), Ints(std::move(stride)),
             Ints(std::move(padding)), Ints(std::move(dilation)), Bool(transposed), Ints({0, 0}),
             Int(groups), Bool(false), Bool(false), Bool(true), Bool(true)});
}

Int128 Executed(const OpSignature& signature) {
  const OpCost cost = CountOp(signature);
  EXPECT_EQ(cost.coverage, CoverageKind::kCounted) << signature.name;
  EXPECT_EQ(cost.op_class, OpClass::kConvolution);
  return cost.executed.count();
}

TEST(OpConvolutionTest, DenseIsOneMultiplyAddPerOutputAndWeight) {
  // 2 images, 8 channels, 10 x 10, 16 filters of 3 x 3: 8 x 8 positions.
  EXPECT_EQ(Executed(General({2, 8, 10, 10}, {16, 8, 3, 3}, {1, 1}, {0, 0}, {1, 1}, false, 1)),
            2 * 2 * 64 * 16 * 8 * 9);
}

TEST(OpConvolutionTest, StridePaddingAndDilationChangeThePositions) {
  // (10 + 2 * 1 - 1 * 2 - 1) / 2 + 1 = 5
  EXPECT_EQ(Executed(General({2, 8, 10, 10}, {16, 8, 3, 3}, {2, 2}, {1, 1}, {1, 1}, false, 1)),
            2 * 2 * 25 * 16 * 8 * 9);
  // (10 - 2 * 2 - 1) / 1 + 1 = 6 and a list of one holds for both.
  EXPECT_EQ(Executed(General({2, 8, 10, 10}, {16, 8, 3, 3}, {1}, {0}, {2}, false, 1)),
            2 * 2 * 36 * 16 * 8 * 9);
}

TEST(OpConvolutionTest, GroupsAndDepthwiseSeeTheirChannelsOnly) {
  EXPECT_EQ(Executed(General({2, 8, 10, 10}, {16, 4, 3, 3}, {1, 1}, {0, 0}, {1, 1}, false, 2)),
            2 * 2 * 64 * 16 * 4 * 9);
  EXPECT_EQ(Executed(General({2, 8, 10, 10}, {8, 1, 3, 3}, {1, 1}, {0, 0}, {1, 1}, false, 8)),
            2 * 2 * 64 * 8 * 9);
}

TEST(OpConvolutionTest, TransposedCountsInputPositions) {
  // Weight is [in, out / groups, kernel]: 8 inputs, 2 groups of 4 outputs, 5 x 5 input positions.
  EXPECT_EQ(Executed(General({2, 8, 5, 5}, {8, 4, 3, 3}, {2, 2}, {0, 0}, {1, 1}, true, 2)),
            2 * 2 * 25 * 8 * 4 * 9);
}

TEST(OpConvolutionTest, BackwardIsOneMoreForEachGradientOfTheMask) {
  const auto backward = [](std::vector<std::int64_t> mask) {
    return Op(
        "aten::convolution_backward",
        {Tensor({2, 16, 8, 8}), Tensor({2, 8, 10, 10}), Tensor({16, 4, 3, 3}), None(), Ints({1, 1}),
         Ints({0, 0}), Ints({1, 1}), Bool(false), Ints({0, 0}), Int(2), Ints(std::move(mask))});
  };
  constexpr std::int64_t kForward = 2 * 2 * 64 * 16 * 4 * 9;
  EXPECT_EQ(Executed(backward({1, 1, 1})), 2 * kForward);
  EXPECT_EQ(Executed(backward({0, 1, 1})), kForward);
  EXPECT_EQ(Executed(backward({1, 0, 0})), kForward);
  EXPECT_EQ(Executed(backward({0, 0, 1})), 0);
}

TEST(OpConvolutionTest, TransposedBackwardCountsInputPositions) {
  EXPECT_EQ(Executed(Op("aten::convolution_backward",
                        {Tensor({2, 8, 11, 11}), Tensor({2, 8, 5, 5}), Tensor({8, 4, 3, 3}),
                         Ints({8}), Ints({2, 2}), Ints({0, 0}), Ints({1, 1}), Bool(true),
                         Ints({0, 0}), Int(2), Ints({1, 1, 1})})),
            2 * 2 * 2 * 25 * 8 * 4 * 9);
}

TEST(OpConvolutionTest, EveryBackendReadsItsOwnArgumentOrder) {
  // 3 rows of padding 1, stride 2, dilation 1, distinct values so that a swapped order shows.
  constexpr std::int64_t kExpected = 2 * 2 * 25 * 16 * 8 * 9;
  const OpArgument x = Tensor({2, 8, 10, 10});
  const OpArgument w = Tensor({16, 8, 3, 3});
  const OpArgument pad = Ints({1, 1});
  const OpArgument stride = Ints({2, 2});
  const OpArgument dilation = Ints({1, 1});
  const OpArgument kernel = Ints({3, 3});
  const std::vector<OpSignature> ops = {
      Op("aten::mkldnn_convolution", {x, w, None(), pad, stride, dilation, Int(1)}),
      Op("aten::miopen_convolution", {x, w, None(), pad, stride, dilation, Int(1)}),
      Op("aten::cudnn_convolution", {x, w, pad, stride, dilation, Int(1)}),
      Op("aten::cudnn_convolution_relu", {x, w, None(), stride, pad, dilation, Int(1)}),
      Op("aten::_slow_conv2d_forward", {x, w, kernel, None(), stride, pad}),
      Op("aten::slow_conv_dilated2d", {x, w, kernel, None(), stride, pad, dilation}),
      Op("mkldnn::_convolution_pointwise", {x, w, None(), pad, stride, dilation, Int(1)}),
      Op("mkldnn::_convolution_pointwise", {x, x, w, None(), pad, stride, dilation, Int(1)}),
      Op("mkldnn::_convolution_pointwise_", {x, x, w, None(), pad, stride, dilation, Int(1)}),
  };
  for (const OpSignature& op : ops) EXPECT_EQ(Executed(op), kExpected) << op.name;
  EXPECT_EQ(Executed(Op("aten::slow_conv_transpose2d", {x, Tensor({8, 16, 3, 3}), kernel, None(),
                                                        stride, pad, Ints({0, 0}), dilation})),
            2 * 2 * 100 * 8 * 16 * 9);
}

TEST(OpConvolutionTest, TimeBatchChannelLayout) {
  // 20 steps, batch 3, 8 channels, 16 filters of 5, pad 2: 20 positions.
  EXPECT_EQ(Executed(Op("aten::conv_tbc",
                        {Tensor({20, 3, 8}), Tensor({5, 8, 16}), Tensor({16}), Int(2)})),
            2 * 20 * 3 * 5 * 8 * 16);
}

TEST(OpConvolutionTest, OneAndThreeDimensions) {
  EXPECT_EQ(Executed(General({2, 8, 10}, {8, 8, 3}, {1}, {0}, {1}, false, 1)),
            2 * 2 * 8 * 8 * 8 * 3);
  EXPECT_EQ(Executed(General({2, 8, 5, 5, 5}, {8, 8, 3, 3, 3}, {1, 1, 1}, {0, 0, 0}, {1, 1, 1},
                             false, 1)),
            2 * 2 * 27 * 8 * 8 * 27);
}

TEST(OpConvolutionTest, ImpossibleGeometryIsNotCounted) {
  const std::vector<OpSignature> ops = {
      General({2, 8, 10, 10}, {16, 8, 3, 3}, {0, 0}, {0, 0}, {1, 1}, false, 1),
      General({2, 8, 2, 2}, {16, 8, 3, 3}, {1, 1}, {0, 0}, {1, 1}, false, 1),
      General({2, 8, 10, 10}, {16, 3, 3, 3}, {1, 1}, {0, 0}, {1, 1}, false, 1),
      General({2, 8, 10, 10}, {16, 8, 3}, {1, 1}, {0, 0}, {1, 1}, false, 1),
      General({2, 8, 10, 10}, {16, 8, 3, 3}, {1, 1}, {-1, -1}, {1, 1}, false, 1),
      General({2, 8, 10, 10}, {16, 8, 3, 3}, {}, {0, 0}, {1, 1}, false, 1),
      General({2, 8, 10, 10, 10}, {16, 8, 3, 3, 3}, {1, 1}, {0, 0}, {1, 1}, false, 1),
      General({2, 8}, {16, 8}, {1, 1}, {0, 0}, {1, 1}, false, 1),
  };
  for (const OpSignature& op : ops) {
    EXPECT_EQ(CountOp(op).coverage, CoverageKind::kUnknown);
    EXPECT_EQ(CountOp(op).reason, GapReason::kNoShape);
  }
}

TEST(OpConvolutionTest, TheOldOpOfBothGradients) {
  // PyTorch before 1.11: input, gradient, weight. 2 x 64 outputs of 7 x 7, a kernel of 32 x 3 x 3.
  const OpArgument input = testing::Tensor({2, 32, 7, 7});
  const OpArgument gradient = testing::Tensor({2, 64, 7, 7});
  const OpArgument weight = testing::Tensor({64, 32, 3, 3});
  const std::int64_t once = 2 * 2 * 49 * 64 * 32 * 9;
  for (const char* name :
       {"aten::cudnn_convolution_backward", "aten::miopen_convolution_backward"}) {
    EXPECT_EQ(Executed(testing::Op(name, {input, gradient, weight})), 2 * once) << name;
    EXPECT_EQ(CountOp(testing::Op(name, {input, weight, gradient})).coverage,
              CoverageKind::kUnknown);
  }
  std::vector<OpArgument> arguments = {input, gradient, weight};
  arguments.resize(10);
  arguments.push_back(testing::Ints({0, 1}));  // the weight's gradient alone
  EXPECT_EQ(Executed(testing::Op("aten::cudnn_convolution_backward", arguments)), once);
}

}  // namespace
}  // namespace flopledger
