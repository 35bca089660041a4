#include "session/replay_sums.h"

#include <algorithm>
#include <string_view>

#include "flops/op_rules.h"

namespace flopledger {
namespace {

/// FLOPs of calls, each signature looked up once.
class CallCosts {
 public:
  explicit CallCosts(const SignatureTable& signatures) : signatures_(signatures) {
    names_ = CountedOpNames();
  }

  /// Of the calls of one device, or of all.
  ReplayFlops Sum(const OpCounts& calls, std::optional<std::uint16_t> device) {
    ReplayFlops sum;
    for (const auto& [key, count] : calls) {
      if (device && key.device != *device) continue;
      const Cost& cost = CostOf(key.signature);
      const Flops all_pairs = cost.all_pairs * count;
      const Flops executed = cost.executed * count;
      sum.all_pairs += all_pairs;
      sum.executed += executed;
      if (key.phase != Phase::kRecompute) continue;
      sum.recomputed += executed;
      sum.recomputed_all_pairs += all_pairs;
    }
    return sum;
  }

  /// Has the op a counting rule, or is it the outer of two that have one?
  bool HasRule(SignatureId id) {
    const OpSignature* signature = signatures_.Find(id);
    if (signature == nullptr) return false;
    return signature->name == "flopledger::composite" ||
           std::binary_search(names_.begin(), names_.end(), std::string_view(signature->name));
  }

 private:
  struct Cost {
    Flops all_pairs;
    Flops executed;
  };

  const Cost& CostOf(SignatureId id) {
    const auto found = costs_.find(id);
    if (found != costs_.end()) return found->second;
    Cost cost;
    if (const OpSignature* signature = signatures_.Find(id)) {
      cost.all_pairs = CountOpAllPairs(*signature).value_or(Flops());
      const OpCost counted = CountOp(*signature);
      if (counted.coverage == CoverageKind::kCounted) cost.executed = counted.executed;
    }
    return costs_.emplace(id, cost).first->second;
  }

  const SignatureTable& signatures_;
  std::vector<std::string_view> names_;
  std::map<SignatureId, Cost> costs_;
};

std::string StepName(const TraceDescription& trace, const StepActivity& step) {
  for (const TraceStep& named : trace.steps) {
    if (named.number == step.step && named.start_ns == step.host.start_ns) return named.name;
  }
  return "step " + std::to_string(step.step);
}

void AddActivity(const DeviceActivity& from, DeviceActivity& to) {
  to.kernels += from.kernels;
  to.memcpys += from.memcpys;
  to.memsets += from.memsets;
  to.unlaunched += from.unlaunched;
  to.unlaunched_ns += from.unlaunched_ns;
  to.without_op += from.without_op;
  to.without_op_ns += from.without_op_ns;
  to.untimed += from.untimed;
  to.kernel_time_sum_ns += from.kernel_time_sum_ns;
  to.busy_kernels_ns += from.busy_kernels_ns;
  to.busy_all_ns += from.busy_all_ns;
  to.idle_ns += from.idle_ns;
  to.communication_union_ns += from.communication_union_ns;
  to.compute_union_ns += from.compute_union_ns;
  to.exposed_communication_ns += from.exposed_communication_ns;
}

void AddStep(const StepActivity& from, StepActivity& to) {
  to.launched_kernels += from.launched_kernels;
  to.launched_kernel_time_sum_ns += from.launched_kernel_time_sum_ns;
  to.launched_work += from.launched_work;
  to.started_kernels += from.started_kernels;
  to.busy_clipped_ns += from.busy_clipped_ns;
  to.exposed_communication_clipped_ns += from.exposed_communication_clipped_ns;
  to.device_busy_ns += from.device_busy_ns;
  to.device_idle_ns += from.device_idle_ns;
  to.device_communication_ns += from.device_communication_ns;
  to.device_exposed_communication_ns += from.device_exposed_communication_ns;
  if (from.last_end_ns) {
    to.last_end_ns = std::max(to.last_end_ns.value_or(*from.last_end_ns), *from.last_end_ns);
  }
  if (!from.device_window) return;
  if (!to.device_window) to.device_window = from.device_window;
  to.device_window->start_ns = std::min(to.device_window->start_ns, from.device_window->start_ns);
  to.device_window->end_ns = std::max(to.device_window->end_ns, from.device_window->end_ns);
}

}  // namespace

std::vector<ReplayDevice> SumDevices(const TraceDescription& trace,
                                     const std::vector<DeviceActivity>& activities,
                                     const ActivitySummary& summary,
                                     const SignatureTable& signatures) {
  CallCosts costs(signatures);
  std::vector<ReplayDevice> devices;
  for (const DeviceActivity& activity : activities) {
    ReplayDevice device;
    device.description.device = activity.device;
    for (const DeviceDescription& described : trace.devices) {
      if (described.device == activity.device) device.description = described;
    }
    device.flops = costs.Sum(summary.ops(), activity.device);
    for (const auto& [op, time_ns] : activity.kernel_ns_by_op) {
      if (op.second && costs.HasRule(op.first)) device.counted_kernel_time_ns += time_ns;
    }
    for (std::size_t i = 0; i < activity.steps.size(); ++i) {
      device.steps.push_back({.name = StepName(trace, activity.steps[i]),
                              .activity = activity.steps[i],
                              .flops = costs.Sum(summary.steps()[i].ops, activity.device)});
    }
    device.activity = activity;
    device.activity.steps.clear();
    devices.push_back(std::move(device));
  }
  return devices;
}

ReplayDevice SumTotal(const TraceDescription& trace, const std::vector<ReplayDevice>& devices,
                      const ActivitySummary& summary, const SignatureTable& signatures) {
  CallCosts costs(signatures);
  ReplayDevice total;
  total.flops = costs.Sum(summary.ops(), std::nullopt);
  for (const ActivitySummary::Step& step : summary.steps()) {
    StepActivity activity{.step = step.step, .host = step.host};
    total.steps.push_back({.name = StepName(trace, activity),
                           .activity = activity,
                           .flops = costs.Sum(step.ops, std::nullopt)});
  }
  bool first = true;
  for (const ReplayDevice& device : devices) {
    AddActivity(device.activity, total.activity);
    total.counted_kernel_time_ns += device.counted_kernel_time_ns;
    const TimeSpan& span = device.activity.span;
    if (span.end_ns > span.start_ns) {
      TimeSpan& whole = total.activity.span;
      whole.start_ns = first ? span.start_ns : std::min(whole.start_ns, span.start_ns);
      whole.end_ns = first ? span.end_ns : std::max(whole.end_ns, span.end_ns);
      first = false;
    }
    for (std::size_t i = 0; i < device.steps.size(); ++i) {
      AddStep(device.steps[i].activity, total.steps[i].activity);
    }
  }
  return total;
}

}  // namespace flopledger
