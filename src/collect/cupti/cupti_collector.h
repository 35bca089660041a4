#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "collect/cupti/activity_callbacks.h"
#include "collect/cupti/activity_decoder.h"
#include "collect/cupti/activity_flusher.h"
#include "collect/cupti/buffer_pool.h"
#include "collect/cupti/cupti_api.h"
#include "collect/cupti/cupti_source.h"
#include "collect/cupti/device_clock.h"
#include "collect/cupti/driver_devices.h"

namespace flopledger {

/// The source behind CuptiSource: finds driver and library, becomes their client, keeps a state.
///
///     waiting --driver or library free--> counting --stop--> disabled
///     counting --no records for long--> counting (registered again, once) --again--> disabled
///
/// Every call into the library is checked, and a refusal ends in a state with a reason and one
/// sentence. Nothing of the library is called before the driver is in the process: without one,
/// some versions crash in their first function.
///
/// Thread: `Fence`, `PushOp`, `PopOp`, `BecomeInert` any; the rest one. Ownership: must outlive
/// what the library still holds; see `Release`.
class CuptiCollector {
 public:
  CuptiCollector(const CuptiOptions& options, const Clock* clock, KernelTable::Classifier classify);
  CuptiCollector(const CuptiCollector&) = delete;
  CuptiCollector& operator=(const CuptiCollector&) = delete;

  void Start();
  void Drain(RecordBatch& batch);
  void Stop();

  FLOPLEDGER_HOT void Fence(std::int64_t boundary_ns) noexcept;
  FLOPLEDGER_HOT void PushOp(SignatureId op, Phase phase) noexcept;
  FLOPLEDGER_HOT void PopOp() noexcept;
  void BecomeInert() noexcept;

  const DeviceSourceState& state() const { return state_; }
  const KernelTable& kernels() const { return decoder_.kernels(); }
  const std::vector<DeviceDescription>& devices() const { return devices_; }
  CuptiCounts counts() const;
  /// Lets go of the callbacks, which may come after `Stop` as well. False: the library holds
  /// buffers, or a thread or callback is still inside, or this is a fork; then this must not be
  /// destroyed.
  bool Release();

 private:
  void Become(DeviceSourceState state);
  bool LoadLibrary();
  bool MakeBuffers();
  void Attach();
  bool EnableKinds();
  void EnableFences();
  void EnableLaunchRecords();
  void DisableKinds() noexcept;
  void TryAgain(std::int64_t now_ns);
  void StartCounting();
  void TryAgainIfDue();

  void DecodeBuffers(std::int64_t now_ns, RecordBatch& batch);
  void ReportLosses(std::int64_t now_ns, RecordBatch& batch);
  void CheckHealth(std::int64_t now_ns);
  void CheckTimes();
  void Recover();
  void DescribeDevices();

  const CuptiOptions options_;
  const Clock* const clock_;
  DeviceSourceState state_;
  ActivityDecoder decoder_;
  DeviceClock device_clock_;
  std::vector<DeviceDescription> devices_;
  std::uint64_t devices_described_ = 0;

  void* driver_handle_ = nullptr;
  std::unique_ptr<DriverApi> driver_;
  CuptiApi api_;
  bool loaded_ = false;
  std::unique_ptr<ActivityBufferPool> pool_;
  std::unique_ptr<CallbackTarget> target_;
  std::unique_ptr<ActivityFlusher> flusher_;
  bool connected_ = false;
  bool stopped_ = false;
  bool releasable_ = true;
  bool unreturned_said_ = false;

  // What the training thread looks at.
  std::atomic<bool> fencing_{false};
  std::atomic<bool> linking_{false};
  std::atomic<bool> inert_{false};
  std::atomic<std::int64_t> fences_set_{0};

  // Waiting: when to try again, and how long to wait after that.
  std::int64_t retry_at_ns_ = 0;
  std::int64_t retry_after_ns_ = 0;

  // Health, looked at after every drain.
  std::int64_t fences_at_last_record_ = 0;
  std::int64_t last_record_at_ns_ = 0;
  std::int64_t flushes_at_last_record_ = 0;
  std::int64_t records_before_ = 0;
  std::int64_t kernels_checked_ = 0;
  std::int64_t backward_checked_ = 0;
  bool times_mended_ = false;
  std::int64_t registrations_ = 0;
  std::int64_t reported_discarded_ = 0;
  std::int64_t dropped_total_ = 0;
};

}  // namespace flopledger
