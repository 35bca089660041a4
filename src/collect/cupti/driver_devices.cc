#include "collect/cupti/driver_devices.h"

#include <cuda.h>
#include <dlfcn.h>

#include <array>
#include <string>

namespace flopledger {
namespace {

template <typename Function>
void Take(void* handle, Function*& function, const char* name) {
  function = reinterpret_cast<Function*>(dlsym(handle, name));
}

// As nvidia-smi writes it: GPU-00112233-4455-6677-8899-aabbccddeeff.
std::string UuidText(const std::array<unsigned char, 16>& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "GPU-";
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

}  // namespace

DriverApi::DriverApi(void* handle) {
  Take(handle, get_version_, "cuDriverGetVersion");
  Take(handle, get_device_, "cuDeviceGet");
  Take(handle, get_name_, "cuDeviceGetName");
  Take(handle, get_attribute_, "cuDeviceGetAttribute");
  Take(handle, total_memory_, "cuDeviceTotalMem_v2");
  Take(handle, pci_bus_id_, "cuDeviceGetPCIBusId");
  Take(handle, uuid_, "cuDeviceGetUuid_v2");
  if (uuid_ == nullptr) Take(handle, uuid_, "cuDeviceGetUuid");
}

std::optional<DeviceDescription> DriverApi::Describe(std::uint16_t device) const {
  int id = 0;
  if (get_device_ == nullptr || get_device_(&id, device) != CUDA_SUCCESS) return std::nullopt;
  DeviceDescription found{.device = device};
  std::array<char, 256> text{};
  if (get_name_ != nullptr && get_name_(text.data(), text.size(), id) == CUDA_SUCCESS) {
    found.name = text.data();
  }
  text.fill('\0');
  if (pci_bus_id_ != nullptr && pci_bus_id_(text.data(), text.size(), id) == CUDA_SUCCESS) {
    found.pci_bus_id = text.data();
  }
  std::array<unsigned char, 16> uuid{};
  if (uuid_ != nullptr && uuid_(uuid.data(), id) == CUDA_SUCCESS) found.uuid = UuidText(uuid);
  std::size_t bytes = 0;
  if (total_memory_ != nullptr && total_memory_(&bytes, id) == CUDA_SUCCESS) {
    found.memory_bytes = static_cast<std::int64_t>(bytes);
  }
  auto attribute = [&](CUdevice_attribute which) {
    int value = 0;
    const bool known =
        get_attribute_ != nullptr && get_attribute_(&value, which, id) == CUDA_SUCCESS;
    return known ? value : 0;
  };
  found.multiprocessors = attribute(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  found.compute_capability_major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  found.compute_capability_minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  return found;
}

}  // namespace flopledger
