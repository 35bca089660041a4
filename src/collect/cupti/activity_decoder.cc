#include "collect/cupti/activity_decoder.h"

#include <bit>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace flopledger {
namespace {

constexpr int kNameSlotBits = 13;        // 8192 of 56 bytes; a miss costs a look-up, never a name
constexpr std::size_t kOpSlots = 65536;  // launches between an op's record and its kernels
constexpr std::size_t kMemset = 11;
constexpr std::int64_t kSecondNs = 1'000'000'000;

constexpr std::array<std::string_view, 12> kCopyNames = {
    "memcpy",      "memcpy HtoD", "memcpy DtoH", "memcpy HtoA", "memcpy AtoH", "memcpy AtoA",
    "memcpy AtoD", "memcpy DtoA", "memcpy DtoD", "memcpy HtoH", "memcpy PtoP", "memset"};

// How much of a record of this kind is read; 0: nothing, it is stepped over.
std::size_t NeededBytes(std::uint32_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
    case CUPTI_ACTIVITY_KIND_KERNEL:
      return sizeof(KernelView);
    case CUPTI_ACTIVITY_KIND_MEMCPY:
    case CUPTI_ACTIVITY_KIND_MEMSET:
      return sizeof(CopyView);
    case CUPTI_ACTIVITY_KIND_MEMCPY2:
      return sizeof(PeerCopyView);
    case CUPTI_ACTIVITY_KIND_OVERHEAD:
      return sizeof(OverheadView);
    case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
      return sizeof(ExternalView);
    default:
      return 0;
  }
}

template <typename View>
View Read(const std::uint8_t* record) {
  View view;
  std::memcpy(&view, record, sizeof(view));
  return view;
}

OverheadRecord::Kind OverheadKindOf(std::uint32_t kind) {
  switch (kind) {
    case CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER:
      return OverheadRecord::Kind::kCompiler;
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH:
      return OverheadRecord::Kind::kBufferFlush;
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION:
      return OverheadRecord::Kind::kInstrumentation;
    case CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE:
      return OverheadRecord::Kind::kResource;
    default:
      return OverheadRecord::Kind::kOther;
  }
}

// Calls `visit(kind, record, bytes_left)` for every record and answers whether the buffer could be
// walked to its end. A record that does not advance, or lies outside, ends the walk.
template <typename Visit>
bool Walk(CuptiApi& api, std::uint8_t* buffer, std::size_t valid, Visit&& visit) {
  CUpti_Activity* record = nullptr;
  const std::uint8_t* last = nullptr;
  for (;;) {
    const CUptiResult code = api.NextRecord(buffer, valid, &record);
    if (code == CUPTI_ERROR_MAX_LIMIT_REACHED) return true;
    const auto* at = reinterpret_cast<const std::uint8_t*>(record);
    if (code != CUPTI_SUCCESS || at == nullptr || at <= last || at < buffer ||
        at + sizeof(std::uint32_t) > buffer + valid) {
      return false;
    }
    last = at;
    const auto kind = Read<std::uint32_t>(at);
    const auto left = static_cast<std::size_t>(buffer + valid - at);
    if (NeededBytes(kind) > left) return false;
    visit(kind, at, left);
  }
}

}  // namespace

ActivityDecoder::ActivityDecoder(std::size_t kernel_signatures, KernelTable::Classifier classify,
                                 bool link_ops)
    : kernels_(kernel_signatures, std::move(classify)),
      link_ops_(link_ops),
      names_(std::size_t{1} << kNameSlotBits),
      ops_(link_ops ? kOpSlots : 0) {}

std::int64_t ActivityDecoder::CountRecords(CuptiApi& api, std::uint8_t* buffer, std::size_t valid) {
  std::int64_t count = 0;
  Walk(api, buffer, valid, [&count](std::uint32_t kind, const std::uint8_t*, std::size_t) {
    if (NeededBytes(kind) != 0) ++count;
  });
  return count;
}

void ActivityDecoder::BeginDrain(std::int64_t now_ns) {
  now_ns_ = now_ns;
  ++drain_;
  unlinked_.clear();
}

void ActivityDecoder::Decode(CuptiApi& api, const DeviceClock& clock, std::uint8_t* buffer,
                             std::size_t valid, RecordBatch& batch) {
  const bool whole = Walk(
      api, buffer, valid, [&](std::uint32_t kind, const std::uint8_t* record, std::size_t left) {
        ++counts_.records;
        switch (kind) {
          case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
          case CUPTI_ACTIVITY_KIND_KERNEL:
            DecodeKernel(clock, record, left, batch);
            break;
          case CUPTI_ACTIVITY_KIND_MEMCPY:
          case CUPTI_ACTIVITY_KIND_MEMSET: {
            const auto copy = Read<CopyView>(record);
            DecodeCopy(clock, copy, copy.correlation,
                       kind == CUPTI_ACTIVITY_KIND_MEMSET ? KernelRecord::Kind::kMemset
                                                          : KernelRecord::Kind::kMemcpy,
                       batch);
            break;
          }
          case CUPTI_ACTIVITY_KIND_MEMCPY2: {
            const auto peer = Read<PeerCopyView>(record);
            DecodeCopy(clock, peer.copy, peer.correlation, KernelRecord::Kind::kMemcpy, batch);
            break;
          }
          case CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION:
            DecodeExternal(Read<ExternalView>(record), batch);
            break;
          case CUPTI_ACTIVITY_KIND_OVERHEAD:
            DecodeOverhead(clock, Read<OverheadView>(record), batch);
            break;
          default:
            ++counts_.skipped;
            break;
        }
      });
  if (!whole) Lose(now_ns_, 1, LossRecord::Reason::kUnknownCount, batch);
}

void ActivityDecoder::DecodeKernel(const DeviceClock& clock, const std::uint8_t* record,
                                   std::size_t left, RecordBatch& batch) {
  // In place: copied, the view's narrow fields would be stored and at once loaded again, wider.
  const auto& kernel = *reinterpret_cast<const KernelView*>(record);
  ++counts_.kernels;
  if (has_graph_node_ && left >= kGraphNodeOffset + sizeof(std::uint64_t) &&
      Read<std::uint64_t>(record + kGraphNodeOffset) != 0) {
    ++counts_.graph_kernels;
  }
  if (kernel.end < kernel.start) ++counts_.backward_kernels;
  const NameSlot& name = Intern(record);
  Add(clock,
      {.start = kernel.start,
       .end = kernel.end,
       .correlation = kernel.correlation,
       .device = kernel.device,
       .stream = kernel.stream,
       .kernel = name.kernel,
       .kind = KernelRecord::Kind::kKernel,
       .op_class = name.op_class},
      batch);
}

void ActivityDecoder::DecodeCopy(const DeviceClock& clock, const CopyView& copy,
                                 std::uint32_t correlation, KernelRecord::Kind kind,
                                 RecordBatch& batch) {
  const std::size_t copy_kind = kind == KernelRecord::Kind::kMemset ? kMemset
                                : copy.copy_kind < kMemset          ? copy.copy_kind
                                                                    : 0;
  Add(clock,
      {.start = copy.start,
       .end = copy.end,
       .correlation = correlation,
       .device = copy.device,
       .stream = copy.stream,
       .kernel = CopyId(copy_kind),
       .kind = kind,
       .op_class = OpClass::kCopy},
      batch);
}

void ActivityDecoder::Add(const DeviceClock& clock, const Work& work, RecordBatch& batch) {
  // Work that the device launched itself may carry no id.
  const bool launch_known = work.correlation != 0;
  const LaunchOrder order = launch_known ? orders_.Extend(work.correlation) : 0;
  const std::optional<std::int64_t> boundary =
      launch_known ? fences_.BoundaryBefore(order) : std::nullopt;
  const std::optional<Times> times = TimesOf(clock, work.start, work.end, boundary);
  if (!times) {
    // Counted in the step that launched it, where that is known.
    Lose(boundary.value_or(now_ns_), 1, LossRecord::Reason::kInvalidTime, batch);
    return;
  }
  if (work.device < 64) devices_seen_ |= std::uint64_t{1} << work.device;
  KernelRecord& record = batch.kernels.emplace_back();
  record.start_ns = times->start_ns;
  record.end_ns = times->end_ns;
  record.launch_order = order;
  record.kernel = work.kernel;
  record.stream = work.stream;
  record.device = static_cast<std::uint16_t>(work.device);
  record.kind = work.kind;
  record.op_class = work.op_class;
  record.launch_known = launch_known;
  if (link_ops_ && launch_known) {
    LinkOp(work.correlation, record);
    if (!record.op_known) unlinked_.emplace_back(batch.kernels.size() - 1, work.correlation);
  }
}

std::optional<ActivityDecoder::Times> ActivityDecoder::TimesOf(
    const DeviceClock& clock, std::uint64_t start, std::uint64_t end,
    std::optional<std::int64_t> boundary_ns) const {
  if (start == 0 || end < start) return std::nullopt;
  const std::int64_t earliest = boundary_ns.value_or(started_at_ns_) - kSecondNs;
  const std::int64_t latest = now_ns_ + kSecondNs;
  const auto length = static_cast<std::int64_t>(end - start);
  if (length < 0) return std::nullopt;
  auto inside = [&](std::int64_t start_ns) {
    return start_ns >= earliest && start_ns <= latest && length <= latest - start_ns;
  };
  const std::int64_t start_ns = clock.ToSession(start);
  if (inside(start_ns)) return Times{.start_ns = start_ns, .end_ns = start_ns + length};
  const std::optional<std::int64_t> before_step = clock.ToSessionBeforeStep(start);
  if (!before_step || !inside(*before_step)) return std::nullopt;
  return Times{.start_ns = *before_step, .end_ns = *before_step + length};
}

void ActivityDecoder::DecodeExternal(const ExternalView& external, RecordBatch& batch) {
  switch (ExternalId::KindOf(external.external_id)) {
    case ExternalId::Kind::kFence: {
      const FenceRecord fence{.boundary_ns = ExternalId::BoundaryOf(external.external_id),
                              .launch_order = orders_.Extend(external.correlation)};
      ++counts_.fences;
      fences_.Add(fence);
      batch.fences.push_back(fence);
      return;
    }
    case ExternalId::Kind::kOp:
      if (link_ops_) {
        ops_[external.correlation % kOpSlots] = {.correlation = external.correlation,
                                                 .op = ExternalId::OpOf(external.external_id),
                                                 .phase = ExternalId::PhaseOf(external.external_id),
                                                 .known = true};
      }
      return;
    case ExternalId::Kind::kForeign:
      ++counts_.skipped;
      return;
  }
}

void ActivityDecoder::DecodeOverhead(const DeviceClock& clock, const OverheadView& overhead,
                                     RecordBatch& batch) {
  const std::optional<Times> times = TimesOf(clock, overhead.start, overhead.end, std::nullopt);
  if (!times) {
    ++counts_.skipped;
    return;
  }
  batch.overheads.push_back({.start_ns = times->start_ns,
                             .end_ns = times->end_ns,
                             .kind = OverheadKindOf(overhead.overhead_kind)});
}

const ActivityDecoder::NameSlot& ActivityDecoder::Intern(const std::uint8_t* record) {
  // Grid, block and both kinds of shared memory lie side by side.
  static_assert(offsetof(KernelView, local_per_thread) - offsetof(KernelView, grid) ==
                sizeof(NameSlot::shape));
  const auto name = Read<const char*>(record + offsetof(KernelView, name));
  const auto shape = Read<decltype(NameSlot::shape)>(record + offsetof(KernelView, grid));
  std::uint64_t hash = reinterpret_cast<std::uintptr_t>(name) ^ (shape[0] << 1) ^
                       std::rotl(shape[1], 17) ^ std::rotl(shape[2], 31) ^ std::rotl(shape[3], 47);
  hash *= 0x9e3779b97f4a7c15ULL;
  NameSlot& slot = names_[hash >> (64 - kNameSlotBits)];
  const bool same =
      slot.name == name && ((slot.shape[0] ^ shape[0]) | (slot.shape[1] ^ shape[1]) |
                            (slot.shape[2] ^ shape[2]) | (slot.shape[3] ^ shape[3])) == 0;
  if (same && slot.checked_in == drain_) return slot;
  // The pointer may be of another text by now: its module was unloaded and another took its place.
  // Once a drain is enough, names of one drain are alive together.
  const KernelSignature* known = same ? kernels_.Find(slot.kernel) : nullptr;
  if (known == nullptr || known->name != (name == nullptr ? "" : name)) {
    InternSlow(*reinterpret_cast<const KernelView*>(record), slot);
    slot.shape = shape;
  }
  slot.checked_in = drain_;
  return slot;
}

void ActivityDecoder::InternSlow(const KernelView& kernel, NameSlot& slot) {
  const KernelSignature signature{
      .name = kernel.name == nullptr ? "" : kernel.name,
      .grid = {kernel.grid[0], kernel.grid[1], kernel.grid[2]},
      .block = {kernel.block[0], kernel.block[1], kernel.block[2]},
      .shared_memory_bytes = kernel.static_shared_bytes + kernel.dynamic_shared_bytes};
  slot.name = kernel.name;
  slot.kernel = kernels_.Intern(signature);
  slot.op_class = kernels_.ClassOf(slot.kernel);
}

KernelId ActivityDecoder::CopyId(std::size_t copy_kind) {
  KernelId& id = copy_ids_[copy_kind];
  if (id == kOverflowKernel) id = kernels_.Intern({.name = std::string(kCopyNames[copy_kind])});
  return id;
}

void ActivityDecoder::LinkOp(std::uint32_t correlation, KernelRecord& record) const {
  const OpSlot& slot = ops_[correlation % kOpSlots];
  if (!slot.known || slot.correlation != correlation) return;
  record.op = slot.op;
  record.phase = slot.phase;
  record.op_known = true;
}

void ActivityDecoder::EndDrain(RecordBatch& batch) {
  // The op's record may lie behind its kernel's, in a later buffer of the same drain.
  for (const auto& [index, correlation] : unlinked_) LinkOp(correlation, batch.kernels[index]);
  unlinked_.clear();
}

void ActivityDecoder::Lose(std::int64_t time_ns, std::int64_t count, LossRecord::Reason reason,
                           RecordBatch& batch) {
  if (!batch.losses.empty()) {
    LossRecord& last = batch.losses.back();
    if (last.where == LossRecord::Where::kDevice && last.reason == reason &&
        last.time_ns == time_ns) {
      last.count += count;
      return;
    }
  }
  batch.losses.push_back(
      {.time_ns = time_ns, .count = count, .where = LossRecord::Where::kDevice, .reason = reason});
}

}  // namespace flopledger
