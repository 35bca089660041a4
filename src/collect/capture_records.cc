#include "collect/capture_records.h"

#include <limits>

namespace flopledger {
namespace {

constexpr auto kMaxInt = static_cast<std::uint64_t>(std::numeric_limits<int>::max());

int Integer(WireReader& in) { return static_cast<int>(in.UpTo(kMaxInt)); }

// Options are checked when a session starts, so none of them is negative.
void Integer(int value, WireWriter& out) { out.Unsigned(static_cast<std::uint64_t>(value)); }

void EncodeRatio(const std::optional<double>& ratio, WireWriter& out) {
  out.Byte(ratio ? 1 : 0);
  if (ratio) out.Real(*ratio);
}

std::optional<double> DecodeRatio(WireReader& in) {
  if (in.UpTo(1) == 0) return std::nullopt;
  return in.Real();
}

void EncodePeak(const PeakRate& peak, WireWriter& out) {
  out.Text(peak.device_model);
  out.Byte(static_cast<std::uint8_t>(peak.dtype));
  out.Byte(peak.sparse ? 1 : 0);
  out.Real(peak.rate.value());
  out.Text(peak.source);
  out.Byte(static_cast<std::uint8_t>(peak.evidence));
  EncodeRatio(peak.spread_low_ratio, out);
  EncodeRatio(peak.spread_high_ratio, out);
}

PeakRate DecodePeak(WireReader& in) {
  PeakRate peak;
  peak.device_model = in.Text();
  peak.dtype = static_cast<DType>(in.UpTo(kAllDTypes.size() - 1));
  peak.sparse = in.UpTo(1) != 0;
  peak.rate = FlopsPerSecond(in.Real());
  peak.source = in.Text();
  peak.evidence =
      static_cast<PeakEvidence>(in.UpTo(static_cast<std::uint64_t>(PeakEvidence::kUser)));
  peak.spread_low_ratio = DecodeRatio(in);
  peak.spread_high_ratio = DecodeRatio(in);
  return peak;
}

void EncodeArgument(const OpArgument& argument, WireWriter& out) {
  out.Byte(static_cast<std::uint8_t>(argument.kind));
  out.Byte(static_cast<std::uint8_t>(argument.dtype));
  out.Unsigned(argument.integers.size());
  for (std::int64_t value : argument.integers) out.Signed(value);
  out.Real(argument.real);
}

OpArgument DecodeArgument(WireReader& in) {
  OpArgument argument;
  argument.kind =
      static_cast<OpArgument::Kind>(in.UpTo(static_cast<std::uint64_t>(OpArgument::Kind::kText)));
  argument.dtype = static_cast<DType>(in.UpTo(kAllDTypes.size() - 1));
  const std::size_t count = in.Count();
  for (std::size_t i = 0; i < count && in.ok(); ++i) argument.integers.push_back(in.Signed());
  argument.real = in.Real();
  return argument;
}

}  // namespace

void EncodeRun(const CaptureRun& run, WireWriter& out) {
  const RunDescription& description = run.description;
  out.Text(description.identity.run_id);
  Integer(description.identity.rank, out);
  Integer(description.identity.local_rank, out);
  Integer(description.identity.world_size, out);
  out.Text(description.identity.rank_source);
  out.Text(description.model);
  out.Text(description.convention.name);
  out.Unsigned(description.convention.hash);
  out.Unsigned(description.peaks.size());
  for (const PeakRate& peak : description.peaks) EncodePeak(peak, out);
  out.Byte(static_cast<std::uint8_t>(description.peak_dtype));
  out.Text(description.version);
  out.Unsigned(run.convention.size());
  for (const ConventionSwitch& each : run.convention) {
    out.Text(each.name);
    out.Text(each.value);
  }
  Integer(run.device_count, out);
  Integer(run.warmup_steps, out);
  out.Byte(run.host_ops ? 1 : 0);
  out.Signed(run.session_start_ns);
}

CaptureRun DecodeRun(WireReader& in) {
  CaptureRun run;
  RunDescription& description = run.description;
  description.identity.run_id = in.Text();
  description.identity.rank = Integer(in);
  description.identity.local_rank = Integer(in);
  description.identity.world_size = Integer(in);
  description.identity.rank_source = in.Text();
  description.model = in.Text();
  description.convention.name = in.Text();
  description.convention.hash = in.Unsigned();
  for (std::size_t left = in.Count(); left > 0 && in.ok(); --left) {
    description.peaks.push_back(DecodePeak(in));
  }
  description.peak_dtype = static_cast<DType>(in.UpTo(kAllDTypes.size() - 1));
  description.version = in.Text();
  for (std::size_t left = in.Count(); left > 0 && in.ok(); --left) {
    ConventionSwitch each;
    each.name = in.Text();
    each.value = in.Text();
    run.convention.push_back(std::move(each));
  }
  run.device_count = Integer(in);
  run.warmup_steps = Integer(in);
  run.host_ops = in.UpTo(1) != 0;
  run.session_start_ns = in.Signed();
  return run;
}

void EncodeEnd(const CaptureEnd& end, WireWriter& out) {
  out.Signed(end.close_ns);
  out.Signed(end.batches);
  out.Signed(end.lost_batches);
  out.Signed(end.lost_records);
}

CaptureEnd DecodeEnd(WireReader& in) {
  CaptureEnd end;
  end.close_ns = in.Signed();
  end.batches = in.Signed();
  end.lost_batches = in.Signed();
  end.lost_records = in.Signed();
  return end;
}

void EncodeOp(SignatureId id, OpClass op_class, const OpSignature& signature, WireWriter& out) {
  out.Unsigned(id);
  out.Byte(static_cast<std::uint8_t>(op_class));
  out.Text(signature.name);
  out.Unsigned(signature.arguments.size());
  for (const OpArgument& argument : signature.arguments) EncodeArgument(argument, out);
}

NumberedOp DecodeOp(WireReader& in) {
  NumberedOp op;
  op.id = static_cast<SignatureId>(in.UpTo(std::numeric_limits<SignatureId>::max()));
  op.op_class = static_cast<OpClass>(in.UpTo(kOpClassCount - 1));
  op.signature.name = in.Text();
  for (std::size_t left = in.Count(); left > 0 && in.ok(); --left) {
    op.signature.arguments.push_back(DecodeArgument(in));
  }
  return op;
}

void EncodeKernel(KernelId id, OpClass op_class, const KernelSignature& signature,
                  WireWriter& out) {
  out.Unsigned(id);
  out.Byte(static_cast<std::uint8_t>(op_class));
  out.Text(signature.name);
  for (std::uint32_t size : signature.grid) out.Unsigned(size);
  for (std::uint32_t size : signature.block) out.Unsigned(size);
  out.Unsigned(signature.shared_memory_bytes);
}

NumberedKernel DecodeKernel(WireReader& in) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  NumberedKernel kernel;
  kernel.id = static_cast<KernelId>(in.UpTo(kMost));
  kernel.op_class = static_cast<OpClass>(in.UpTo(kOpClassCount - 1));
  kernel.signature.name = in.Text();
  for (std::uint32_t& size : kernel.signature.grid)
    size = static_cast<std::uint32_t>(in.UpTo(kMost));
  for (std::uint32_t& size : kernel.signature.block) {
    size = static_cast<std::uint32_t>(in.UpTo(kMost));
  }
  kernel.signature.shared_memory_bytes = static_cast<std::uint32_t>(in.UpTo(kMost));
  return kernel;
}

void EncodeDevice(const DeviceDescription& device, WireWriter& out) {
  out.Unsigned(device.device);
  out.Text(device.name);
  out.Text(device.pci_bus_id);
  out.Text(device.uuid);
  out.Signed(device.compute_capability_major);
  out.Signed(device.compute_capability_minor);
  out.Signed(device.multiprocessors);
  out.Signed(device.memory_bytes);
}

DeviceDescription DecodeDevice(WireReader& in) {
  DeviceDescription device;
  device.device = static_cast<std::uint16_t>(in.UpTo(std::numeric_limits<std::uint16_t>::max()));
  device.name = in.Text();
  device.pci_bus_id = in.Text();
  device.uuid = in.Text();
  device.compute_capability_major = static_cast<int>(in.Signed());
  device.compute_capability_minor = static_cast<int>(in.Signed());
  device.multiprocessors = static_cast<int>(in.Signed());
  device.memory_bytes = in.Signed();
  return device;
}

}  // namespace flopledger
