#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/signature_table.h"
#include "base/sync.h"
#include "collect/device_source.h"
#include "collect/record_source.h"
#include "flopledger/host_ops.h"
#include "flopledger/records.h"

namespace flopledger {

/// What the training process itself reports: framework ops through the C table, steps, sections,
/// tokens and values through calls. Every thread writes into its own rings; one reader drains them.
///
///     std::shared_ptr<HostSource> source = HostSource::Create({}, &clock, classify);
///     source->Mark(MarkerRecord::Kind::kStepBegin, 1);
///     source->host_ops()->write(context, &record);
///     source->Drain(batch);
///
/// Thread: everything but `Drain` from any thread. A full ring refuses and counts.
/// Ownership: never freed once its C table was handed out, since an observer may hold the table for
/// as long as the process lives; after `Stop` its calls do nothing and the rings are freed.
class HostSource final : public RecordSource, public std::enable_shared_from_this<HostSource> {
 public:
  struct Options {
    std::size_t op_ring_slots = 16384;     ///< per thread that runs ops; 40 bytes each
    std::size_t marker_ring_slots = 4096;  ///< per thread that marks; 64 bytes each
    std::size_t signatures = 32768;
    std::size_t threads = 64;  ///< further threads are counted as lost
  };

  /// `device`, if there is one, is told of step boundaries and of ops. It lives as long as this.
  static std::shared_ptr<HostSource> Create(const Options& options, const Clock* clock,
                                            SignatureTable::Classifier classify,
                                            std::unique_ptr<DeviceSource> device = nullptr);
  ~HostSource() override;
  HostSource(const HostSource&) = delete;
  HostSource& operator=(const HostSource&) = delete;

  void Drain(RecordBatch& batch) override;
  void Stop() override;
  /// In a forked child: take nothing more. Async-signal-safe.
  void BecomeInert() noexcept {
    open_.store(false, std::memory_order_relaxed);
    if (device_) device_->BecomeInert();
  }
  /// Null without one. Whoever drains this drains it before.
  DeviceSource* device() const { return device_.get(); }

  FLOPLEDGER_HOT void Mark(MarkerRecord::Kind kind, std::int64_t step,
                           Phase phase = Phase::kOther) noexcept;
  /// The begin or the end of a step: a mark here, then a fence on the device, in this order, so
  /// that no launch behind the fence can be seen before the mark.
  FLOPLEDGER_HOT void MarkStep(MarkerRecord::Kind kind, std::int64_t step) noexcept;
  /// One micro-batch. `lengths` are the useful tokens of its rows, each row `row_length` long
  /// (0: as long as its useful tokens, a pack).
  void DeclareRows(std::span<const std::int64_t> lengths, std::int64_t row_length) noexcept;
  /// Equal rows; the time is set here.
  void DeclareRows(const TokenRecord& rows) noexcept;
  void DeclareWork(Flops forward, Flops backward, std::int64_t tokens) noexcept;
  void SetValue(std::uint32_t name_id, double value) noexcept;

  /// The door for observers. From the first call on this object is never freed.
  const flopledger_host_ops* host_ops() noexcept;
  const SignatureTable& signatures() const { return signatures_; }

 private:
  struct MarkerSlot;
  struct ThreadRings;
  struct ThreadEntry;

  HostSource(const Options& options, const Clock* clock, SignatureTable::Classifier classify,
             std::unique_ptr<DeviceSource> device);
  static std::uint32_t InternEntry(void* context, const char* name,
                                   const flopledger_op_argument* arguments, std::uint32_t count);
  static void WriteEntry(void* context, const flopledger_op_record* record);
  static void AbortedEntry(void* context, std::int64_t end_ns);
  static void PushOpEntry(void* context, std::uint32_t signature, std::uint8_t phase);
  static void PopOpEntry(void* context);
  FLOPLEDGER_HOT ThreadRings* Rings() noexcept;
  ThreadRings* RegisterThreadSlow() noexcept;
  void PushMarker(const MarkerSlot& slot) noexcept;
  void DrainOps(ThreadRings& rings, RecordBatch& batch);
  void DrainMarkers(ThreadRings& rings, RecordBatch& batch);

  const Options options_;
  const Clock* const clock_;
  const std::uint64_t id_;  // tells a thread's cached rings of an earlier source apart
  const std::unique_ptr<DeviceSource> device_;
  SignatureTable signatures_;
  flopledger_host_ops table_{};
  std::atomic<bool> open_{true};
  std::atomic<std::int64_t> lost_threads_{0};
  std::int64_t reported_lost_threads_ = 0;
  Mutex mutex_;
  std::vector<std::shared_ptr<ThreadRings>> threads_ FLOPLEDGER_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<ThreadRings>> draining_;  // reader's copy, reused
};

}  // namespace flopledger
