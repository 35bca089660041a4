#include "flops/op_shapes.h"

#include <algorithm>

namespace flopledger {

Count Product(std::initializer_list<Int128> factors) {
  Int128 product = 1;
  for (Int128 factor : factors) {
    if (!CheckedMultiply(product, factor, &product)) return std::nullopt;
  }
  return product;
}

Count ProductOf(std::span<const std::int64_t> dimensions, std::size_t first) {
  Int128 product = 1;
  for (std::size_t i = first; i < dimensions.size(); ++i) {
    if (!CheckedMultiply(product, dimensions[i], &product)) return std::nullopt;
  }
  return product;
}

Count Times(Count a, Count b) {
  Int128 product = 0;
  if (!a || !b || !CheckedMultiply(*a, *b, &product)) return std::nullopt;
  return product;
}

Count Plus(Count a, Count b) {
  Int128 sum = 0;
  if (!a || !b || !CheckedAdd(*a, *b, &sum)) return std::nullopt;
  return sum;
}

std::optional<std::span<const std::int64_t>> ArgumentReader::Shape(std::size_t index,
                                                                   std::size_t rank) const {
  if (!Is(index, OpArgument::Kind::kTensor)) return std::nullopt;
  const std::vector<std::int64_t>& shape = arguments_[index].integers;
  if (shape.empty() || (rank != 0 && shape.size() != rank)) return std::nullopt;
  const bool usable = std::all_of(shape.begin(), shape.end(), [](std::int64_t dimension) {
    return dimension >= 0 && dimension <= kLargestDimension;
  });
  if (!usable) return std::nullopt;
  return std::span<const std::int64_t>(shape);
}

DType ArgumentReader::TypeOf(std::size_t index) const {
  return Is(index, OpArgument::Kind::kTensor) ? arguments_[index].dtype : DType::kOther;
}

std::optional<bool> ArgumentReader::Boolean(std::size_t index) const {
  if (!Is(index, OpArgument::Kind::kBoolean) || arguments_[index].integers.size() != 1) {
    return std::nullopt;
  }
  return arguments_[index].integers[0] != 0;
}

std::optional<std::int64_t> ArgumentReader::Integer(std::size_t index) const {
  if (!Is(index, OpArgument::Kind::kInteger) || arguments_[index].integers.size() != 1) {
    return std::nullopt;
  }
  const std::int64_t value = arguments_[index].integers[0];
  if (value < -kLargestDimension || value > kLargestDimension) return std::nullopt;
  return value;
}

std::optional<std::span<const std::int64_t>> ArgumentReader::List(std::size_t index) const {
  if (!Is(index, OpArgument::Kind::kIntegerList)) return std::nullopt;
  return std::span<const std::int64_t>(arguments_[index].integers);
}

bool ArgumentReader::IsTensor(std::size_t index) const {
  if (!Is(index, OpArgument::Kind::kTensor)) return false;
  const std::vector<std::int64_t>& shape = arguments_[index].integers;
  return std::find(shape.begin(), shape.end(), 0) == shape.end();
}

bool ArgumentReader::Is(std::size_t index, OpArgument::Kind kind) const {
  return index < arguments_.size() && arguments_[index].kind == kind;
}

}  // namespace flopledger
