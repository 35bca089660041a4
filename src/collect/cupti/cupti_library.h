#pragma once

#include <string>
#include <vector>

#include "collect/cupti/cupti_source.h"

namespace flopledger {

/// A libcupti that was found and opened, or why not. Never closed again.
struct CuptiLibrary {
  void* handle = nullptr;
  std::string path;
  DeviceSourceState refusal;  ///< without a handle
};

/// Finds libcupti and opens it: the copy that is mapped already (two of them are refused), the
/// configured path, the given folders, the wheel of the framework that is loaded, the CUDA toolkit
/// of CUDA_HOME or CUDA_PATH, the loader's path. Never a newer major version than the driver's.
///
/// Two paths are two libraries with a state each, so the framework's own file is what counts.
/// Thread: any. `driver` is a handle of libcuda.
CuptiLibrary OpenCuptiLibrary(const CuptiOptions& options, void* driver);

/// Paths of the libcupti copies that are mapped into this process.
std::vector<std::string> MappedCuptiLibraries();

}  // namespace flopledger
