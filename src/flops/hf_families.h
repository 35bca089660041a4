#pragma once

#include <span>
#include <string_view>

#include "config_reader.h"
#include "exact.h"
#include "flopledger/model_flops.h"
#include "flopledger/transformer.h"

namespace flopledger::flops {

/// Reads the shape of one `model_type`. What is missing stands in the reader's verdict.
using HfDecoderReader = TransformerDescription (*)(ConfigReader& config);

struct HfFamily {
  std::string_view model_type;
  HfDecoderReader read;
};

/// Decoders in the manner of GPT-2: names and defaults of their own.
std::span<const HfFamily> HfClassicFamilies();
/// Decoders in the manner of Llama, with their windows and chunks.
std::span<const HfFamily> HfLlamaFamilies();
/// Mixtures of experts.
std::span<const HfFamily> HfExpertFamilies();
/// BERT and Falcon.
std::span<const HfFamily> HfEncoderFamilies();

/// Models that are no single stack.
Result<ModelFlops> ReadT5(ConfigReader& config);
Result<ModelFlops> ReadVit(ConfigReader& config);

/// A count of parameters as a description holds it; beyond 2^62 it stays there, and the
/// description's own sum overflows with an error.
inline std::int64_t CountOf(Exact parameters) {
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  return parameters.valid() && parameters.value() < kMost
             ? static_cast<std::int64_t>(parameters.value())
             : kMost;
}

/// hidden, layers, heads, FFN and vocabulary under the names that most families share.
TransformerDescription ReadCommonShape(ConfigReader& config);

}  // namespace flopledger::flops
