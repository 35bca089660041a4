#pragma once

#include <random>

#include "flopledger/records.h"

namespace flopledger {

/// A batch with some of everything, extreme values among it.
inline RecordBatch RandomBatch(std::mt19937_64& random, std::size_t most_records) {
  const auto number = [&](std::uint64_t most) { return random() % (most + 1); };
  const auto time = [&]() -> std::int64_t {
    const std::uint64_t kind = number(19);
    if (kind == 0) return std::numeric_limits<std::int64_t>::min();
    if (kind == 1) return std::numeric_limits<std::int64_t>::max();
    return static_cast<std::int64_t>(number(1'000'000'000'000));
  };
  const auto phase = [&] { return static_cast<Phase>(number(kPhaseCount - 1)); };
  const auto op_class = [&] { return static_cast<OpClass>(number(kOpClassCount - 1)); };
  const auto some = [&] { return number(most_records); };
  RecordBatch batch;
  for (std::uint64_t i = some(); i > 0; --i) {
    batch.ops.push_back({.start_ns = time(),
                         .end_ns = time(),
                         .self_ns = time(),
                         .signature = static_cast<SignatureId>(random()),
                         .device = static_cast<std::uint16_t>(random()),
                         .phase = phase(),
                         .op_class = op_class()});
  }
  for (std::uint64_t i = some(); i > 0; --i) {
    batch.markers.push_back({.time_ns = time(),
                             .step = time(),
                             .kind = static_cast<MarkerRecord::Kind>(number(5)),
                             .phase = phase()});
  }
  for (std::uint64_t i = some(); i > 0; --i) {
    batch.tokens.push_back({.time_ns = time(),
                            .count = time(),
                            .length = time(),
                            .useful_length = time(),
                            .even_split = number(1) == 1,
                            .unknown_length = number(1) == 1});
  }
  for (std::uint64_t i = some(); i > 0; --i) {
    batch.declared.push_back(
        {.time_ns = time(),
         .forward = Flops::FromInteger(Int128{time()} * (Int128{1} << number(60))),
         .backward = Flops::FromInteger(-Int128{time()}),
         .tokens = time()});
  }
  for (std::uint64_t i = some(); i > 0; --i) {
    batch.values.push_back({.time_ns = time(),
                            .value = static_cast<double>(time()) / 7,
                            .name_id = static_cast<std::uint32_t>(random())});
  }
  for (std::uint64_t i = some(); i > 0; --i) {
    batch.losses.push_back(
        {.time_ns = time(),
         .count = time(),
         .where = static_cast<LossRecord::Where>(number(kLossWhereCount - 1)),
         .reason = static_cast<LossRecord::Reason>(number(kLossReasonCount - 1))});
  }
  for (std::uint64_t i = some(); i > 0; --i) {
    batch.kernels.push_back({.start_ns = time(),
                             .end_ns = time(),
                             .launch_order = time(),
                             .kernel = static_cast<KernelId>(random()),
                             .stream = static_cast<std::uint32_t>(random()),
                             .op = static_cast<SignatureId>(random()),
                             .device = static_cast<std::uint16_t>(random()),
                             .kind = static_cast<KernelRecord::Kind>(number(2)),
                             .op_class = op_class(),
                             .phase = phase(),
                             .launch_known = number(1) == 1,
                             .op_known = number(1) == 1});
  }
  for (std::uint64_t i = some(); i > 0; --i) {
    batch.fences.push_back({.boundary_ns = time(), .launch_order = time()});
  }
  for (std::uint64_t i = some(); i > 0; --i) {
    batch.overheads.push_back({.start_ns = time(),
                               .end_ns = time(),
                               .kind = static_cast<OverheadRecord::Kind>(number(4))});
  }
  for (std::uint64_t i = some(); i > 0; --i) {
    batch.clock_steps.push_back({.time_ns = time(), .jump_ns = time()});
  }
  if (number(1) == 1) batch.drained_at_ns = time();
  batch.aborted_ops = static_cast<std::int64_t>(number(3));
  return batch;
}

/// Every field as text: two batches are the same if these are.
inline std::string TextOf(const RecordBatch& batch) {
  std::string text;
  const auto add = [&](auto... values) {
    ((text += std::to_string(static_cast<std::int64_t>(values)) + " "), ...);
    text += "\n";
  };
  for (const OpRecord& r : batch.ops) {
    add(r.start_ns, r.end_ns, r.self_ns, r.signature, r.device, r.phase, r.op_class);
  }
  for (const MarkerRecord& r : batch.markers) add(r.time_ns, r.step, r.kind, r.phase);
  for (const TokenRecord& r : batch.tokens) {
    add(r.time_ns, r.count, r.length, r.useful_length, r.even_split, r.unknown_length);
  }
  for (const DeclaredRecord& r : batch.declared) {
    text += ToString(r.forward.count()) + " " + ToString(r.backward.count()) + " ";
    add(r.time_ns, r.tokens);
  }
  for (const ValueRecord& r : batch.values) {
    add(r.time_ns, std::bit_cast<std::int64_t>(r.value), r.name_id);
  }
  for (const LossRecord& r : batch.losses) add(r.time_ns, r.count, r.where, r.reason);
  for (const KernelRecord& r : batch.kernels) {
    add(r.start_ns, r.end_ns, r.launch_order, r.kernel, r.stream, r.op, r.device, r.kind,
        r.op_class, r.phase, r.launch_known, r.op_known);
  }
  for (const FenceRecord& r : batch.fences) add(r.boundary_ns, r.launch_order);
  for (const OverheadRecord& r : batch.overheads) add(r.start_ns, r.end_ns, r.kind);
  for (const ClockStepRecord& r : batch.clock_steps) add(r.time_ns, r.jump_ns);
  add(batch.drained_at_ns.has_value(), batch.drained_at_ns.value_or(0), batch.aborted_ops);
  return text;
}

}  // namespace flopledger
