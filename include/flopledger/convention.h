#pragma once

#include <cstdint>
#include <string>

#include "flopledger/export.h"

namespace flopledger {

/// Which query-key pairs of an attention layer are work.
enum class AttentionMask : std::uint8_t {
  kExact,       ///< the pairs that the mask leaves: causal s(s+1)/2, windows and packs their own
  kFull,        ///< s^2 whatever the mask
  kCausalHalf,  ///< s^2/2 where the mask is causal
};

/// Every switch that moves a declared figure. The default is the house convention: a multiply-add
/// is two FLOPs, exact pairs, real vocabulary, router and trained multi-token prediction in,
/// embedding look-up 0, backward by what is trainable, padding and recomputation out.
///
/// Thread: a value.
struct FlopConvention {
  AttentionMask attention_mask = AttentionMask::kExact;

  friend bool operator==(const FlopConvention&, const FlopConvention&) = default;
};

/// Stable identity of a convention: a readable name (`house`) and a hash over every switch.
struct ConventionId {
  std::string name;
  std::uint64_t hash = 0;

  friend bool operator==(const ConventionId&, const ConventionId&) = default;
};

FLOPLEDGER_EXPORT ConventionId IdentifyConvention(const FlopConvention& convention);

}  // namespace flopledger
