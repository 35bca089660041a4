#pragma once

#include <array>
#include <string_view>

namespace flopledger {

/// A line of the waterfall: where the peak went. These tables are the one place where such names
/// exist; labels, texts and documentation are made from them.
///
///     text = FindLostCause(line.cause)->text;
///
/// Thread: constants. Fails: never.
struct LostCause {
  std::string_view id;    ///< metric label
  std::string_view text;  ///< for people
  bool physics = false;   ///< false: a choice of the program or the configuration
};

/// All of them, from the top of the waterfall to what is left. Closed: a label set.
inline constexpr std::array kLostCauses = {
    LostCause{"data", "waiting for data and preparing it", false},
    LostCause{"checkpoint", "writing checkpoints", false},
    LostCause{"eval", "evaluation", false},
    LostCause{"idle_host", "no op was running: the host program between ops", false},
    LostCause{"exposed_communication", "communication that nothing hid", false},
    LostCause{"exposed_copy", "copies that nothing hid", false},
    LostCause{"untracked", "time that nobody observed", false},
    LostCause{"uncounted_kernels", "kernels without a FLOP count", false},
    LostCause{"outside_kernels", "kernels that are not matmuls: norms, activations, optimizer",
              true},
    LostCause{"matmul_below_peak", "matmuls slower than the peak", true},
    LostCause{"padding", "work on padding", false},
    LostCause{"auxiliary", "matmuls of the optimizer and the like", false},
    LostCause{"excess", "work of the implementation beyond the mathematics", true},
    LostCause{"recompute", "forward work run again for the backward pass", false},
    LostCause{"unexplained", "executed work that nothing explains", false},
    LostCause{"useful", "useful work", true},
};

/// Where a negative line goes: what ran was more than the peak allows.
inline constexpr std::string_view kAbovePeakCause = "above_peak";

/// Ids of `Finding`. Closed: a label set.
inline constexpr std::array<std::string_view, 8> kFindingIds = {
    "above_peak",   "mfu_above_hfu",         "executed_below_declared", "unexplained",
    "coverage_gap", "token_lengths_assumed", "clock_stepped",           "boundary_estimated"};

/// Reasons for time that is left out of the step counters. Closed: a label set.
inline constexpr std::array<std::string_view, 4> kExclusionReasons = {
    "before_first_step", "warmup", "incomplete", "after_last_step"};

/// The cause with this id, or null.
constexpr const LostCause* FindLostCause(std::string_view id) {
  for (const LostCause& cause : kLostCauses) {
    if (cause.id == id) return &cause;
  }
  return nullptr;
}

}  // namespace flopledger
