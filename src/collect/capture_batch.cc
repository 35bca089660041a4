#include <array>

#include "collect/capture_records.h"

// Lists of a batch in the order of their bits. A list is its length and its records; a record's
// time is the difference from the record before it, whatever list that was in.

namespace flopledger {
namespace {

enum ListBit : std::uint64_t {
  kOps = 1 << 0,
  kMarkers = 1 << 1,
  kTokens = 1 << 2,
  kDeclared = 1 << 3,
  kValues = 1 << 4,
  kLosses = 1 << 5,
  kKernels = 1 << 6,
  kFences = 1 << 7,
  kOverheads = 1 << 8,
  kClockSteps = 1 << 9,
  kDrainedAt = 1 << 10,
  kAborted = 1 << 11,
  kAllLists = (1 << 12) - 1,
};

// Sets of fewer than sixteen values go two to a byte.
static_assert(kPhaseCount <= 16 && kOpClassCount <= 16);

void PhaseAndClass(Phase phase, OpClass op_class, WireWriter& out) {
  out.Byte(static_cast<std::uint8_t>((static_cast<unsigned>(phase) << 4) |
                                     static_cast<unsigned>(op_class)));
}

void PhaseAndClass(WireReader& in, Phase& phase, OpClass& op_class) {
  const std::uint8_t both = in.Byte();
  if ((both >> 4) >= kPhaseCount || (both & 0xf) >= kOpClassCount) {
    in.Refuse();
    return;
  }
  phase = static_cast<Phase>(both >> 4);
  op_class = static_cast<OpClass>(both & 0xf);
}

template <typename Enum>
Enum OneOf(WireReader& in, std::size_t count) {
  return static_cast<Enum>(in.UpTo(count - 1));
}

class BatchEncoder {
 public:
  BatchEncoder(std::int64_t& last_ns, WireWriter& out) : last_ns_(last_ns), out_(out) {}

  void Time(std::int64_t time_ns) {
    out_.Difference(time_ns, last_ns_);
    last_ns_ = time_ns;
  }
  void operator()(const OpRecord& op) {
    Time(op.start_ns);
    out_.Difference(op.end_ns, op.start_ns);
    // The time in called ops, from which the self time follows: 0 for most.
    out_.Difference(WrappedDifference(op.end_ns, op.start_ns), op.self_ns);
    out_.Unsigned(op.signature);
    out_.Unsigned(op.device);
    PhaseAndClass(op.phase, op.op_class, out_);
  }
  void operator()(const MarkerRecord& marker) {
    Time(marker.time_ns);
    out_.Signed(marker.step);
    out_.Byte(static_cast<std::uint8_t>(marker.kind));
    out_.Byte(static_cast<std::uint8_t>(marker.phase));
  }
  void operator()(const TokenRecord& token) {
    Time(token.time_ns);
    out_.Signed(token.count);
    out_.Signed(token.length);
    out_.Signed(token.useful_length);
    out_.Byte(
        static_cast<std::uint8_t>((token.even_split ? 1 : 0) | (token.unknown_length ? 2 : 0)));
  }
  void operator()(const DeclaredRecord& declared) {
    Time(declared.time_ns);
    out_.Wide(declared.forward.count());
    out_.Wide(declared.backward.count());
    out_.Signed(declared.tokens);
  }
  void operator()(const ValueRecord& value) {
    Time(value.time_ns);
    out_.Real(value.value);
    out_.Unsigned(value.name_id);
  }
  void operator()(const LossRecord& loss) {
    Time(loss.time_ns);
    out_.Signed(loss.count);
    out_.Byte(static_cast<std::uint8_t>(loss.where));
    out_.Byte(static_cast<std::uint8_t>(loss.reason));
  }
  void operator()(const KernelRecord& kernel) {
    Time(kernel.start_ns);
    out_.Difference(kernel.end_ns, kernel.start_ns);
    out_.Byte(static_cast<std::uint8_t>(static_cast<unsigned>(kernel.kind) |
                                        (kernel.launch_known ? 4U : 0U) |
                                        (kernel.op_known ? 8U : 0U)));
    out_.Difference(kernel.launch_order, last_launch_);
    last_launch_ = kernel.launch_order;
    out_.Unsigned(kernel.kernel);
    out_.Unsigned(kernel.stream);
    out_.Unsigned(kernel.op);
    out_.Unsigned(kernel.device);
    PhaseAndClass(kernel.phase, kernel.op_class, out_);
  }
  void operator()(const FenceRecord& fence) {
    Time(fence.boundary_ns);
    out_.Signed(fence.launch_order);
  }
  void operator()(const OverheadRecord& overhead) {
    Time(overhead.start_ns);
    out_.Difference(overhead.end_ns, overhead.start_ns);
    out_.Byte(static_cast<std::uint8_t>(overhead.kind));
  }
  void operator()(const ClockStepRecord& step) {
    Time(step.time_ns);
    out_.Signed(step.jump_ns);
  }
  template <typename Record>
  void List(const std::vector<Record>& records) {
    if (records.empty()) return;
    out_.Unsigned(records.size());
    for (const Record& record : records) (*this)(record);
  }

 private:
  std::int64_t& last_ns_;
  std::int64_t last_launch_ = 0;
  WireWriter& out_;
};

class BatchDecoder {
 public:
  BatchDecoder(std::int64_t& last_ns, WireReader& in) : last_ns_(last_ns), in_(in) {}

  std::int64_t Time() { return last_ns_ = in_.Difference(last_ns_); }

  void operator()(OpRecord& op) {
    op.start_ns = Time();
    op.end_ns = in_.Difference(op.start_ns);
    op.self_ns = WrappedDifference(WrappedDifference(op.end_ns, op.start_ns), in_.Signed());
    op.signature = Narrow<SignatureId>();
    op.device = Narrow<std::uint16_t>();
    PhaseAndClass(in_, op.phase, op.op_class);
  }
  void operator()(MarkerRecord& marker) {
    marker.time_ns = Time();
    marker.step = in_.Signed();
    marker.kind = OneOf<MarkerRecord::Kind>(
        in_, static_cast<std::size_t>(MarkerRecord::Kind::kDeclarationInvalid) + 1);
    marker.phase = OneOf<Phase>(in_, kPhaseCount);
  }
  void operator()(TokenRecord& token) {
    token.time_ns = Time();
    token.count = in_.Signed();
    token.length = in_.Signed();
    token.useful_length = in_.Signed();
    const std::uint64_t flags = in_.UpTo(3);
    token.even_split = (flags & 1) != 0;
    token.unknown_length = (flags & 2) != 0;
  }
  void operator()(DeclaredRecord& declared) {
    declared.time_ns = Time();
    declared.forward = Flops::FromInteger(in_.Wide());
    declared.backward = Flops::FromInteger(in_.Wide());
    declared.tokens = in_.Signed();
  }
  void operator()(ValueRecord& value) {
    value.time_ns = Time();
    value.value = in_.Real();
    value.name_id = Narrow<std::uint32_t>();
  }
  void operator()(LossRecord& loss) {
    loss.time_ns = Time();
    loss.count = in_.Signed();
    loss.where = OneOf<LossRecord::Where>(in_, kLossWhereCount);
    loss.reason = OneOf<LossRecord::Reason>(in_, kLossReasonCount);
  }
  void operator()(KernelRecord& kernel) {
    kernel.start_ns = Time();
    kernel.end_ns = in_.Difference(kernel.start_ns);
    const std::uint64_t flags = in_.UpTo(15);
    if ((flags & 3) > static_cast<std::uint64_t>(KernelRecord::Kind::kMemset)) in_.Refuse();
    kernel.kind = static_cast<KernelRecord::Kind>(flags & 3);
    kernel.launch_known = (flags & 4) != 0;
    kernel.op_known = (flags & 8) != 0;
    kernel.launch_order = last_launch_ = in_.Difference(last_launch_);
    kernel.kernel = Narrow<KernelId>();
    kernel.stream = Narrow<std::uint32_t>();
    kernel.op = Narrow<SignatureId>();
    kernel.device = Narrow<std::uint16_t>();
    PhaseAndClass(in_, kernel.phase, kernel.op_class);
  }
  void operator()(FenceRecord& fence) {
    fence.boundary_ns = Time();
    fence.launch_order = in_.Signed();
  }
  void operator()(OverheadRecord& overhead) {
    overhead.start_ns = Time();
    overhead.end_ns = in_.Difference(overhead.start_ns);
    overhead.kind = OneOf<OverheadRecord::Kind>(
        in_, static_cast<std::size_t>(OverheadRecord::Kind::kOther) + 1);
  }
  void operator()(ClockStepRecord& step) {
    step.time_ns = Time();
    step.jump_ns = in_.Signed();
  }
  template <typename Record>
  void List(bool present, std::vector<Record>& records) {
    if (!present) return;
    const std::size_t count = in_.Count();
    for (std::size_t i = 0; i < count && in_.ok(); ++i) {
      Record record;
      (*this)(record);
      if (in_.ok()) records.push_back(record);
    }
  }

 private:
  template <typename Narrower>
  Narrower Narrow() {
    return static_cast<Narrower>(in_.UpTo(static_cast<Narrower>(-1)));
  }

  std::int64_t& last_ns_;
  std::int64_t last_launch_ = 0;
  WireReader& in_;
};

std::uint64_t ListsOf(const RecordBatch& batch) {
  const std::array present = {
      !batch.ops.empty(),         !batch.markers.empty(),          !batch.tokens.empty(),
      !batch.declared.empty(),    !batch.values.empty(),           !batch.losses.empty(),
      !batch.kernels.empty(),     !batch.fences.empty(),           !batch.overheads.empty(),
      !batch.clock_steps.empty(), batch.drained_at_ns.has_value(), batch.aborted_ops != 0};
  std::uint64_t lists = 0;
  for (std::size_t i = 0; i < present.size(); ++i) {
    if (present[i]) lists |= std::uint64_t{1} << i;
  }
  return lists;
}

}  // namespace

void EncodeBatch(const RecordBatch& batch, std::int64_t& last_ns, WireWriter& out) {
  out.Unsigned(ListsOf(batch));
  BatchEncoder encode(last_ns, out);
  encode.List(batch.ops);
  encode.List(batch.markers);
  encode.List(batch.tokens);
  encode.List(batch.declared);
  encode.List(batch.values);
  encode.List(batch.losses);
  encode.List(batch.kernels);
  encode.List(batch.fences);
  encode.List(batch.overheads);
  encode.List(batch.clock_steps);
  if (batch.drained_at_ns) encode.Time(*batch.drained_at_ns);
  if (batch.aborted_ops != 0) out.Signed(batch.aborted_ops);
}

void DecodeBatch(WireReader& in, std::int64_t& last_ns, RecordBatch& batch) {
  const std::uint64_t lists = in.UpTo(kAllLists);
  BatchDecoder decode(last_ns, in);
  decode.List((lists & kOps) != 0, batch.ops);
  decode.List((lists & kMarkers) != 0, batch.markers);
  decode.List((lists & kTokens) != 0, batch.tokens);
  decode.List((lists & kDeclared) != 0, batch.declared);
  decode.List((lists & kValues) != 0, batch.values);
  decode.List((lists & kLosses) != 0, batch.losses);
  decode.List((lists & kKernels) != 0, batch.kernels);
  decode.List((lists & kFences) != 0, batch.fences);
  decode.List((lists & kOverheads) != 0, batch.overheads);
  decode.List((lists & kClockSteps) != 0, batch.clock_steps);
  if ((lists & kDrainedAt) != 0) batch.drained_at_ns = decode.Time();
  if ((lists & kAborted) != 0) batch.aborted_ops += in.Signed();
}

std::int64_t RecordCount(const RecordBatch& batch) {
  return static_cast<std::int64_t>(
      batch.ops.size() + batch.markers.size() + batch.tokens.size() + batch.declared.size() +
      batch.values.size() + batch.losses.size() + batch.kernels.size() + batch.fences.size() +
      batch.overheads.size() + batch.clock_steps.size());
}

}  // namespace flopledger
