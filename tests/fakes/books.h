#pragma once

// Values for ledger tests: steps, ops and peaks made by hand or at random.

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "ledger/reconcile.h"

namespace flopledger::fakes {

inline PeakRate Peak(DType dtype, double flops_per_second) {
  return {.device_model = "test device",
          .dtype = dtype,
          .rate = FlopsPerSecond(flops_per_second),
          .source = "test"};
}

inline ResolvedOp Counted(std::int64_t flops, Phase phase, std::int64_t launches,
                          std::int64_t self_ns, DType dtype = DType::kFloat32) {
  ResolvedOp op;
  op.name = "aten::mm";
  op.sum = {.signature = 1,
            .phase = phase,
            .op_class = OpClass::kMatmul,
            .launches = launches,
            .self_time = DurationNs(self_ns)};
  op.cost.coverage = CoverageKind::kCounted;
  op.cost.op_class = OpClass::kMatmul;
  op.cost.dtype = dtype;
  op.cost.executed = Flops::FromInteger(flops);
  return op;
}

inline ResolvedOp Uncounted(CoverageKind coverage, std::string name, std::int64_t launches,
                            std::int64_t self_ns) {
  ResolvedOp op = Counted(0, Phase::kForward, launches, self_ns);
  op.name = std::move(name);
  op.cost.coverage = coverage;
  op.cost.op_class = coverage == CoverageKind::kUnknown ? OpClass::kUnknown : OpClass::kElementwise;
  op.cost.executed = Flops();
  return op;
}

/// A step of `wall_ns` whose device was busy for `busy_ns` of it.
inline StepTimeline Step(std::int64_t wall_ns, std::int64_t busy_ns) {
  StepTimeline timeline;
  timeline.end_ns = wall_ns;
  timeline.closed_by = "next_boundary";
  DeviceTime device;
  auto& cells = device.by_state_and_section;
  const auto other = static_cast<std::size_t>(Phase::kOther);
  cells[static_cast<std::size_t>(DeviceState::kCompute)][other] = DurationNs(busy_ns);
  cells[static_cast<std::size_t>(DeviceState::kIdle)][other] = DurationNs(wall_ns - busy_ns);
  timeline.devices.push_back(device);
  return timeline;
}

inline StepDeclaration Declared(std::int64_t forward, std::int64_t backward,
                                std::int64_t padding = 0) {
  StepDeclaration declaration;
  declaration.tokens = {.useful = 90, .padded = 100};
  declaration.flops = DeclaredFlops{.useful_forward = Flops::FromInteger(forward),
                                    .useful_backward = Flops::FromInteger(backward),
                                    .padding = Flops::FromInteger(padding)};
  return declaration;
}

/// Any step: all phases, sections, dtypes, gaps, losses, refusals, negative excess.
struct RandomStep {
  StepTimeline timeline;
  std::vector<ResolvedOp> ops;
  StepDeclaration declaration;
};

inline RandomStep MakeRandomStep(std::mt19937_64& random) {
  RandomStep result;
  const auto below = [&](std::int64_t limit) {
    return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(limit));
  };
  const std::int64_t wall = below(2'000'000'000);
  result.timeline = Step(wall, 0);
  result.timeline.complete = below(20) != 0;
  // Cut the wall at random into cells; they sum to it by construction.
  DeviceTime& device = result.timeline.devices.front();
  device.by_state_and_section = {};
  std::int64_t left = wall;
  for (int i = 0; i < 12; ++i) {
    const std::int64_t part = i == 11 ? left : below(left + 1);
    device.by_state_and_section[static_cast<std::size_t>(below(kDeviceStateCount))]
                               [static_cast<std::size_t>(below(kPhaseCount))] += DurationNs(part);
    left -= part;
  }
  for (std::int64_t i = 0, n = below(12); i < n; ++i) {
    const auto phase = static_cast<Phase>(below(kPhaseCount));
    if (below(3) > 0) {
      ResolvedOp op = Counted(below(1'000'000'000'000), phase, 1 + below(1000), below(wall + 1),
                              below(2) == 0 ? DType::kFloat32 : DType::kBfloat16);
      if (below(4) == 0) {
        op.cost.excess.push_back(
            {.cause = "some_excess", .flops = Flops::FromInteger(below(1'000'000) - 500'000)});
      }
      result.ops.push_back(op);
    } else {
      result.ops.push_back(
          Uncounted(below(2) == 0 ? CoverageKind::kUnknown : CoverageKind::kOutside,
                    "custom::op" + std::to_string(below(90)), 1 + below(100), below(wall + 1)));
      result.ops.back().sum.phase = phase;
    }
  }
  if (below(10) == 0) {
    result.timeline.losses.push_back({.count = 1 + below(50)});
  }
  if (below(8) != 0) {
    result.declaration =
        Declared(below(1'000'000'000'000'000), below(1'000'000'000'000'000), below(1'000'000'000));
  } else {
    result.declaration.refusal = RefusalReason::kNoTokens;
  }
  return result;
}

}  // namespace flopledger::fakes
