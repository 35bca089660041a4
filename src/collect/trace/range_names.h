#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flopledger/op_class.h"

namespace flopledger {

/// What the name of an annotated range says. Rules on names alone; each takes anything.
///
///     IsStepName("ProfilerStep#12", {})    // true
///     NumberInName("ProfilerStep#12")      // 12
///     PhaseOfRange("Optimizer.step#Adam")  // Phase::kOptimizer
///
/// Thread: pure. Fails: never.

/// Does the range mark a step? With patterns (`*` any text, `?` any letter, case matters), if it
/// fits one of them; without, `ProfilerStep...`, and `step`, `train_step`, `training_step`,
/// `iteration`, `iter` in any case with nothing but numbers and signs behind.
bool IsStepName(std::string_view name, const std::vector<std::string>& patterns);

/// The last number in the name; none if there is none, or if it is no 64-bit integer.
std::optional<std::int64_t> NumberInName(std::string_view name);

/// The section of a training step that a range is, by the first word of its name, or none. The word
/// has to be the whole one: `FSDP::pre_forward (... _checkpoint_wrapped_module)` is no checkpoint.
std::optional<Phase> PhaseOfRange(std::string_view name);

/// A framework's op, as PyTorch's `emit_nvtx` and profilers name it: `aten::mm, seq = 4, op_id =
/// 9`.
struct OpRange {
  std::string_view name;        ///< `aten::mm`
  std::string_view sizes;       ///< `[[2, 3], [3, 4]]`, empty if they were not recorded
  bool differentiable = false;  ///< it has a sequence number: gradients were on
  bool backward_node = false;   ///< a node of the autograd graph: `AddmmBackward0`
};
std::optional<OpRange> OpOfRange(std::string_view text);

/// `[[2, 3], [], [3, 4]]` as shapes; none if it is not well formed or too large.
std::optional<std::vector<std::vector<std::int64_t>>> ShapesOfText(std::string_view text);

}  // namespace flopledger
