#pragma once

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "flopledger/records.h"

namespace flopledger::testing {

inline OpArgument Tensor(std::vector<std::int64_t> shape, DType dtype = DType::kFloat32) {
  return {OpArgument::Kind::kTensor, dtype, std::move(shape), 0};
}
inline OpArgument None() { return {}; }
inline OpArgument Bool(bool value) {
  return {OpArgument::Kind::kBoolean, DType::kOther, {value ? 1 : 0}, 0};
}
inline OpArgument Int(std::int64_t value) {
  return {OpArgument::Kind::kInteger, DType::kOther, {value}, 0};
}
inline OpArgument Ints(std::vector<std::int64_t> values) {
  return {OpArgument::Kind::kIntegerList, DType::kOther, std::move(values), 0};
}
inline OpArgument Real() { return {OpArgument::Kind::kReal, DType::kOther, {}, 0}; }

inline OpSignature Op(std::string name, std::vector<OpArgument> arguments = {}) {
  return {std::move(name), std::move(arguments)};
}

}  // namespace flopledger::testing
