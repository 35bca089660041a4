// A copy of NVTX whose first range comes before there is a listener: it stays silent for good.

#include <nvtx3/nvToolsExt.h>
#include <stdlib.h>

namespace {
const bool asked = [] {
  unsetenv("NVTX_INJECTION64_PATH");
  nvtxMarkA("nobody");
  return true;
}();
}  // namespace

extern "C" __attribute__((visibility("default"))) void PushAndPopUnheard() {
  if (!asked) return;
  nvtxRangePushA("aten::mm");
  nvtxRangePop();
}
