#include "layer_terms.h"

namespace flopledger::flops {

// Both mixers are counted as the recurrence that they compute. Kernels run a chunked form of it,
// which executes more; hence the terms are marked approximate.

bool LayerTerms::AddMamba2(const State& state) {
  const Mamba2Shape& mamba = *description_.mamba2;
  const bool trains = state.trainable.attention;
  const std::int64_t projected = 2 * mamba.inner + 2 * mamba.groups * mamba.state + mamba.heads;
  const bool inner =
      AddWeight("mamba2.projections", state, description_.hidden, projected, trains, false);
  // Per channel and state: decay, input and its addition, read-out: seven operations.
  const Int128 scan = Int128{7} * mamba.inner * mamba.state;
  builder_.Add({.part = Part("mamba2.scan"),
                .shape = std::to_string(mamba.inner) + " channels x " +
                         std::to_string(mamba.state) + " states",
                .term_class = TermClass::kRecurrent,
                .quantity = Tokens(),
                .times = state.times,
                .forward = scan,
                .backward_input = inner ? scan * 2 : 0});
  State output = state;
  output.input = inner;
  return AddWeight("mamba2.projections", output, mamba.inner, description_.hidden, trains, false);
}

bool LayerTerms::AddGatedDelta(const State& state) {
  const GatedDeltaShape& delta = *description_.gated_delta;
  const bool trains = state.trainable.attention;
  const std::int64_t keys = delta.key_heads * delta.key_head_dim;
  const std::int64_t values = delta.value_heads * delta.value_head_dim;
  // Query, key, value, output gate; decay and write strength of each value head.
  const bool inner = AddWeight("gated_delta.projections", state, description_.hidden,
                               2 * keys + 2 * values + 2 * delta.value_heads, trains, false);
  State mixed = state;
  mixed.input = inner;
  AddWeight("gated_delta.convolution", mixed, delta.convolution, 2 * keys + values, trains, false);
  const Int128 update = Int128{8} * delta.value_heads * delta.value_head_dim * delta.value_head_dim;
  builder_.Add({.part = Part("gated_delta.state"),
                .shape = std::to_string(delta.value_heads) + " heads x " +
                         std::to_string(delta.value_head_dim) + "^2",
                .term_class = TermClass::kRecurrent,
                .quantity = Tokens(),
                .times = state.times,
                .forward = update,
                .backward_input = inner ? update * 2 : 0});
  return AddWeight("gated_delta.projections", mixed, values, description_.hidden, trains, false);
}

}  // namespace flopledger::flops
