// A libcuda.so.1 with what a collector asks the driver: attributes of devices, and one cheap call
// that the double of libcupti traces.

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstring>

#define FAKECUDA_EXPORT __attribute__((visibility("default")))

namespace {

constexpr int kNotFound = 101;  // CUDA_ERROR_INVALID_DEVICE
int device_count = 2;

using ApiCall = std::uint32_t (*)(int runtime, std::uint32_t callback_id);

// The double of libcupti, if this process has one: the real driver calls its tracer as well.
ApiCall Tracer() {
  static const ApiCall tracer = [] {
    void* library = dlopen("libcupti.so.13", RTLD_LAZY | RTLD_NOLOAD);
    return library == nullptr ? nullptr
                              : reinterpret_cast<ApiCall>(dlsym(library, "fakecupti_api_call"));
  }();
  return tracer;
}

}  // namespace

extern "C" {

FAKECUDA_EXPORT void fakecuda_set_devices(int count) { device_count = count; }

FAKECUDA_EXPORT int cuDriverGetVersion(int* version) {
  constexpr std::uint32_t kCallbackId = 2;
  *version = 13000;
  if (const ApiCall tracer = Tracer()) tracer(0, kCallbackId);
  return 0;
}

FAKECUDA_EXPORT int cuDeviceGetCount(int* count) {
  *count = device_count;
  return 0;
}

FAKECUDA_EXPORT int cuDeviceGet(int* device, int ordinal) {
  if (ordinal < 0 || ordinal >= device_count) return kNotFound;
  *device = ordinal;
  return 0;
}

FAKECUDA_EXPORT int cuDeviceGetName(char* name, int length, int device) {
  std::snprintf(name, length, "Double of a GPU %d", device);
  return 0;
}

FAKECUDA_EXPORT int cuDeviceGetAttribute(int* value, int attribute, int) {
  switch (attribute) {
    case 16:  // MULTIPROCESSOR_COUNT
      *value = 132;
      return 0;
    case 75:  // COMPUTE_CAPABILITY_MAJOR
      *value = 9;
      return 0;
    case 76:  // COMPUTE_CAPABILITY_MINOR
      *value = 0;
      return 0;
    default:
      return 1;
  }
}

FAKECUDA_EXPORT int cuDeviceTotalMem_v2(std::size_t* bytes, int) {
  *bytes = std::size_t{80} << 30;
  return 0;
}

FAKECUDA_EXPORT int cuDeviceGetPCIBusId(char* text, int length, int device) {
  std::snprintf(text, length, "0000:%02x:00.0", 0x3b + device);
  return 0;
}

FAKECUDA_EXPORT int cuDeviceGetUuid_v2(void* uuid, int device) {
  auto* bytes = static_cast<std::uint8_t*>(uuid);
  for (int i = 0; i < 16; ++i) bytes[i] = static_cast<std::uint8_t>(16 * device + i);
  return 0;
}

}  // extern "C"
