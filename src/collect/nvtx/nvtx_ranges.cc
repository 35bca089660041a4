#include "collect/nvtx/nvtx_ranges.h"

#include <atomic>
#include <exception>
#include <utility>
#include <vector>

// One step is open at a time, and whoever opened it ends it: a thread, or a start/end range. A step
// range inside of it (the same name used for micro-batches, a pattern that takes too much) is not
// taken.

namespace flopledger {

thread_local constinit NvtxThread nvtx_thread{};

namespace {

constexpr std::size_t kProcessPhases = 16;

/// One listener and what it has open. Never freed, since a callback may be under way.
struct Active {
  std::shared_ptr<NvtxListener> listener;
  NvtxRuleBook rules;
  std::atomic<std::uint64_t> step_owner{0};
  std::array<std::atomic<std::uint64_t>, kProcessPhases> phases{};
};

std::atomic<Active*> active{nullptr};
std::atomic<std::int64_t> inner_steps{0};
std::atomic<std::int64_t> untaken{0};
std::atomic<std::uint64_t> next_range{1};

// Number of a start/end range: bit 63, a serial number, and what its end has to know.
constexpr std::uint64_t kSerialShift = 16;
constexpr std::uint64_t kPhaseShift = 8;
constexpr std::uint64_t kSlotShift = 2;

std::uint64_t NewRange(NvtxMeaning::Kind kind, Phase phase, std::size_t slot) noexcept {
  const std::uint64_t serial = next_range.fetch_add(1, std::memory_order_relaxed);
  return kForeignNvtxRange | serial << kSerialShift |
         static_cast<std::uint64_t>(phase) << kPhaseShift | slot << kSlotShift |
         static_cast<std::uint64_t>(kind);
}

std::uint64_t ThisThread() noexcept { return reinterpret_cast<std::uintptr_t>(&nvtx_thread); }

std::optional<std::int64_t> StepNumber(NvtxMeaning meaning, NvtxPayload payload) noexcept {
  if (payload && *payload >= 0) return payload;
  if (meaning.number >= 0) return meaning.number;
  return std::nullopt;
}

bool TakeStep(Active& to, std::uint64_t owner, std::optional<std::int64_t> number) noexcept {
  std::uint64_t nobody = 0;
  if (!to.step_owner.compare_exchange_strong(nobody, owner, std::memory_order_acq_rel)) {
    inner_steps.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  if (to.listener->BeginStep(number)) return true;
  to.step_owner.store(0, std::memory_order_release);
  return false;
}

void EndStep(Active& of, std::uint64_t owner, bool failed) noexcept {
  if (of.step_owner.load(std::memory_order_acquire) != owner) return;
  of.listener->EndStep(failed);
  of.step_owner.store(0, std::memory_order_release);
}

void End(const NvtxOpenRange& range, bool failed) noexcept {
  if (range.kind == NvtxMeaning::Kind::kStep) {
    EndStep(*static_cast<Active*>(range.taken_by), ThisThread(), failed);
  } else {
    static_cast<Active*>(range.taken_by)->listener->EndPhase(range.phase);
  }
}

/// A thread that ends inside of a range leaves nothing open behind it.
struct ThreadEnd {
  bool armed = false;
  ~ThreadEnd() {
    NvtxThread& thread = nvtx_thread;
    while (thread.open_count != 0) End(thread.open[--thread.open_count], /*failed=*/true);
  }
};
thread_local ThreadEnd thread_end;

}  // namespace

void BeginNvtxRange(const NvtxDomain& domain, std::int32_t level, NvtxMeaning meaning,
                    NvtxPayload payload) noexcept {
  Active* const to = active.load(std::memory_order_acquire);
  if (to == nullptr) return;
  NvtxThread& thread = nvtx_thread;
  if (thread.open_count == NvtxThread::kMostOpen) {
    untaken.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  if (meaning.kind == NvtxMeaning::Kind::kStep) {
    if (!TakeStep(*to, ThisThread(), StepNumber(meaning, payload))) return;
  } else if (meaning.kind == NvtxMeaning::Kind::kPhase) {
    if (!to->listener->BeginPhase(meaning.phase, /*of_process=*/false)) return;
  } else {
    return;
  }
  thread_end.armed = true;
  thread.open[thread.open_count++] = {.taken_by = to,
                                      .level = level,
                                      .exceptions = std::uncaught_exceptions(),
                                      .domain = static_cast<std::uint16_t>(domain.index),
                                      .kind = meaning.kind,
                                      .phase = meaning.phase};
}

void EndNvtxRange(const NvtxDomain& domain, std::int32_t level) noexcept {
  NvtxThread& thread = nvtx_thread;
  // Each domain nests for itself, so that the range need not be the last one that began.
  for (std::uint32_t i = thread.open_count; i-- > 0;) {
    const NvtxOpenRange range = thread.open[i];
    if (range.domain != domain.index || range.level != level) continue;
    for (--thread.open_count; i < thread.open_count; ++i) thread.open[i] = thread.open[i + 1];
    End(range, /*failed=*/std::uncaught_exceptions() > range.exceptions);
    return;
  }
}

std::uint64_t StartNvtxRange(NvtxMeaning meaning, NvtxPayload payload) noexcept {
  Active* const to = active.load(std::memory_order_acquire);
  if (to == nullptr) return kForeignNvtxRange;
  if (meaning.kind == NvtxMeaning::Kind::kStep) {
    const std::uint64_t range = NewRange(meaning.kind, Phase::kOther, 0);
    return TakeStep(*to, range, StepNumber(meaning, payload)) ? range : kForeignNvtxRange;
  }
  if (meaning.kind != NvtxMeaning::Kind::kPhase) return kForeignNvtxRange;
  for (std::size_t slot = 0; slot < kProcessPhases; ++slot) {
    if (to->phases[slot].load(std::memory_order_relaxed) != 0) continue;
    const std::uint64_t range = NewRange(meaning.kind, meaning.phase, slot);
    std::uint64_t nobody = 0;
    if (!to->phases[slot].compare_exchange_strong(nobody, range, std::memory_order_acq_rel)) {
      continue;
    }
    if (to->listener->BeginPhase(meaning.phase, /*of_process=*/true)) return range;
    to->phases[slot].store(0, std::memory_order_release);
    return kForeignNvtxRange;
  }
  untaken.fetch_add(1, std::memory_order_relaxed);
  return kForeignNvtxRange;
}

void FinishNvtxRange(std::uint64_t range) noexcept {
  Active* const of = active.load(std::memory_order_acquire);
  if (of == nullptr) return;
  const auto kind = static_cast<NvtxMeaning::Kind>(range & 3);
  if (kind == NvtxMeaning::Kind::kStep) {
    EndStep(*of, range, /*failed=*/false);
  } else if (kind == NvtxMeaning::Kind::kPhase) {
    std::uint64_t expected = range;
    const std::size_t slot = range >> kSlotShift & (kProcessPhases - 1);
    if (!of->phases[slot].compare_exchange_strong(expected, 0, std::memory_order_acq_rel)) return;
    of->listener->EndPhase(static_cast<Phase>(range >> kPhaseShift & 15));
  }
}

void TakeNvtxMark(NvtxMeaning meaning, NvtxPayload payload) noexcept {
  if (meaning.kind != NvtxMeaning::Kind::kTokens) return;
  Active* const to = active.load(std::memory_order_acquire);
  if (to != nullptr) to->listener->Tokens(payload.value_or(-1));
}

std::unique_ptr<NvtxListening> NvtxListening::Create(std::shared_ptr<NvtxListener> listener,
                                                     NvtxRuleBook rules) {
  static auto* const all = new std::vector<std::unique_ptr<Active>>;
  static Mutex all_mutex;
  MutexLock lock(all_mutex);
  if (active.load(std::memory_order_relaxed) != nullptr) return nullptr;
  auto next = std::make_unique<Active>();
  next->listener = std::move(listener);
  next->rules = std::move(rules);
  std::unique_ptr<NvtxListening> listening(new NvtxListening(next.get()));
  all->push_back(std::move(next));
  active.store(all->back().get(), std::memory_order_release);
  NvtxNames::Global().Apply(&all->back()->rules);
  return listening;
}

NvtxListening::~NvtxListening() {
  if (active.load(std::memory_order_relaxed) != place_) return;
  NvtxNames::Global().Apply(nullptr);
  active.store(nullptr, std::memory_order_release);
}

void NvtxListening::BecomeInert() noexcept {
  if (active.load(std::memory_order_relaxed) == place_) {
    active.store(nullptr, std::memory_order_relaxed);
  }
}

NvtxState CurrentNvtxState() noexcept {
  return {.built = true,
          .clients = AttachedNvtxClients(),
          .inner_steps = inner_steps.load(std::memory_order_relaxed),
          .untaken = untaken.load(std::memory_order_relaxed)};
}

}  // namespace flopledger
