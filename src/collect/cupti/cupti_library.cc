#include "collect/cupti/cupti_library.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string_view>

#include "collect/cupti/cupti_status.h"

namespace flopledger {
namespace {

constexpr int kOldestMajor = 11;
constexpr int kNewestMajor = 13;

std::vector<std::string> MappedObjects() {
  std::vector<std::string> paths;
  dl_iterate_phdr(
      [](dl_phdr_info* object, std::size_t, void* to) {
        if (object->dlpi_name != nullptr && object->dlpi_name[0] != '\0') {
          static_cast<std::vector<std::string>*>(to)->emplace_back(object->dlpi_name);
        }
        return 0;
      },
      &paths);
  return paths;
}

std::string_view BaseName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::string SonameOf(int major) {
  // Up to CUDA 11 the minor version was part of the name.
  return major == 11 ? "libcupti.so.11.8" : "libcupti.so." + std::to_string(major);
}

// The major version of the CUDA runtime that the framework loaded, 0 if none is.
int RuntimeMajor() {
  for (int major = kNewestMajor; major > kOldestMajor; --major) {
    const std::string name = "libcudart.so." + std::to_string(major);
    if (dlopen(name.c_str(), RTLD_LAZY | RTLD_NOLOAD) != nullptr) return major;
  }
  return dlopen("libcudart.so.11.0", RTLD_LAZY | RTLD_NOLOAD) != nullptr ? kOldestMajor : 0;
}

int DriverMajor(void* driver) {
  using GetVersion = int (*)(int*);
  auto* get_version = reinterpret_cast<GetVersion>(dlsym(driver, "cuDriverGetVersion"));
  int version = 0;
  if (get_version == nullptr || get_version(&version) != 0) return kNewestMajor;
  return version / 1000;
}

// Major versions to try, best first: the runtime's, else whatever the driver can serve.
std::vector<int> Majors(void* driver) {
  if (const int runtime = RuntimeMajor(); runtime != 0) return {runtime};
  std::vector<int> majors;
  for (int major = std::min(DriverMajor(driver), kNewestMajor); major >= kOldestMajor; --major) {
    majors.push_back(major);
  }
  return majors;
}

// Folders of Python packages that something in this process was loaded from.
std::vector<std::string> PackageFolders() {
  std::set<std::string> folders;
  for (const std::string& path : MappedObjects()) {
    for (std::string_view name : {"/site-packages/", "/dist-packages/"}) {
      const std::size_t at = path.rfind(name);
      if (at != std::string::npos) folders.insert(path.substr(0, at + name.size() - 1));
    }
  }
  return {folders.begin(), folders.end()};
}

std::vector<std::string> Folders(const CuptiOptions& options, int major) {
  std::vector<std::string> folders = options.library_folders;
  for (const std::string& packages : PackageFolders()) {
    folders.push_back(packages + (major >= 13 ? "/nvidia/cu" + std::to_string(major) + "/lib"
                                              : "/nvidia/cuda_cupti/lib"));
  }
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* root = std::getenv(variable); root != nullptr && root[0] != '\0') {
      folders.push_back(std::string(root) + "/extras/CUPTI/lib64");
      folders.push_back(std::string(root) + "/lib64");
    }
  }
  return folders;
}

CuptiLibrary Refused(std::string_view reason, const std::string& text) {
  return {.refusal = MakeState(DeviceSourceState::Kind::kUnavailable, reason, text)};
}

CuptiLibrary OpenConfigured(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle != nullptr) return {.handle = handle, .path = path};
  const char* error = dlerror();
  return Refused("no_library", "libcupti was configured as '" + path + "' and cannot be opened: " +
                                   (error == nullptr ? "no reason given" : error));
}

CuptiLibrary OpenFirst(const CuptiOptions& options, void* driver) {
  for (const int major : Majors(driver)) {
    std::vector<std::string> candidates = Folders(options, major);
    for (std::string& folder : candidates) folder += "/" + SonameOf(major);
    candidates.push_back(SonameOf(major));
    for (const std::string& path : candidates) {
      if (void* handle = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL)) {
        return {.handle = handle, .path = path};
      }
    }
  }
  return Refused("no_library",
                 "no libcupti was found; install the framework's CUDA wheels, or set "
                 "FLOPLEDGER_CUPTI_LIBRARY to its path");
}

}  // namespace

std::vector<std::string> MappedCuptiLibraries() {
  std::vector<std::string> found;
  for (std::string& path : MappedObjects()) {
    if (BaseName(path).starts_with("libcupti.so")) found.push_back(std::move(path));
  }
  return found;
}

CuptiLibrary OpenCuptiLibrary(const CuptiOptions& options, void* driver) {
  const std::vector<std::string> mapped = MappedCuptiLibraries();
  if (mapped.size() > 1) {
    return Refused("two_libraries", "two copies of libcupti are loaded, '" + mapped[0] + "' and '" +
                                        mapped[1] + "'; remove one from the loader's path");
  }
  if (mapped.size() == 1) {
    if (void* handle = dlopen(mapped[0].c_str(), RTLD_LAZY | RTLD_NOLOAD)) {
      return {.handle = handle, .path = mapped[0]};
    }
  }
  std::string configured = options.library;
  if (configured.empty()) {
    const char* variable = std::getenv("FLOPLEDGER_CUPTI_LIBRARY");
    if (variable != nullptr) configured = variable;
  }
  return configured.empty() ? OpenFirst(options, driver) : OpenConfigured(configured);
}

}  // namespace flopledger
