#pragma once

#include <cstddef>

#include "collect/trace/json_tokens.h"
#include "flopledger/records.h"

namespace flopledger {

/// Where an event has what its op was called with; 0 where it does not say. Token numbers.
struct OpArgumentTokens {
  std::size_t dims = 0;      ///< `Input Dims`: a shape each, a list of shapes for a list of tensors
  std::size_t types = 0;     ///< `Input type`: `c10::BFloat16`, `Scalar`, `ScalarList`, ``
  std::size_t concrete = 0;  ///< `Concrete Inputs`: scalars as text, `[1, 1]`, `False`
};

/// The arguments as an observer in the process would have seen them.
///
///     [[64, 128], []] + ["float", "Scalar"] + ["", "1"]  ->  fp32 64x128, 1
///
/// Thread: pure. Fails: never; what is missing or strange is an argument of kind `kNone`.
std::vector<OpArgument> ReadOpArguments(JsonTokens& tokens, const OpArgumentTokens& at);

}  // namespace flopledger
