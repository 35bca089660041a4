#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "flops/op_shapes.h"

namespace flopledger {

/// What a counting rule found in a signature whose shapes make sense.
struct CountedWork {
  Int128 executed = 0;
  Int128 score_recompute = 0;  ///< part of `executed`: attention scores computed again in backward
};

/// A counting rule: an op's name, where its operands are, and the function that counts it.
struct CountRule {
  std::string_view name;
  OpClass op_class;
  std::size_t operand;  ///< argument whose dtype is the dtype of the arithmetic
  /// Nothing if shapes are missing, contradict each other, or the count leaves 128 bits.
  std::optional<CountedWork> (*count)(const ArgumentReader& arguments);
};

/// The rules by family.
const std::vector<CountRule>& MatmulRules();
const std::vector<CountRule>& AttentionRules();
const std::vector<CountRule>& ConvolutionRules();

}  // namespace flopledger
