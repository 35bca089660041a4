// Another tool that listens to NVTX: counts the ranges that are pushed and says so at the end.

#include <cstdio>

#define NVTX_NO_IMPL 1
#include <nvtx3/nvToolsExt.h>

namespace {

int pushed = 0;

// As a tool that returns -1 whatever happens.
int Push(nvtxDomainHandle_t, const nvtxEventAttributes_t*) {
  ++pushed;
  return -1;
}

struct AtEnd {
  ~AtEnd() { std::printf("other tool saw %d\n", pushed); }
} at_end;

}  // namespace

extern "C" __attribute__((visibility("default"))) int InitializeInjectionNvtx2(
    NvtxGetExportTableFunc_t get_export_table) {
  const auto* callbacks =
      static_cast<const NvtxExportTableCallbacks*>(get_export_table(NVTX_ETID_CALLBACKS));
  NvtxFunctionTable table = nullptr;
  unsigned int size = 0;
  if (callbacks->GetModuleFunctionTable(NVTX_CB_MODULE_CORE2, &table, &size) == 0) return 0;
  *table[NVTX_CBID_CORE2_DomainRangePushEx] = reinterpret_cast<NvtxFunctionPointer>(&Push);
  return 1;
}
