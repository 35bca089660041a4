#pragma once

#include <cstdint>
#include <vector>

namespace flopledger {

/// `count` sequences of `length` tokens each. Sequences of a pack do not see each other: give a
/// pack as its documents.
///
///     SequenceGroup documents{.length = 1024, .count = 8};
///     SequenceGroup decode{.length = 1, .count = 32, .context = 4095};
///     SequenceGroup translation{.length = 40, .count = 16, .source_length = 52};
struct SequenceGroup {
  std::int64_t length = 0;   ///< tokens that are computed now
  std::int64_t count = 0;    ///< how many sequences are alike
  std::int64_t context = 0;  ///< tokens already in the key-value cache, which these tokens see
  std::int64_t prefix = 0;   ///< leading tokens that see each other both ways (prefix LM)
  std::int64_t source_length =
      0;  ///< tokens of the encoder side, or of the text that is attended to

  friend bool operator==(const SequenceGroup&, const SequenceGroup&) = default;
};

/// Which passes the step runs.
enum class Passes : std::uint8_t {
  kTraining,     ///< forward and whatever backward the trainable parts need
  kForwardOnly,  ///< evaluation, rollout, prefill, decode
};

/// For which tokens the head makes logits.
enum class LogitRows : std::uint8_t {
  kEveryToken,
  kLastOfEachSequence,  ///< prefill and decode: one row per sequence
};

/// The work that one step was given: what a formula is evaluated on.
///
///     Workload step{.sequences = {{.length = 4096, .count = 8}}};
///     Workload images{.samples = 256};
///     Workload prefill{.sequences = {{.length = 559, .count = 16}},
///                      .passes = Passes::kForwardOnly,
///                      .logits = LogitRows::kLastOfEachSequence};
///
/// Thread: a value. Fails: at evaluation, which names the field that is negative.
struct Workload {
  std::vector<SequenceGroup> sequences = {};  ///< useful tokens only: without padding
  /// The same work as it was computed, padding included; empty: there was no padding. Read only
  /// where the convention counts padding.
  std::vector<SequenceGroup> padded_sequences = {};
  std::int64_t samples = 0;  ///< images, user-item pairs: models that have no tokens
  Passes passes = Passes::kTraining;
  LogitRows logits = LogitRows::kEveryToken;

  friend bool operator==(const Workload&, const Workload&) = default;
};

}  // namespace flopledger
