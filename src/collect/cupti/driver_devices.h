#pragma once

#include <cstdint>
#include <optional>

#include "collect/device_source.h"

namespace flopledger {

/// The CUDA driver, as far as it is asked here: what a device is, and one call that is as cheap as
/// calls get. It is never initialised here: that would make CUDA unusable in forked children of a
/// process that had not used it yet.
///
///     DriverApi driver(handle);
///     driver.Describe(0);          // once the process has used device 0
///
/// Thread: any. Fails: nothing is known of what the driver does not answer.
class DriverApi {
 public:
  /// `handle`: of libcuda.
  explicit DriverApi(void* handle);

  std::optional<DeviceDescription> Describe(std::uint16_t device) const;

  /// cuDriverGetVersion: needs no context, waits for nothing, and is traced under its callback id.
  bool can_mark() const { return get_version_ != nullptr; }
  void Mark() const noexcept {
    int version = 0;
    get_version_(&version);
  }

 private:
  int (*get_version_)(int*) = nullptr;
  int (*get_device_)(int*, int) = nullptr;
  int (*get_name_)(char*, int, int) = nullptr;
  int (*get_attribute_)(int*, int, int) = nullptr;
  int (*total_memory_)(std::size_t*, int) = nullptr;
  int (*pci_bus_id_)(char*, int, int) = nullptr;
  int (*uuid_)(void*, int) = nullptr;
};

}  // namespace flopledger
