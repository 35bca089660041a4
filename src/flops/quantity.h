#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "exact.h"
#include "flopledger/convention.h"
#include "flopledger/status.h"
#include "flopledger/transformer.h"
#include "flopledger/workload.h"

namespace flopledger::flops {

enum class QuantityKind : std::uint8_t {
  kTokens,
  kSequences,
  kHalfPairs,        ///< query-key pairs inside of a sequence, times two
  kSourceTokens,     ///< tokens of the encoder side
  kSourceHalfPairs,  ///< pairs inside of the source, times two
  kCrossHalfPairs,   ///< pairs between a sequence and its source, times two
  kSamples,
  kLogitRows,
  kExpertSlots,  ///< token-expert visits
  kBodyTokens,   ///< tokens without `size` special ones per sequence (patches of an image)
};

/// Which number of a workload a term is multiplied with. Pairs are counted in halves, so that the
/// "s^2 / 2" of other conventions stays an integer.
struct Quantity {
  QuantityKind kind = QuantityKind::kTokens;
  AttentionMask counting = AttentionMask::kExact;  ///< of pairs
  bool causal = false;
  AttentionSpan span = AttentionSpan::kWhole;
  std::int64_t size = 0;     ///< of the span; active experts; special tokens
  std::int64_t experts = 0;  ///< kExpertSlots
  std::int64_t capacity_percent = 0;
  bool computed = false;  ///< padding counts

  friend bool operator==(const Quantity&, const Quantity&) = default;
};

/// What a person calls it: `tokens`, `half pairs (causal, window 128)`.
std::string Describe(const Quantity& quantity);

/// The number itself; invalid where it leaves 128 bits. The workload has been validated.
Exact Measure(const Quantity& quantity, const Workload& workload);

/// Refuses negative lengths and counts, naming the group.
Result<void> Validate(const Workload& workload);

/// Twice the query-key pairs of one sequence.
Exact HalfPairs(const Quantity& quantity, const SequenceGroup& group);

}  // namespace flopledger::flops
