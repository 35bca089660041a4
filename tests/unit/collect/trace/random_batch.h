#pragma once

#include <bit>
#include <limits>
#include <random>
#include <string>

#include "flopledger/records.h"

namespace flopledger {

/// Batches with some of everything, extreme values among it.
class RandomRecords {
 public:
  explicit RandomRecords(std::mt19937_64& random) : random_(random) {}

  RecordBatch Batch(std::size_t most_records) {
    RecordBatch batch;
    const auto fill = [&](auto& list, auto make) {
      for (std::uint64_t i = Number(most_records); i > 0; --i) list.push_back(make());
    };
    fill(batch.ops, [this] { return Op(); });
    fill(batch.markers, [this] { return Marker(); });
    fill(batch.tokens, [this] { return Tokens(); });
    fill(batch.declared, [this] { return Declared(); });
    fill(batch.values, [this] {
      return ValueRecord{.time_ns = Time(),
                         .value = static_cast<double>(Time()) / 7,
                         .name_id = static_cast<std::uint32_t>(random_())};
    });
    fill(batch.losses, [this] {
      return LossRecord{.time_ns = Time(),
                        .count = Time(),
                        .where = static_cast<LossRecord::Where>(Number(kLossWhereCount - 1)),
                        .reason = static_cast<LossRecord::Reason>(Number(kLossReasonCount - 1))};
    });
    fill(batch.kernels, [this] { return Kernel(); });
    fill(batch.fences,
         [this] { return FenceRecord{.boundary_ns = Time(), .launch_order = Time()}; });
    fill(batch.overheads, [this] {
      return OverheadRecord{.start_ns = Time(),
                            .end_ns = Time(),
                            .kind = static_cast<OverheadRecord::Kind>(Number(4))};
    });
    fill(batch.clock_steps,
         [this] { return ClockStepRecord{.time_ns = Time(), .jump_ns = Time()}; });
    if (Coin()) batch.drained_at_ns = Time();
    batch.aborted_ops = static_cast<std::int64_t>(Number(3));
    return batch;
  }

 private:
  std::uint64_t Number(std::uint64_t most) { return random_() % (most + 1); }
  bool Coin() { return Number(1) == 1; }
  std::int64_t Time() {
    const std::uint64_t kind = Number(19);
    if (kind == 0) return std::numeric_limits<std::int64_t>::min();
    if (kind == 1) return std::numeric_limits<std::int64_t>::max();
    return static_cast<std::int64_t>(Number(1'000'000'000'000));
  }
  Phase AnyPhase() { return static_cast<Phase>(Number(kPhaseCount - 1)); }
  OpClass AnyClass() { return static_cast<OpClass>(Number(kOpClassCount - 1)); }

  OpRecord Op() {
    return {.start_ns = Time(),
            .end_ns = Time(),
            .self_ns = Time(),
            .signature = static_cast<SignatureId>(random_()),
            .device = static_cast<std::uint16_t>(random_()),
            .phase = AnyPhase(),
            .op_class = AnyClass()};
  }
  MarkerRecord Marker() {
    return {.time_ns = Time(),
            .step = Time(),
            .kind = static_cast<MarkerRecord::Kind>(Number(5)),
            .phase = AnyPhase()};
  }
  TokenRecord Tokens() {
    return {.time_ns = Time(),
            .count = Time(),
            .length = Time(),
            .useful_length = Time(),
            .even_split = Coin(),
            .unknown_length = Coin()};
  }
  DeclaredRecord Declared() {
    return {.time_ns = Time(),
            .forward = Flops::FromInteger(Int128{Time()} * (Int128{1} << Number(60))),
            .backward = Flops::FromInteger(-Int128{Time()}),
            .tokens = Time()};
  }
  KernelRecord Kernel() {
    return {.start_ns = Time(),
            .end_ns = Time(),
            .launch_order = Time(),
            .kernel = static_cast<KernelId>(random_()),
            .stream = static_cast<std::uint32_t>(random_()),
            .op = static_cast<SignatureId>(random_()),
            .device = static_cast<std::uint16_t>(random_()),
            .kind = static_cast<KernelRecord::Kind>(Number(2)),
            .op_class = AnyClass(),
            .phase = AnyPhase(),
            .launch_known = Coin(),
            .op_known = Coin()};
  }

  std::mt19937_64& random_;
};

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
