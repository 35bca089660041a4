#pragma once

#include <cstdint>

#include "flopledger/export.h"
#include "flopledger/model_flops.h"
#include "flopledger/status.h"

namespace flopledger {

/// The first pass over `count` prompts of `length` tokens: logits of the last token only.
FLOPLEDGER_EXPORT Workload PrefillWorkload(std::int64_t length, std::int64_t count = 1);

/// `new_tokens` decoded one after another behind `context` cached tokens, for `count` sequences.
///
///     auto work = llama.Evaluate(DecodeWorkload(8192, 1));
FLOPLEDGER_EXPORT Workload DecodeWorkload(std::int64_t context, std::int64_t new_tokens,
                                          std::int64_t count = 1);

/// One round of speculative decoding.
struct SpeculativeRound {
  std::int64_t context = 0;   ///< tokens cached before the round
  std::int64_t proposed = 0;  ///< by the draft model
  std::int64_t accepted = 0;  ///< of these; the target adds one token of its own
  std::int64_t count = 1;     ///< sequences, or rounds that are alike
};

struct SpeculativeWork {
  Flops executed;  ///< target on proposed + 1 rows, draft on the proposed ones
  Flops useful;    ///< target on accepted + 1 rows
};

/// Verified rows count as executed, only accepted tokens as useful.
/// Fails: kInvalidArgument if more are accepted than proposed; as `ModelFlops::Evaluate`.
FLOPLEDGER_EXPORT Result<SpeculativeWork> EvaluateSpeculative(
    const ModelFlops& target, const ModelFlops& draft, const SpeculativeRound& round,
    const FlopConvention& convention = {});

}  // namespace flopledger
