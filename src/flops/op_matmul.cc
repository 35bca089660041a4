#include "flops/op_count_rules.h"

namespace flopledger {
namespace {

using Work = std::optional<CountedWork>;

Work Counted(Count flops) {
  if (!flops) return std::nullopt;
  return CountedWork{*flops, 0};
}

/// [m, k] x [k, n]
template <std::size_t kA, std::size_t kB>
Work MatrixMatrix(const ArgumentReader& arguments) {
  const auto a = arguments.Shape(kA, 2);
  const auto b = arguments.Shape(kB, 2);
  if (!a || !b || (*a)[1] != (*b)[0]) return std::nullopt;
  return Counted(Product({2, (*a)[0], (*a)[1], (*b)[1]}));
}

/// [b, m, k] x [b, k, n]; also the sum over b of `addbmm`, which is as many multiply-adds.
template <std::size_t kA, std::size_t kB>
Work Batched(const ArgumentReader& arguments) {
  const auto a = arguments.Shape(kA, 3);
  const auto b = arguments.Shape(kB, 3);
  if (!a || !b || (*a)[0] != (*b)[0] || (*a)[2] != (*b)[1]) return std::nullopt;
  return Counted(Product({2, (*a)[0], (*a)[1], (*a)[2], (*b)[2]}));
}

/// [m, k] x [k]
template <std::size_t kA, std::size_t kB>
Work MatrixVector(const ArgumentReader& arguments) {
  const auto a = arguments.Shape(kA, 2);
  const auto b = arguments.Shape(kB, 1);
  if (!a || !b || (*a)[1] != (*b)[0]) return std::nullopt;
  return Counted(Product({2, (*a)[0], (*a)[1]}));
}

Work VectorVector(const ArgumentReader& arguments) {
  const auto a = arguments.Shape(0, 1);
  const auto b = arguments.Shape(1, 1);
  if (!a || !b || (*a)[0] != (*b)[0]) return std::nullopt;
  return Counted(Product({2, (*a)[0]}));
}

/// [..., k] x [n, k] transposed
Work LinearOf(const ArgumentReader& arguments, std::size_t input, std::size_t weight) {
  const auto x = arguments.Shape(input);
  const auto w = arguments.Shape(weight, 2);
  if (!x || !w || x->back() != (*w)[1]) return std::nullopt;
  return Counted(Times(Times(2, ProductOf(*x)), (*w)[0]));
}

template <std::size_t kInput, std::size_t kWeight>
Work Linear(const ArgumentReader& arguments) {
  return LinearOf(arguments, kInput, kWeight);
}

/// The overload with a fused binary operation puts the other operand before the weight.
Work LinearPointwise(const ArgumentReader& arguments) {
  const bool binary = arguments.size() == 5;
  return LinearOf(arguments, 0, binary ? 2 : 1);
}

/// Gradient [..., n] with a weight [n, k], for the input or for the weight: as many multiply-adds.
template <std::size_t kGradient>
Work LinearBackward(const ArgumentReader& arguments) {
  const auto gradient = arguments.Shape(kGradient);
  const auto weight = arguments.Shape(2, 2);
  if (!gradient || !weight || gradient->back() != (*weight)[0]) return std::nullopt;
  return Counted(Times(Times(2, ProductOf(*gradient)), (*weight)[1]));
}

/// Groups are slices of the rows ([T, k] x [g, k, n]), of the columns ([g, m, k] x [k, T]), of the
/// contraction ([m, T] x [T, n]), or whole matrices. Offsets are contents that nobody sees: slices
/// are taken to fill T.
Work Grouped(const ArgumentReader& arguments) {
  const auto a = arguments.Shape(0);
  const auto b = arguments.Shape(1);
  if (!a || !b || a->size() < 2 || a->size() > 3 || b->size() < 2 || b->size() > 3) {
    return std::nullopt;
  }
  const std::int64_t k = a->back();
  if (k != (*b)[b->size() - 2]) return std::nullopt;
  if (a->size() == 3 && b->size() == 3 && (*a)[0] != (*b)[0]) return std::nullopt;
  const std::int64_t rows = (*a)[a->size() - 2];
  const std::int64_t matrices = a->size() == 3 && b->size() == 3 ? (*a)[0] : 1;
  return Counted(Product({2, matrices, rows, k, b->back()}));
}

/// Gates of one layer in one direction: every time step multiplies the input and the hidden state
/// with their weights. Input is [time, batch, features].
Count RecurrentForward(const ArgumentReader& arguments) {
  const auto input = arguments.Shape(0, 3);
  const auto input_weight = arguments.Shape(1, 2);
  const auto hidden_weight = arguments.Shape(2, 2);
  if (!input || !input_weight || !hidden_weight || (*input_weight)[1] != (*input)[2] ||
      (*input_weight)[0] != (*hidden_weight)[0]) {
    return std::nullopt;
  }
  const Count weights = Plus(ProductOf(*input_weight), ProductOf(*hidden_weight));
  return Times(Product({2, (*input)[0], (*input)[1]}), weights);
}

Work Recurrent(const ArgumentReader& arguments) { return Counted(RecurrentForward(arguments)); }

Work RecurrentBackward(const ArgumentReader& arguments) {
  return Counted(Times(2, RecurrentForward(arguments)));
}

}  // namespace

const std::vector<CountRule>& MatmulRules() {
  constexpr OpClass kMatmul = OpClass::kMatmul;
  static const std::vector<CountRule> rules = {
      {"aten::mm", kMatmul, 0, MatrixMatrix<0, 1>},
      {"aten::_int_mm", kMatmul, 0, MatrixMatrix<0, 1>},
      {"aten::_scaled_mm", kMatmul, 0, MatrixMatrix<0, 1>},
      {"aten::_scaled_mm_v2", kMatmul, 0, MatrixMatrix<0, 1>},
      {"aten::addmm", kMatmul, 1, MatrixMatrix<1, 2>},
      {"aten::addmm_", kMatmul, 1, MatrixMatrix<1, 2>},
      {"aten::_addmm_activation", kMatmul, 1, MatrixMatrix<1, 2>},
      {"aten::bmm", kMatmul, 0, Batched<0, 1>},
      {"aten::baddbmm", kMatmul, 1, Batched<1, 2>},
      {"aten::baddbmm_", kMatmul, 1, Batched<1, 2>},
      {"aten::addbmm", kMatmul, 1, Batched<1, 2>},
      {"aten::addbmm_", kMatmul, 1, Batched<1, 2>},
      {"aten::mv", kMatmul, 0, MatrixVector<0, 1>},
      {"aten::addmv", kMatmul, 1, MatrixVector<1, 2>},
      {"aten::addmv_", kMatmul, 1, MatrixVector<1, 2>},
      {"aten::dot", kMatmul, 0, VectorVector},
      {"aten::vdot", kMatmul, 0, VectorVector},
      {"aten::_grouped_mm", kMatmul, 0, Grouped},
      {"aten::_scaled_grouped_mm", kMatmul, 0, Grouped},
      {"aten::_scaled_grouped_mm_v2", kMatmul, 0, Grouped},
      {"aten::mkldnn_linear", kMatmul, 0, Linear<0, 1>},
      {"aten::mkldnn_linear_backward_input", kMatmul, 1, LinearBackward<1>},
      {"aten::mkldnn_linear_backward_weights", kMatmul, 0, LinearBackward<0>},
      {"mkldnn::_linear_pointwise", kMatmul, 0, LinearPointwise},
      {"mkl::_mkl_linear", kMatmul, 0, Linear<0, 2>},
      {"aten::mkldnn_rnn_layer", kMatmul, 0, Recurrent},
      {"aten::mkldnn_rnn_layer_backward", kMatmul, 0, RecurrentBackward},
  };
  return rules;
}

}  // namespace flopledger
