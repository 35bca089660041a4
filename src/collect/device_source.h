#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/kernel_table.h"
#include "base/sync.h"
#include "collect/record_source.h"
#include "flopledger/records.h"

namespace flopledger {

/// What a device said about itself, for the peak table. Empty and zero where it did not say.
struct DeviceDescription {
  std::uint16_t device = 0;  ///< `KernelRecord::device`
  std::string name;
  std::string pci_bus_id;
  std::string uuid;
  int compute_capability_major = 0;
  int compute_capability_minor = 0;
  int multiprocessors = 0;
  std::int64_t memory_bytes = 0;
};

/// How a device source is doing. It changes only towards `kDisabled`, except that a source which
/// waits for a driver or for another tool to leave may come to count later.
struct DeviceSourceState {
  enum class Kind : std::uint8_t { kUnavailable, kWaiting, kCounting, kDisabled };
  Kind kind = Kind::kUnavailable;
  std::string reason;  ///< closed set, a label value: `not_built`, `no_driver`, `ok`, ...
  std::string text;    ///< one sentence for the log, with what to do about it
};

/// An origin of kernel records in a live process. Besides draining it takes two marks of the
/// training thread: the fence at a step boundary, and the op that launches what comes next.
///
///     source->Fence(boundary_ns);                  at a step boundary
///     source->PushOp(signature, phase); ...launches...; source->PopOp();
///
/// Thread: `Fence`, `PushOp`, `PopOp` from any thread, no lock, no heap; the rest from the one that
/// drains. Fails: never; a fault ends in a stated state.
class DeviceSource : public RecordSource {
 public:
  FLOPLEDGER_HOT virtual void Fence(std::int64_t boundary_ns) noexcept = 0;
  FLOPLEDGER_HOT virtual void PushOp(SignatureId op, Phase phase) noexcept = 0;
  FLOPLEDGER_HOT virtual void PopOp() noexcept = 0;
  /// In a forked child: take nothing more, call nothing of the vendor. Async-signal-safe.
  virtual void BecomeInert() noexcept = 0;

  virtual DeviceSourceState state() const = 0;
  virtual const KernelTable& kernels() const = 0;
  virtual std::vector<DeviceDescription> devices() const = 0;
};

}  // namespace flopledger
