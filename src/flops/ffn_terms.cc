#include <algorithm>

#include "layer_terms.h"

namespace flopledger::flops {

void LayerTerms::AddFfn(const LayerRun& run, const State& state) {
  switch (run.feed_forward) {
    case FfnKind::kDense:
      AddDenseFfn("ffn", run.ffn > 0 ? run.ffn : description_.ffn, state);
      return;
    case FfnKind::kExperts:
      AddExperts(state);
      return;
    case FfnKind::kNone:
      return;
  }
}

void LayerTerms::AddDenseFfn(std::string_view part, std::int64_t width, const State& state) {
  const bool trains = state.trainable.ffn;
  const bool adapted = description_.lora.value_or(LoraShape{}).ffn;
  const std::int64_t hidden = description_.hidden;
  State inner = state;
  inner.input = AddWeight(part, state, hidden, width, trains, adapted);
  if (description_.gated_ffn) {
    if (builder_.convention().ffn_gate) {
      AddWeight(part, state, hidden, width, trains, adapted);
    } else {
      const Exact gate = Exact(state.times) * hidden * width;
      builder_.Parameters(gate, gate);
    }
  }
  AddWeight(part, inner, width, hidden, trains, adapted);
}

void LayerTerms::AddExperts(const State& state) {
  const ExpertShape& experts = *description_.experts;
  const std::int64_t hidden = description_.hidden;
  if (builder_.convention().router) {
    const std::int64_t gates = experts.experts + (experts.shared_gate ? 1 : 0);
    AddWeight("router", state, hidden, gates, state.trainable.router, false);
  } else {
    const Exact router = Exact(state.times) * hidden * experts.experts;
    builder_.Parameters(router, router);
  }
  if (experts.shared > 0) {
    const std::int64_t width = experts.shared_ffn > 0 ? experts.shared_ffn : experts.expert_ffn;
    // Side by side, n experts are one of n times the width.
    AddDenseFfn("shared_experts", width * experts.shared, state);
  }
  const bool trains = state.trainable.ffn;
  State expert_state = state;
  std::int64_t width = hidden;
  if (experts.latent > 0) {
    width = experts.latent;
    expert_state.input = AddWeight("experts", state, hidden, width, trains, false);
  }
  const Quantity visits{.kind = QuantityKind::kExpertSlots,
                        .size = experts.active,
                        .experts = experts.experts,
                        .capacity_percent = experts.capacity_percent};
  const TermBuilder::Weight up{
      .in = width, .out = experts.expert_ffn, .copies = experts.experts, .met = experts.active};
  const TermBuilder::Weight down{
      .in = experts.expert_ffn, .out = width, .copies = experts.experts, .met = experts.active};
  const std::string part = Part("experts");
  builder_.Linear(part, state.times, up, visits, {.input = expert_state.input, .weight = trains});
  if (description_.gated_ffn) {
    if (builder_.convention().ffn_gate) {
      builder_.Linear(part, state.times, up, visits,
                      {.input = expert_state.input, .weight = trains});
    } else {
      const Exact gate = Exact(state.times) * width * experts.expert_ffn;
      builder_.Parameters(gate * experts.experts, gate * experts.active);
    }
  }
  const bool inner = expert_state.input || trains;
  builder_.Linear(part, state.times, down, visits, {.input = inner, .weight = trains});
  if (experts.latent > 0) {
    State back = state;
    back.input = inner || trains;
    AddWeight("experts", back, width, hidden, trains, false);
  }
}

}  // namespace flopledger::flops
