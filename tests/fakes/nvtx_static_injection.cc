// Links the injection into a test itself: NVTX takes it where no variable names a library. In a
// file of its own, since NVTX's headers declare the pointer as a weak one.

#include "collect/nvtx/nvtx_injection.h"

extern "C" {
int FlopledgerTestInjection(const void* (*get_export_table)(std::uint32_t)) {
  return flopledger::AttachNvtxClient(get_export_table) ? 1 : 0;
}
extern int (*InitializeInjectionNvtx2_fnptr)(const void* (*)(std::uint32_t));
int (*InitializeInjectionNvtx2_fnptr)(const void* (*)(std::uint32_t)) = &FlopledgerTestInjection;
}
