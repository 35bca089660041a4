#include "collect/host_source.h"

#include <algorithm>
#include <set>
#include <utility>

// A thread finds its rings through one thread-local pair; the first write of a thread registers it.
// The rings are shared by the thread and the source, so that neither can pull them from under the
// other: a thread may outlive the source, and the source must drain what a dead thread left.

namespace flopledger {

struct HostSource::MarkerSlot {
  enum class Kind : std::uint8_t { kMarker, kTokens, kDeclared, kValue };
  std::int64_t time_ns = 0;
  std::int64_t a = 0;
  std::int64_t b = 0;
  std::int64_t c = 0;
  std::int64_t d = 0;
  std::int64_t e = 0;
  double value = 0;
  Kind kind = Kind::kMarker;
  std::uint8_t detail = 0;
  Phase phase = Phase::kOther;
};

struct HostSource::ThreadRings {
  ThreadRings(std::size_t op_slots, std::size_t marker_slots)
      : ops(op_slots), markers(marker_slots) {}
  SpscRing<OpRecord> ops;
  SpscRing<MarkerSlot> markers;
  std::atomic<std::int64_t> lost_ops{0};
  std::atomic<std::int64_t> lost_markers{0};
  std::atomic<std::int64_t> aborted{0};
  std::atomic<bool> retired{false};  // the thread ended
  // Counts that the reader has passed on already.
  std::int64_t reported_ops = 0;
  std::int64_t reported_markers = 0;
  std::int64_t reported_aborted = 0;
};

/// What a thread keeps: the rings that it writes to, retired when it ends.
struct HostSource::ThreadEntry {
  std::shared_ptr<ThreadRings> rings;
  ~ThreadEntry() {
    if (rings) rings->retired.store(true, std::memory_order_release);
  }
};

namespace {

std::atomic<std::uint64_t> next_source_id{1};

struct CachedRings {
  std::uint64_t source_id = 0;
  void* rings = nullptr;
};
thread_local CachedRings cached_rings;

// A 128-bit count travels in two slots of 64 bits.
std::int64_t HighHalf(Int128 value) { return static_cast<std::int64_t>(value >> 64); }
std::int64_t LowHalf(Int128 value) { return static_cast<std::int64_t>(value & ~std::uint64_t{0}); }
Flops Joined(std::int64_t high, std::int64_t low) {
  return Flops::FromInteger((Int128{high} << 64) | static_cast<std::uint64_t>(low));
}

// A counter that one side raises and the other reads needs no read-modify-write.
void Raise(std::atomic<std::int64_t>& counter) noexcept {
  counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_release);
}

void Report(std::atomic<std::int64_t>& counter, std::int64_t& reported, std::int64_t now_ns,
            LossRecord::Where where, LossRecord::Reason reason, RecordBatch& batch) {
  const std::int64_t seen = counter.load(std::memory_order_acquire);
  if (seen == reported) return;
  batch.losses.push_back(
      {.time_ns = now_ns, .count = seen - reported, .where = where, .reason = reason});
  reported = seen;
}

}  // namespace

std::shared_ptr<HostSource> HostSource::Create(const Options& options, const Clock* clock,
                                               SignatureTable::Classifier classify,
                                               std::unique_ptr<DeviceSource> device) {
  return std::shared_ptr<HostSource>(
      new HostSource(options, clock, std::move(classify), std::move(device)));
}

HostSource::HostSource(const Options& options, const Clock* clock,
                       SignatureTable::Classifier classify, std::unique_ptr<DeviceSource> device)
    : options_(options),
      clock_(clock),
      id_(next_source_id.fetch_add(1)),
      device_(std::move(device)),
      signatures_(options.signatures, std::move(classify)) {
  table_.version = FLOPLEDGER_HOST_OPS_VERSION;
  table_.size = sizeof(table_);
  table_.context = this;
  table_.intern = &InternEntry;
  table_.write = &WriteEntry;
  table_.aborted = &AbortedEntry;
  // A source that waits for its driver may count later, so the table is made for it.
  if (device_ && device_->state().kind != DeviceSourceState::Kind::kUnavailable) {
    table_.push_op = &PushOpEntry;
    table_.pop_op = &PopOpEntry;
  }
}

HostSource::~HostSource() = default;

HostSource::ThreadRings* HostSource::Rings() noexcept {
  if (cached_rings.source_id == id_) return static_cast<ThreadRings*>(cached_rings.rings);
  return RegisterThreadSlow();
}

HostSource::ThreadRings* HostSource::RegisterThreadSlow() noexcept {
  thread_local ThreadEntry entry;
  try {
    auto rings = std::make_shared<ThreadRings>(options_.op_ring_slots, options_.marker_ring_slots);
    MutexLock lock(mutex_);
    if (threads_.size() >= options_.threads) {
      lost_threads_.fetch_add(1, std::memory_order_relaxed);
      return nullptr;
    }
    threads_.push_back(rings);
    if (entry.rings) entry.rings->retired.store(true, std::memory_order_release);
    entry.rings = std::move(rings);
    cached_rings = {.source_id = id_, .rings = entry.rings.get()};
    return entry.rings.get();
  } catch (...) {
    lost_threads_.fetch_add(1, std::memory_order_relaxed);
    return nullptr;
  }
}

void HostSource::PushMarker(const MarkerSlot& slot) noexcept {
  if (!open_.load(std::memory_order_relaxed)) return;
  ThreadRings* rings = Rings();
  if (rings != nullptr && !rings->markers.TryPush(slot)) Raise(rings->lost_markers);
}

void HostSource::Mark(MarkerRecord::Kind kind, std::int64_t step, Phase phase) noexcept {
  PushMarker({.time_ns = clock_->MonotonicNs(),
              .a = step,
              .kind = MarkerSlot::Kind::kMarker,
              .detail = static_cast<std::uint8_t>(kind),
              .phase = phase});
}

void HostSource::MarkStep(MarkerRecord::Kind kind, std::int64_t step) noexcept {
  if (!open_.load(std::memory_order_relaxed)) return;
  const std::int64_t now_ns = clock_->MonotonicNs();
  PushMarker({.time_ns = now_ns,
              .a = step,
              .kind = MarkerSlot::Kind::kMarker,
              .detail = static_cast<std::uint8_t>(kind)});
  if (device_) device_->Fence(now_ns);
}

void HostSource::DeclareRows(const TokenRecord& rows) noexcept {
  if (rows.count <= 0) return;
  PushMarker({.time_ns = clock_->MonotonicNs(),
              .a = rows.count,
              .b = rows.length,
              .c = rows.useful_length,
              .d = rows.even_split ? 1 : 0,
              .e = rows.unknown_length ? 1 : 0,
              .kind = MarkerSlot::Kind::kTokens});
}

void HostSource::DeclareRows(std::span<const std::int64_t> lengths,
                             std::int64_t row_length) noexcept {
  // Runs of equal lengths are one record: a batch of full rows costs one write.
  for (std::size_t i = 0; i < lengths.size();) {
    std::size_t end = i + 1;
    while (end < lengths.size() && lengths[end] == lengths[i]) ++end;
    DeclareRows({.count = static_cast<std::int64_t>(end - i),
                 .length = row_length > 0 ? row_length : lengths[i],
                 .useful_length = lengths[i]});
    i = end;
  }
}

void HostSource::DeclareWork(Flops forward, Flops backward, std::int64_t tokens) noexcept {
  PushMarker({.time_ns = clock_->MonotonicNs(),
              .a = HighHalf(forward.count()),
              .b = LowHalf(forward.count()),
              .c = HighHalf(backward.count()),
              .d = LowHalf(backward.count()),
              .e = tokens,
              .kind = MarkerSlot::Kind::kDeclared});
}

void HostSource::SetValue(std::uint32_t name_id, double value) noexcept {
  PushMarker({.time_ns = clock_->MonotonicNs(),
              .a = static_cast<std::int64_t>(name_id),
              .value = value,
              .kind = MarkerSlot::Kind::kValue});
}

std::uint32_t HostSource::InternEntry(void* context, const char* name,
                                      const flopledger_op_argument* arguments,
                                      std::uint32_t count) {
  auto* source = static_cast<HostSource*>(context);
  if (!source->open_.load(std::memory_order_relaxed) || name == nullptr) return kOverflowSignature;
  try {
    OpSignature signature{.name = name, .arguments = {}};
    signature.arguments.reserve(count);
    for (std::uint32_t i = 0; i < count; ++i) {
      const flopledger_op_argument& from = arguments[i];
      OpArgument to;
      if (from.kind <= static_cast<std::uint8_t>(OpArgument::Kind::kText)) {
        to.kind = static_cast<OpArgument::Kind>(from.kind);
      }
      if (from.dtype <= static_cast<std::uint8_t>(DType::kOther)) {
        to.dtype = static_cast<DType>(from.dtype);
      }
      if (from.integers != nullptr) {
        to.integers.assign(from.integers, from.integers + from.integer_count);
      }
      to.real = from.real;
      signature.arguments.push_back(std::move(to));
    }
    return source->signatures_.Intern(signature);
  } catch (...) {
    return kOverflowSignature;
  }
}

void HostSource::WriteEntry(void* context, const flopledger_op_record* record) {
  auto* source = static_cast<HostSource*>(context);
  if (!source->open_.load(std::memory_order_relaxed)) return;
  ThreadRings* rings = source->Rings();
  if (rings == nullptr) return;
  const OpRecord op{
      .start_ns = record->start_ns,
      .end_ns = record->end_ns,
      .self_ns = record->self_ns,
      .signature = record->signature,
      .device = 0,
      .phase = record->phase < kPhaseCount ? static_cast<Phase>(record->phase) : Phase::kOther,
      .op_class = source->signatures_.ClassOf(record->signature)};
  if (!rings->ops.TryPush(op)) Raise(rings->lost_ops);
}

void HostSource::AbortedEntry(void* context, std::int64_t) {
  auto* source = static_cast<HostSource*>(context);
  if (!source->open_.load(std::memory_order_relaxed)) return;
  if (ThreadRings* rings = source->Rings()) Raise(rings->aborted);
}

void HostSource::PushOpEntry(void* context, std::uint32_t signature, std::uint8_t phase) {
  auto* source = static_cast<HostSource*>(context);
  if (!source->open_.load(std::memory_order_relaxed)) return;
  source->device_->PushOp(signature,
                          phase < kPhaseCount ? static_cast<Phase>(phase) : Phase::kOther);
}

void HostSource::PopOpEntry(void* context) {
  auto* source = static_cast<HostSource*>(context);
  if (source->open_.load(std::memory_order_relaxed)) source->device_->PopOp();
}

void HostSource::DrainOps(ThreadRings& rings, RecordBatch& batch) {
  OpRecord op;
  while (rings.ops.TryPop(&op)) batch.ops.push_back(op);
  const std::int64_t now = clock_->MonotonicNs();
  Report(rings.lost_ops, rings.reported_ops, now, LossRecord::Where::kHostRing,
         LossRecord::Reason::kFull, batch);
}

void HostSource::DrainMarkers(ThreadRings& rings, RecordBatch& batch) {
  MarkerSlot slot;
  while (rings.markers.TryPop(&slot)) {
    switch (slot.kind) {
      case MarkerSlot::Kind::kMarker:
        batch.markers.push_back({.time_ns = slot.time_ns,
                                 .step = slot.a,
                                 .kind = static_cast<MarkerRecord::Kind>(slot.detail),
                                 .phase = slot.phase});
        break;
      case MarkerSlot::Kind::kTokens:
        batch.tokens.push_back({.time_ns = slot.time_ns,
                                .count = slot.a,
                                .length = slot.b,
                                .useful_length = slot.c,
                                .even_split = slot.d != 0,
                                .unknown_length = slot.e != 0});
        break;
      case MarkerSlot::Kind::kDeclared:
        batch.declared.push_back({.time_ns = slot.time_ns,
                                  .forward = Joined(slot.a, slot.b),
                                  .backward = Joined(slot.c, slot.d),
                                  .tokens = slot.e});
        break;
      case MarkerSlot::Kind::kValue:
        batch.values.push_back({.time_ns = slot.time_ns,
                                .value = slot.value,
                                .name_id = static_cast<std::uint32_t>(slot.a)});
        break;
    }
  }
  const std::int64_t now = clock_->MonotonicNs();
  Report(rings.lost_markers, rings.reported_markers, now, LossRecord::Where::kMarkerRing,
         LossRecord::Reason::kFull, batch);
  std::int64_t& reported = rings.reported_aborted;
  const std::int64_t aborted = rings.aborted.load(std::memory_order_acquire);
  batch.aborted_ops += aborted - reported;
  reported = aborted;
}

void HostSource::Drain(RecordBatch& batch) {
  {
    MutexLock lock(mutex_);
    draining_ = threads_;
  }
  // Retired is read before the rings: what is still in a ring after that was written by nobody.
  std::vector<const ThreadRings*> ended;
  for (const auto& rings : draining_) {
    if (rings->retired.load(std::memory_order_acquire)) ended.push_back(rings.get());
  }
  for (const auto& rings : draining_) DrainOps(*rings, batch);
  for (const auto& rings : draining_) DrainMarkers(*rings, batch);
  draining_.clear();

  const std::int64_t now = clock_->MonotonicNs();
  Report(lost_threads_, reported_lost_threads_, now, LossRecord::Where::kHostRing,
         LossRecord::Reason::kFull, batch);
  const bool stopped = !open_.load(std::memory_order_relaxed);
  if (stopped || !ended.empty()) {
    MutexLock lock(mutex_);
    if (stopped) threads_.clear();
    std::erase_if(threads_, [&](const auto& rings) {
      return std::find(ended.begin(), ended.end(), rings.get()) != ended.end();
    });
  }
}

const flopledger_host_ops* HostSource::host_ops() noexcept {
  // Reachable for ever on purpose: an observer may call through the table after everything else.
  static auto* const handed_out = new std::set<std::shared_ptr<HostSource>>;
  static Mutex handed_out_mutex;
  try {
    MutexLock lock(handed_out_mutex);
    handed_out->insert(shared_from_this());
    return &table_;
  } catch (...) {
    return nullptr;
  }
}

void HostSource::Stop() { open_.store(false, std::memory_order_relaxed); }

}  // namespace flopledger
