#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "flopledger/device_records.h"
#include "flopledger/op_class.h"

namespace flopledger {

/// What the open ranges of a thread say about a launch: the innermost op and what it is for.
struct LaunchContext {
  std::optional<SignatureId> op;
  Phase phase = Phase::kForward;
};

/// The ranges that are open on each thread at a moving point in time. Ranges come sorted by start,
/// outer before inner ones, and nest.
///
///     stacks.Push(thread, {.end_ns = 900, .op = id});
///     LaunchContext context = stacks.At(thread, 850);
///
/// Thread: one. Fails: never; what is too deep is counted.
class RangeStacks {
 public:
  struct Range {
    std::int64_t end_ns = 0;
    std::optional<SignatureId> op;
    std::optional<Phase> phase;   ///< the range is a section
    bool differentiable = false;  ///< an op that ran with gradients on
    bool backward_node = false;   ///< a node of the autograd graph
  };

  void Push(std::int64_t thread, std::int64_t start_ns, const Range& range);
  /// An op with gradients on inside of a backward node is a recomputation; any other work there is
  /// backward work. Outside, the innermost section decides.
  LaunchContext At(std::int64_t thread, std::int64_t time_ns);
  std::int64_t too_deep() const { return too_deep_; }

 private:
  static constexpr std::size_t kDepthLimit = 1024;
  static constexpr std::size_t kThreadLimit = 65536;

  std::unordered_map<std::int64_t, std::vector<Range>> threads_;
  std::int64_t too_deep_ = 0;
};

}  // namespace flopledger
