#include "flopledger/inference.h"

#include <string>

namespace flopledger {

Workload PrefillWorkload(std::int64_t length, std::int64_t count) {
  return {.sequences = {{.length = length, .count = count}},
          .passes = Passes::kForwardOnly,
          .logits = LogitRows::kLastOfEachSequence};
}

Workload DecodeWorkload(std::int64_t context, std::int64_t new_tokens, std::int64_t count) {
  // A token behind c cached ones sees c + 1, so that tokens one by one are a causal piece.
  return {.sequences = {{.length = new_tokens, .count = count, .context = context}},
          .passes = Passes::kForwardOnly};
}

Result<SpeculativeWork> EvaluateSpeculative(const ModelFlops& target, const ModelFlops& draft,
                                            const SpeculativeRound& round,
                                            const FlopConvention& convention) {
  constexpr std::int64_t kMost = std::int64_t{1} << 53;
  if (round.proposed > kMost) {
    return InvalidArgument("proposed is " + std::to_string(round.proposed) +
                           "; accepted: 0 to 2^53");
  }
  if (round.proposed < 0 || round.accepted < 0 || round.accepted > round.proposed) {
    return InvalidArgument("accepted is " + std::to_string(round.accepted) +
                           "; accepted: 0 to proposed (" + std::to_string(round.proposed) + ")");
  }
  const Result<DeclaredTotal> verified = target.EvaluateTotal(
      DecodeWorkload(round.context, round.proposed + 1, round.count), convention);
  if (!verified.has_value()) return tl::unexpected(verified.error());
  const Result<DeclaredTotal> drafted =
      draft.EvaluateTotal(DecodeWorkload(round.context, round.proposed, round.count), convention);
  if (!drafted.has_value()) return tl::unexpected(drafted.error());
  const Result<DeclaredTotal> kept = target.EvaluateTotal(
      DecodeWorkload(round.context, round.accepted + 1, round.count), convention);
  if (!kept.has_value()) return tl::unexpected(kept.error());
  Int128 executed = 0;
  if (!CheckedAdd(verified->forward.count(), drafted->forward.count(), &executed)) {
    return Fail(StatusCode::kOverflow, "the work of this round leaves 128 bits");
  }
  return SpeculativeWork{.executed = Flops::FromInteger(executed), .useful = kept->forward};
}

}  // namespace flopledger
