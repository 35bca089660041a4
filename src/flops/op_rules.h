#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "flopledger/dtype.h"
#include "flopledger/records.h"
#include "flopledger/step_report.h"
#include "flopledger/units.h"

namespace flopledger {

/// What one call of an op costs, by rule from its signature.
struct OpCost {
  CoverageKind coverage = CoverageKind::kUnknown;
  OpClass op_class = OpClass::kUnknown;
  DType dtype = DType::kOther;            ///< of the operands; of counted ops only
  Flops executed;                         ///< of counted ops only
  std::vector<ExcessPart> excess;         ///< part of `executed` that the mathematics does not need
  GapReason reason = GapReason::kNoRule;  ///< of unknown ops only

  friend bool operator==(const OpCost&, const OpCost&);
};

/// Executed FLOPs of an op of PyTorch, exact, from shapes alone.
///
///     OpCost cost = CountOp({"aten::mm", {Tensor{1024, 256}, Tensor{256, 768}}});
///     cost.executed;  // 2 * 1024 * 256 * 768
///
/// Counted are matmuls, fused attention, convolutions and fused recurrent layers (a multiply-add is
/// two; biases, softmax and scaling are none). Attention counts the pairs that `is_causal` and
/// windows leave; a mask that is a tensor has contents that nobody sees, so all pairs. Attention
/// backward executes five matmuls where four are needed: the fifth is in `excess`.
///
/// Every other op has a class by rule (`outside`); an op without a rule, or one whose shapes are
/// missing, contradict each other or leave 128 bits, is `unknown`.
///
/// One contract with the observer: some ops are a kernel on one path and call a kernel on another
/// (`aten::mv`, `aten::_convolution`). An op of `CountedOpNames()` that contained another of them
/// must be reported under the name `flopledger::composite`, or work is counted twice.
///
/// Thread: pure. Fails: never.
OpCost CountOp(const OpSignature& signature);

/// The same without a discount for causal masks and windows: what profilers and other tools for
/// traces print. Beside the house figure, never instead of it. Absent where `CountOp` has no count.
std::optional<Flops> CountOpAllPairs(const OpSignature& signature);

/// Class alone, for the signature table.
OpClass ClassifyOp(const OpSignature& signature);

/// Names with a counting rule: the ops of which an observer has to record the arguments. Sorted.
std::vector<std::string_view> CountedOpNames();

}  // namespace flopledger
