// What CuptiCollector does on the draining thread: decode, count losses, look whether it is alive.

#include <algorithm>
#include <string>

#include "collect/cupti/cupti_collector.h"
#include "collect/cupti/cupti_status.h"

namespace flopledger {
namespace {

using Kind = DeviceSourceState::Kind;

// Every fence is a traced call and makes a record, launches or not. None of this many, none of
// anything else, and that for this long: the library no longer works for us.
constexpr std::int64_t kSilentFences = 8;
constexpr std::int64_t kSilenceNs = 10'000'000'000;
constexpr std::int64_t kFailedFlushes = 8;

// One kernel in a hundred that ends before it starts: the library's stamps have gone bad (seen
// after some 25 million records of graph-launched kernels).
constexpr std::int64_t kTimesWindow = 10'000;
constexpr std::int64_t kBackwardPerWindow = 100;

void Lose(std::int64_t now_ns, std::int64_t count, LossRecord::Reason reason, RecordBatch& batch) {
  if (count == 0) return;
  batch.losses.push_back(
      {.time_ns = now_ns, .count = count, .where = LossRecord::Where::kDevice, .reason = reason});
}

}  // namespace

void CuptiCollector::Drain(RecordBatch& batch) {
  if (inert_.load(std::memory_order_relaxed)) return;
  if (state_.kind == Kind::kWaiting && !stopped_) TryAgainIfDue();
  if (flusher_ == nullptr) return;
  if (state_.kind == Kind::kCounting && !flusher_->has_thread()) flusher_->FlushOnce();
  const std::int64_t now_ns = clock_->MonotonicNs();
  DecodeBuffers(now_ns, batch);
  ReportLosses(now_ns, batch);
  DescribeDevices();
  if (state_.kind == Kind::kCounting) CheckHealth(now_ns);
}

void CuptiCollector::TryAgainIfDue() {
  const std::int64_t now_ns = clock_->MonotonicNs();
  if (now_ns < retry_at_ns_) return;
  // After it counted once, coming back is the one new registration that it gets.
  if (registrations_ > 0) {
    Recover();
  } else {
    TryAgain(now_ns);
  }
}

void CuptiCollector::DecodeBuffers(std::int64_t now_ns, RecordBatch& batch) {
  if (state_.kind == Kind::kCounting) {
    if (const auto jump = device_clock_.Sample(api_, *clock_)) {
      batch.clock_steps.push_back({.time_ns = now_ns, .jump_ns = *jump});
    }
  }
  decoder_.BeginDrain(now_ns);
  ActivityBufferPool::Completed completed;
  while (pool_->Pop(&completed)) {
    if (completed.valid != 0) {
      decoder_.SetNow(clock_->MonotonicNs());  // buffers come in while others are read
      decoder_.Decode(api_, device_clock_, completed.buffer, completed.valid, batch);
    }
    pool_->Recycle(completed);
  }
  decoder_.EndDrain(batch);
}

void CuptiCollector::ReportLosses(std::int64_t now_ns, RecordBatch& batch) {
  const ActivityFlusher::Losses losses = flusher_->TakeLosses();
  dropped_total_ += losses.dropped;
  Lose(now_ns, losses.dropped + losses.given_up, LossRecord::Reason::kFull, batch);
  const std::int64_t discarded = target_->discarded();
  Lose(now_ns, losses.uncounted + discarded - reported_discarded_,
       LossRecord::Reason::kUnknownCount, batch);
  reported_discarded_ = discarded;
  if (stopped_ && !unreturned_said_) {
    unreturned_said_ = true;
    // Buffers that have not come back by now, with a kernel that still runs.
    Lose(now_ns, pool_->outstanding(), LossRecord::Reason::kUnknownCount, batch);
  }
}

void CuptiCollector::DescribeDevices() {
  const std::uint64_t seen = decoder_.devices_seen();
  for (std::uint16_t device = 0; seen != devices_described_ && device < 64; ++device) {
    const std::uint64_t bit = std::uint64_t{1} << device;
    if ((seen & bit) == 0 || (devices_described_ & bit) != 0) continue;
    devices_described_ |= bit;
    if (auto found = driver_->Describe(device)) devices_.push_back(std::move(*found));
  }
}

void CuptiCollector::CheckHealth(std::int64_t now_ns) {
  const std::int64_t fences = fences_set_.load(std::memory_order_relaxed);
  const std::int64_t records = decoder_.counts().records;
  if (records != records_before_) {
    records_before_ = records;
    fences_at_last_record_ = fences;
    last_record_at_ns_ = now_ns;
    flushes_at_last_record_ = flusher_->flushes();
  }
  // Before the process has used CUDA nothing is traced: that is no silence.
  const bool silent = decoder_.counts().fences > 0 &&
                      fences - fences_at_last_record_ >= kSilentFences &&
                      now_ns - last_record_at_ns_ >= kSilenceNs &&
                      flusher_->flushes() - flushes_at_last_record_ >= 2;
  if (silent || flusher_->failures_in_a_row() >= kFailedFlushes) {
    Recover();
  } else {
    CheckTimes();
  }
}

void CuptiCollector::CheckTimes() {
  const std::int64_t kernels = decoder_.counts().kernels - kernels_checked_;
  if (kernels < kTimesWindow) return;
  const std::int64_t backward = decoder_.counts().backward_kernels - backward_checked_;
  kernels_checked_ += kernels;
  backward_checked_ += backward;
  if (backward * kTimesWindow < kernels * kBackwardPerWindow) return;
  if (times_mended_) {
    DisableKinds();
    Become(MakeState(Kind::kDisabled, "bad_timestamps",
                     std::to_string(backward) + " of " + std::to_string(kernels) +
                         " kernels end before they start; restart the process to count again"));
    return;
  }
  times_mended_ = true;
  api_.Disable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  if (const CUptiResult code = api_.Enable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
      code != CUPTI_SUCCESS) {
    Become(StateOf(code, "cuptiActivityEnable"));
    state_.kind = Kind::kDisabled;
  }
}

// Another tool has ended the library's session or put its callbacks in place of ours. Never stolen
// back from one that is at work; once it is gone, taken up again, once.
void CuptiCollector::Recover() {
  const std::int64_t now_ns = clock_->MonotonicNs();
  retry_after_ns_ = kSilenceNs;
  retry_at_ns_ = now_ns + retry_after_ns_;
  if (registrations_ > 1) {
    Become(MakeState(Kind::kDisabled, "taken_over",
                     "no records for a second time: another CUPTI client (a profiler) ended the "
                     "library's session; restart the process to count again"));
    return;
  }
  if (const CUptiResult code = api_.ProbeSubscription(); code != CUPTI_SUCCESS) {
    Become(StateOf(code, "cuptiSubscribe"));
    return;
  }
  CUptiResult code = CallbackTarget::Register(api_);
  if (code != CUPTI_SUCCESS) {
    Become(StateOf(code, "cuptiActivityRegisterCallbacks"));
  } else if (EnableKinds()) {
    StartCounting();
    return;
  }
  if (state_.kind == Kind::kUnavailable) state_.kind = Kind::kDisabled;
}

}  // namespace flopledger
