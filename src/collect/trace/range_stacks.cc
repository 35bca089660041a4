#include "collect/trace/range_stacks.h"

namespace flopledger {

void RangeStacks::Push(std::int64_t thread, std::int64_t start_ns, const Range& range) {
  if (range.end_ns <= start_ns) return;
  if (threads_.size() >= kThreadLimit && threads_.count(thread) == 0) {
    ++too_deep_;
    return;
  }
  std::vector<Range>& open = threads_[thread];
  while (!open.empty() && open.back().end_ns <= start_ns) open.pop_back();
  if (open.size() >= kDepthLimit) {
    ++too_deep_;
    return;
  }
  open.push_back(range);
}

LaunchContext RangeStacks::At(std::int64_t thread, std::int64_t time_ns) {
  LaunchContext context;
  const auto found = threads_.find(thread);
  if (found == threads_.end()) return context;
  std::vector<Range>& open = found->second;
  while (!open.empty() && open.back().end_ns <= time_ns) open.pop_back();

  bool differentiable = false;
  for (auto range = open.rbegin(); range != open.rend(); ++range) {
    // A range may outlive the one around it where threads or exceptions mix.
    if (range->end_ns <= time_ns) continue;
    if (range->op && !context.op) context.op = range->op;
    if (range->backward_node) {
      context.phase = differentiable ? Phase::kRecompute : Phase::kBackward;
      return context;
    }
    differentiable = differentiable || range->differentiable;
    if (range->phase) {
      context.phase = *range->phase;
      return context;
    }
  }
  return context;
}

}  // namespace flopledger
