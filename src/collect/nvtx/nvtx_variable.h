#pragma once

#include <cstdint>
#include <string>

namespace flopledger {

/// The one slot that NVTX has for a listener in a process: the variable NVTX_INJECTION64_PATH, read
/// by each copy of NVTX at its first call.
struct NvtxSlot {
  enum class Holder : std::uint8_t {
    kOurs,    ///< it names this library
    kOther,   ///< another tool's library: it stays
    kNobody,  ///< this code is no shared library that NVTX could open
  };
  Holder holder = Holder::kNobody;
  std::string path;  ///< what the variable says
};

/// Takes the slot if it is free, or held by another copy of flopledger (a parent process's).
///
/// Thread: any, but no other may read or change the environment meanwhile: call it early.
NvtxSlot ClaimNvtxSlot();

/// The one real path of the shared library that this code is in; empty if it is in none that
/// exports the entry of an NVTX injection. Two paths to one library would still be one, two copies
/// not.
std::string NvtxLibraryPath();

}  // namespace flopledger
