#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collect/device_source.h"
#include "flopledger/report_sink.h"
#include "flopledger/session.h"
#include "session/log.h"

namespace flopledger {

/// What a session has to say about its device source, and when. The source itself belongs to the
/// `HostSource`, whose marks it gets.
///
/// Thread: the one that pumps. Fails: never; a fault of the source is a capability with its reason
/// and one line in the log.
class DeviceInput {
 public:
  /// `source` is null where device records are not wanted.
  explicit DeviceInput(DeviceSource* source) : source_(source) {}

  /// First of all sources: no launch may overtake the mark of the boundary before it.
  void Drain(RecordBatch& batch) {
    if (source_ != nullptr) source_->Drain(batch);
  }
  bool counting() const { return counting_; }
  /// Asks the source how it does. The capability `cupti_activity`, if it has changed.
  std::optional<Capability> TakeChange(Log& log);
  /// The devices, if there are more of them than at the last call.
  std::optional<std::vector<DeviceDescription>> TakeDevices();
  const KernelTable* kernels() const { return source_ == nullptr ? nullptr : &source_->kernels(); }
  /// Collecting costs too much: the source is stopped, and why is the capability's reason.
  void StepDown(double cost_ratio, double budget_ratio);
  /// The end of the session: what was last said stays true of it.
  void Stop() {
    if (source_ != nullptr) source_->Stop();
    stopped_ = true;
  }

 private:
  DeviceSource* const source_;
  bool counting_ = false;
  bool stopped_ = false;
  std::string over_budget_;  // the sentence for the log
  std::string said_;
  std::size_t devices_said_ = 0;
};

/// What sinks are told of a device.
ObservedDevice Observed(const DeviceDescription& device);

/// The source that the options ask for; null if they ask for none.
std::unique_ptr<DeviceSource> MakeDeviceSource(const SessionOptions& options);

}  // namespace flopledger
