#include "collect/cupti/cupti_collector.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <utility>

#include "collect/cupti/cupti_library.h"
#include "collect/cupti/cupti_status.h"
#include "collect/cupti/external_id.h"

namespace flopledger {
namespace {

using Kind = DeviceSourceState::Kind;

constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr std::int64_t kLongestRetryNs = 64 * kSecondNs;
constexpr std::int64_t kStopLimitMs = 2000;

// CUpti_ActivityAttribute; the second is newer than some headers.
constexpr int kZeroedOutBuffers = CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER;
constexpr int kPerThreadBuffers = 9;
constexpr std::uint32_t kPerThreadBuffersVersion = 21;  // CUDA 12.3
#if CUPTI_API_VERSION >= 130000
static_assert(CUPTI_ACTIVITY_ATTR_PER_THREAD_ACTIVITY_BUFFER == kPerThreadBuffers);
#endif

// Everything but the kernels is optional.
constexpr std::array<CUpti_ActivityKind, 6> kKinds = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL,
                                                      CUPTI_ACTIVITY_KIND_MEMCPY,
                                                      CUPTI_ACTIVITY_KIND_MEMSET,
                                                      CUPTI_ACTIVITY_KIND_MEMCPY2,
                                                      CUPTI_ACTIVITY_KIND_OVERHEAD,
                                                      CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION};

// The calls that launch, in the driver and in the runtime; per-thread default stream last.
constexpr std::array<CUpti_CallbackId, 8> kDriverLaunches = {307, 442, 477, 478,
                                                             514, 515, 652, 653};
constexpr std::array<CUpti_CallbackId, 10> kRuntimeLaunches = {211, 214, 269, 270, 311,
                                                               312, 430, 431, 505, 506};
static_assert(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel == 307 &&
              CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch == 514 &&
              CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000 == 211 &&
              CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000 == 311);

// Which of the last 64 pushes of a thread were made: a pop must fit its push although counting
// began or ended between them.
struct OpStack {
  std::uint64_t pushed = 0;
  std::uint32_t depth = 0;
};
thread_local OpStack op_stack;

}  // namespace

CuptiCollector::CuptiCollector(const CuptiOptions& options, const Clock* clock,
                               KernelTable::Classifier classify)
    : options_(options),
      clock_(clock),
      decoder_(options.kernel_signatures, std::move(classify), options.link_ops) {}

void CuptiCollector::Become(DeviceSourceState state) {
  state_ = std::move(state);
  if (flusher_ != nullptr) flusher_->SetActive(state_.kind == Kind::kCounting);
  if (state_.kind == Kind::kCounting) return;
  fencing_.store(false, std::memory_order_release);
  linking_.store(false, std::memory_order_release);
}

// ---- becoming a client

void CuptiCollector::Start() {
  driver_handle_ = dlopen(options_.driver_library.c_str(), RTLD_LAZY | RTLD_LOCAL);
  retry_after_ns_ = kSecondNs;
  TryAgain(clock_->MonotonicNs());
}

void CuptiCollector::TryAgain(std::int64_t now_ns) {
  retry_at_ns_ = now_ns + retry_after_ns_;
  if (driver_handle_ == nullptr) {
    // Loaded by somebody who knows where it is? Then our name finds it.
    driver_handle_ = dlopen(options_.driver_library.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  }
  if (driver_handle_ == nullptr) {
    Become(MakeState(Kind::kWaiting, "no_driver",
                     options_.driver_library +
                         " cannot be opened: no NVIDIA driver; counted as soon as one is loaded"));
    return;
  }
  retry_after_ns_ = std::min(2 * retry_after_ns_, kLongestRetryNs);
  if ((loaded_ || LoadLibrary()) && MakeBuffers()) Attach();
}

bool CuptiCollector::LoadLibrary() {
  driver_ = std::make_unique<DriverApi>(driver_handle_);
  CuptiLibrary library = OpenCuptiLibrary(options_, driver_handle_);
  DeviceSourceState refusal = std::move(library.refusal);
  loaded_ = library.handle != nullptr && api_.Load(library.handle, &refusal);
  if (!loaded_) Become(std::move(refusal));
  return loaded_;
}

bool CuptiCollector::MakeBuffers() {
  if (pool_ != nullptr) return true;
  const bool null_allowed = api_.version() >= CuptiApi::kNullBufferVersion;
  const std::size_t most = options_.cap_bytes / options_.buffer_bytes;
  pool_ = ActivityBufferPool::Create(options_.buffer_bytes, options_.buffers,
                                     null_allowed ? 0 : most - options_.buffers);
  if (pool_ == nullptr) {
    Become(MakeState(Kind::kUnavailable, "out_of_memory",
                     "no address space for the activity buffers; lower cap_bytes"));
    return false;
  }
  target_ = std::make_unique<CallbackTarget>(pool_.get(), null_allowed);
  flusher_ = std::make_unique<ActivityFlusher>(&api_, pool_.get(), !null_allowed);
  decoder_.set_api_version(api_.version());
  return true;
}

void CuptiCollector::Attach() {
  if (const CUptiResult code = api_.Attach(); code != CUPTI_SUCCESS) {
    return Become(StateOf(code, "cuptiSubscribe"));
  }
  if (!target_->Connect()) {
    return Become(MakeState(Kind::kUnavailable, "already_running",
                            "another source of this process holds the library; stop it first"));
  }
  connected_ = true;
  // Buffers of each thread would come back only when that thread's is full.
  api_.SetFlag(kZeroedOutBuffers, true);
  if (api_.version() >= kPerThreadBuffersVersion) api_.SetFlag(kPerThreadBuffers, false);
  if (const CUptiResult code = CallbackTarget::Register(api_); code != CUPTI_SUCCESS) {
    return Become(StateOf(code, "cuptiActivityRegisterCallbacks"));
  }
  if (EnableKinds()) StartCounting();
}

bool CuptiCollector::EnableKinds() {
  CUptiResult code = CUPTI_SUCCESS;
  bool external = false;
  for (const CUpti_ActivityKind kind : kKinds) {
    code = api_.Enable(kind);
    if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && code != CUPTI_SUCCESS) {
      Become(StateOf(code, "cuptiActivityEnable"));
      return false;
    }
    if (kind == CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION) external = code == CUPTI_SUCCESS;
  }
  ++registrations_;
  Become(MakeState(Kind::kCounting, "ok", "counting kernels"));
  if (external && api_.has_external_ids()) {
    EnableFences();
    if (options_.link_ops) EnableLaunchRecords();
  }
  if (!fencing_.load(std::memory_order_relaxed)) {
    state_ = MakeState(Kind::kCounting, "no_fence",
                       "counting kernels; the library is older than CUDA 12.5 and marks no step "
                       "boundaries, so kernels are put into steps by their time");
  }
  return true;
}

void CuptiCollector::EnableFences() {
  if (!driver_->can_mark()) return;
  if (api_.EnableDriverApi(CUPTI_DRIVER_TRACE_CBID_cuDriverGetVersion) != CUPTI_SUCCESS) return;
  fencing_.store(true, std::memory_order_release);
}

void CuptiCollector::EnableLaunchRecords() {
  bool any = false;
  for (const CUpti_CallbackId id : kDriverLaunches) {
    any |= api_.EnableDriverApi(id) == CUPTI_SUCCESS;
  }
  for (const CUpti_CallbackId id : kRuntimeLaunches) {
    any |= api_.EnableRuntimeApi(id) == CUPTI_SUCCESS;
  }
  linking_.store(any, std::memory_order_release);
}

void CuptiCollector::StartCounting() {
  const std::int64_t now_ns = clock_->MonotonicNs();
  decoder_.set_started_at(now_ns);
  last_record_at_ns_ = now_ns;
  fences_at_last_record_ = fences_set_.load(std::memory_order_relaxed);
  flushes_at_last_record_ = flusher_->flushes();
  device_clock_.Sample(api_, *clock_);
  if (options_.flush_interval_ms > 0 && !flusher_->has_thread()) {
    flusher_->StartThread(options_.flush_interval_ms);
  }
}

// ---- the training thread

void CuptiCollector::Fence(std::int64_t boundary_ns) noexcept {
  if (!fencing_.load(std::memory_order_acquire)) return;
  if (api_.Push(ExternalId::OfFence(boundary_ns)) != CUPTI_SUCCESS) return;
  driver_->Mark();
  api_.Pop();
  fences_set_.fetch_add(1, std::memory_order_relaxed);
  flusher_->NoteBoundary();
}

void CuptiCollector::PushOp(SignatureId op, Phase phase) noexcept {
  OpStack& stack = op_stack;
  ++stack.depth;
  if (stack.depth > 64) return;
  const bool pushed = linking_.load(std::memory_order_acquire) &&
                      api_.Push(ExternalId::OfOp(op, phase)) == CUPTI_SUCCESS;
  stack.pushed = (stack.pushed << 1) | (pushed ? 1 : 0);
}

void CuptiCollector::PopOp() noexcept {
  OpStack& stack = op_stack;
  if (stack.depth == 0) return;
  if (stack.depth-- > 64) return;
  const bool pushed = (stack.pushed & 1) != 0;
  stack.pushed >>= 1;
  if (pushed && !inert_.load(std::memory_order_relaxed)) api_.Pop();
}

void CuptiCollector::BecomeInert() noexcept {
  inert_.store(true, std::memory_order_relaxed);
  fencing_.store(false, std::memory_order_relaxed);
  linking_.store(false, std::memory_order_relaxed);
  CallbackTarget::BecomeInert();
}

// ---- the end

void CuptiCollector::DisableKinds() noexcept {
  for (const CUpti_ActivityKind kind : kKinds) api_.Disable(kind);
}

void CuptiCollector::Stop() {
  if (stopped_) return;
  stopped_ = true;
  if (inert_.load(std::memory_order_relaxed)) {
    releasable_ = false;  // the threads that hold parts of it are the parent's
    Become(MakeState(Kind::kDisabled, "forked", "a forked child collects nothing"));
    return;
  }
  const bool counting = state_.kind == Kind::kCounting;
  fencing_.store(false, std::memory_order_release);
  linking_.store(false, std::memory_order_release);
  if (flusher_ != nullptr && flusher_->has_thread()) {
    // The last calls may wait inside the library: not on this thread, and not for ever.
    auto last = [this, counting] {
      if (counting) DisableKinds();
    };
    if (!flusher_->StopThread(last, kStopLimitMs)) releasable_ = false;
  } else if (counting) {
    DisableKinds();
    flusher_->FlushOnce();
  }
  Become(MakeState(Kind::kDisabled, "stopped", "collecting has ended"));
}

bool CuptiCollector::Release() {
  Stop();
  if (inert_.load(std::memory_order_relaxed)) return false;
  // From here on the library finds nobody. What it keeps is never freed.
  if (connected_ && (!target_->Disconnect() || pool_->outstanding() != 0)) releasable_ = false;
  connected_ = false;
  return releasable_;
}

CuptiCounts CuptiCollector::counts() const {
  CuptiCounts counts{.records = decoder_.counts().records,
                     .skipped_records = decoder_.counts().skipped,
                     .graph_kernels = decoder_.counts().graph_kernels,
                     .dropped_records = dropped_total_,
                     .fences_set = fences_set_.load(std::memory_order_relaxed),
                     .fences_seen = decoder_.counts().fences,
                     .registrations = registrations_};
  if (pool_ != nullptr) {
    counts.buffers_outstanding = pool_->outstanding();
    counts.buffers_refused = target_->refused();
    counts.buffer_bytes = pool_->bytes_in_use();
  }
  return counts;
}

}  // namespace flopledger
