#include "flops/op_count_rules.h"

namespace flopledger {
namespace {

using Sizes = std::span<const std::int64_t>;
using Work = std::optional<CountedWork>;

constexpr std::size_t kAbsent = static_cast<std::size_t>(-1);

Work Counted(Count flops) {
  if (!flops) return std::nullopt;
  return CountedWork{*flops, 0};
}

/// Value of a list for spatial dimension `i`; a list of one holds for all.
std::optional<std::int64_t> At(const ArgumentReader& arguments, std::size_t index, std::size_t i,
                               std::int64_t absent) {
  if (index == kAbsent) return absent;
  const auto list = arguments.List(index);
  if (!list || list->empty()) return std::nullopt;
  if (list->size() > 1 && i >= list->size()) return std::nullopt;
  const std::int64_t value = (*list)[list->size() == 1 ? 0 : i];
  if (value < 0 || value > ArgumentReader::kLargestDimension) return std::nullopt;
  return value;
}

struct Geometry {
  std::size_t stride = kAbsent;
  std::size_t padding = kAbsent;
  std::size_t dilation = kAbsent;
};

/// Positions of the output, from input [n, c, space...] and weight [out, c / groups, kernel...].
Count OutputPositions(const ArgumentReader& arguments, Sizes input, Sizes weight,
                      const Geometry& geometry) {
  Count positions = 1;
  for (std::size_t i = 2; i < input.size(); ++i) {
    const auto stride = At(arguments, geometry.stride, i - 2, 1);
    const auto padding = At(arguments, geometry.padding, i - 2, 0);
    const auto dilation = At(arguments, geometry.dilation, i - 2, 1);
    if (!stride || !padding || !dilation || *stride == 0 || weight[i] == 0) return std::nullopt;
    const Int128 reach = static_cast<Int128>(*dilation) * (weight[i] - 1) + 1;
    const Int128 room = static_cast<Int128>(input[i]) + 2 * static_cast<Int128>(*padding) - reach;
    if (room < 0) return std::nullopt;
    positions = Times(positions, room / *stride + 1);
  }
  return positions;
}

/// Channels agree; the number of groups follows from them.
bool ChannelsFit(Sizes input, Sizes weight, bool transposed) {
  if (input.size() != weight.size() || input.size() < 3) return false;
  if (transposed) return input[1] == weight[0];
  return weight[1] > 0 && input[1] % weight[1] == 0;
}

/// Every position meets every weight once: of the output, or of the input where transposed.
Count FlopsAt(std::int64_t batch, Count positions, Sizes weight) {
  return Times(Times(Product({2, batch}), positions), ProductOf(weight));
}

Work Forward(const ArgumentReader& arguments, std::size_t input_index, std::size_t weight_index,
             const Geometry& geometry, bool transposed) {
  const auto input = arguments.Shape(input_index);
  const auto weight = arguments.Shape(weight_index);
  if (!input || !weight || !ChannelsFit(*input, *weight, transposed)) return std::nullopt;
  const Count positions =
      transposed ? ProductOf(*input, 2) : OutputPositions(arguments, *input, *weight, geometry);
  return Counted(FlopsAt((*input)[0], positions, *weight));
}

template <std::size_t kStride, std::size_t kPadding, std::size_t kDilation, bool kTransposed>
Work Direct(const ArgumentReader& arguments) {
  return Forward(arguments, 0, 1, {kStride, kPadding, kDilation}, kTransposed);
}

/// `(input, weight, bias, stride, padding, dilation, transposed, ...)`
Work General(const ArgumentReader& arguments) {
  const auto transposed = arguments.Boolean(6);
  if (!transposed) return std::nullopt;
  return Forward(arguments, 0, 1, {.stride = 3, .padding = 4, .dilation = 5}, *transposed);
}

/// The overload with a fused binary operation puts the other operand before the weight.
Work Pointwise(const ArgumentReader& arguments) {
  if (arguments.List(3)) {
    return Forward(arguments, 0, 1, {.stride = 4, .padding = 3, .dilation = 5}, false);
  }
  return Forward(arguments, 0, 2, {.stride = 5, .padding = 4, .dilation = 6}, false);
}

Work PointwiseInPlace(const ArgumentReader& arguments) {
  return Forward(arguments, 1, 2, {.stride = 5, .padding = 4, .dilation = 6}, false);
}

/// One more convolution for each of the two gradients that the mask asks for. The bias gradient is
/// a reduction.
Work BackwardOf(const ArgumentReader& arguments, bool transposed, std::size_t mask_index) {
  const auto gradient = arguments.Shape(0);
  const auto input = arguments.Shape(1);
  const auto weight = arguments.Shape(2);
  const auto mask = arguments.List(mask_index);
  if (!gradient || !input || !weight || !mask || mask->size() < 2 ||
      !ChannelsFit(*input, *weight, transposed) || gradient->size() != input->size() ||
      (*gradient)[0] != (*input)[0]) {
    return std::nullopt;
  }
  const Count positions = ProductOf(transposed ? *input : *gradient, 2);
  const Int128 gradients = ((*mask)[0] != 0 ? 1 : 0) + ((*mask)[1] != 0 ? 1 : 0);
  return Counted(Times(FlopsAt((*input)[0], positions, *weight), gradients));
}

template <std::size_t kTransposed, std::size_t kMask>
Work Backward(const ArgumentReader& arguments) {
  bool transposed = false;
  if constexpr (kTransposed != kAbsent) {
    const auto flag = arguments.Boolean(kTransposed);
    if (!flag) return std::nullopt;
    transposed = *flag;
  }
  return BackwardOf(arguments, transposed, kMask);
}

/// The op of cuDNN and MIOpen before PyTorch 1.11: `(input, gradient, weight, padding, stride, ...,
/// mask)`, both gradients unless a mask says otherwise (traces of its time have no values of
/// arguments, so no mask).
template <std::size_t kMask>
Work OldBackward(const ArgumentReader& arguments) {
  const auto input = arguments.Shape(0);
  const auto gradient = arguments.Shape(1);
  const auto weight = arguments.Shape(2);
  if (!input || !gradient || !weight || !ChannelsFit(*input, *weight, false) ||
      gradient->size() != input->size() || (*gradient)[0] != (*input)[0] ||
      (*gradient)[1] != (*weight)[0]) {
    return std::nullopt;
  }
  Int128 gradients = 2;
  if (const auto mask = arguments.List(kMask); mask && mask->size() >= 2) {
    gradients = ((*mask)[0] != 0 ? 1 : 0) + ((*mask)[1] != 0 ? 1 : 0);
  }
  return Counted(Times(FlopsAt((*input)[0], ProductOf(*gradient, 2), *weight), gradients));
}

/// Time-batch-channel layout: input [t, n, c], weight [kernel, c, out].
Count TimeBatchChannel(const ArgumentReader& arguments, std::size_t input_index,
                       std::size_t pad_index) {
  const auto input = arguments.Shape(input_index, 3);
  const auto weight = arguments.Shape(input_index + 1, 3);
  const auto pad = arguments.Integer(pad_index);
  if (!input || !weight || !pad || *pad < 0 || (*input)[2] != (*weight)[1]) return std::nullopt;
  const Int128 positions = Int128{(*input)[0]} + 2 * Int128{*pad} - (*weight)[0] + 1;
  if (positions < 0) return std::nullopt;
  return FlopsAt((*input)[1], positions, *weight);
}

Work Tbc(const ArgumentReader& arguments) { return Counted(TimeBatchChannel(arguments, 0, 3)); }

Work TbcBackward(const ArgumentReader& arguments) {
  return Counted(Times(2, TimeBatchChannel(arguments, 1, 4)));
}

}  // namespace

const std::vector<CountRule>& ConvolutionRules() {
  constexpr OpClass kClass = OpClass::kConvolution;
  // Template arguments: where stride, padding and dilation are; transposed.
  static const std::vector<CountRule> rules = {
      {"aten::_convolution", kClass, 0, General},
      {"aten::convolution_overrideable", kClass, 0, General},
      {"aten::mkldnn_convolution", kClass, 0, Direct<4, 3, 5, false>},
      {"aten::miopen_convolution", kClass, 0, Direct<4, 3, 5, false>},
      {"aten::miopen_depthwise_convolution", kClass, 0, Direct<4, 3, 5, false>},
      {"aten::_mps_convolution", kClass, 0, Direct<4, 3, 5, false>},
      {"aten::cudnn_convolution", kClass, 0, Direct<3, 2, 4, false>},
      {"aten::cudnn_convolution_relu", kClass, 0, Direct<3, 4, 5, false>},
      {"aten::miopen_convolution_relu", kClass, 0, Direct<3, 4, 5, false>},
      {"aten::cudnn_convolution_add_relu", kClass, 0, Direct<5, 6, 7, false>},
      {"aten::miopen_convolution_add_relu", kClass, 0, Direct<5, 6, 7, false>},
      {"aten::cudnn_convolution_transpose", kClass, 0, Direct<4, 2, 5, true>},
      {"aten::miopen_convolution_transpose", kClass, 0, Direct<5, 3, 6, true>},
      {"aten::_mps_convolution_transpose", kClass, 0, Direct<4, 2, 5, true>},
      {"aten::_slow_conv2d_forward", kClass, 0, Direct<4, 5, kAbsent, false>},
      {"aten::slow_conv3d_forward", kClass, 0, Direct<4, 5, kAbsent, false>},
      {"aten::slow_conv_dilated2d", kClass, 0, Direct<4, 5, 6, false>},
      {"aten::slow_conv_dilated3d", kClass, 0, Direct<4, 5, 6, false>},
      {"aten::_conv_depthwise2d", kClass, 0, Direct<4, 5, 6, false>},
      {"aten::conv_depthwise3d", kClass, 0, Direct<4, 5, 6, false>},
      {"aten::slow_conv_transpose2d", kClass, 0, Direct<4, 5, 7, true>},
      {"aten::slow_conv_transpose3d", kClass, 0, Direct<4, 5, 7, true>},
      {"aten::_nnpack_spatial_convolution", kClass, 0, Direct<4, 3, kAbsent, false>},
      {"mkldnn::_convolution_pointwise", kClass, 0, Pointwise},
      {"mkldnn::_convolution_pointwise_", kClass, 1, PointwiseInPlace},
      {"aten::convolution_backward", kClass, 1, Backward<7, 10>},
      {"aten::convolution_backward_overrideable", kClass, 1, Backward<6, 9>},
      {"aten::_slow_conv2d_backward", kClass, 1, Backward<kAbsent, 6>},
      {"aten::cudnn_convolution_backward", kClass, 0, OldBackward<10>},
      {"aten::miopen_convolution_backward", kClass, 0, OldBackward<9>},
      {"aten::conv_tbc", kClass, 0, Tbc},
      {"aten::conv_tbc_backward", kClass, 1, TbcBackward},
  };
  return rules;
}

}  // namespace flopledger
