// Hostile protobuf: bytes of the fuzzer's own behind a good beginning, or a good file changed.
#include "../unit/collect/trace/xplane_file.h"
#include "patched_file.h"

namespace flopledger {
namespace {

std::string MakeSpace() {
  const auto stat = [](const char* name, std::int64_t value) {
    return OwnStat{.name = name, .integer = value};
  };
  std::vector<OwnEvent> kernels;
  std::vector<OwnEvent> calls;
  for (int i = 0; i < 20; ++i) {
    kernels.push_back({.name = "gemm",
                       .offset_ps = i * 1000,
                       .duration_ps = 500,
                       .stats = {stat("correlation_id", i),
                                 {.name = "kernel_details", .text = "grid:1,2,3 block:4,5,6"},
                                 {.name = "tf_op", .text = "jit(f)/dot_general"}}});
    calls.push_back({.name = i % 5 == 0 ? "forward" : "cuLaunchKernel",
                     .offset_ps = i * 900,
                     .duration_ps = 90,
                     .stats = {stat(i % 5 == 0 ? "step_num" : "correlation_id", i)}});
  }
  return SpaceOf(
      {{.name = "/device:GPU:0",
        .lines = {{.name = "Stream #7", .timestamp_ns = 9, .events = kernels}},
        .stats = {stat("core_count", 132)}},
       {.name = "/host:CPU", .lines = {{.name = "python", .timestamp_ns = 9, .events = calls}}}});
}

}  // namespace
}  // namespace flopledger

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::string* const file = new std::string(flopledger::MakeSpace());
  if (size > 0 && data[0] % 3 == 0) {
    const std::string_view own(reinterpret_cast<const char*>(data + 1), size - 1);
    flopledger::ReadTrace(*file + std::string(own));
  } else if (size > 0) {
    flopledger::ReadTrace(flopledger::Patched(*file, data + 1, size - 1));
  }
  return 0;
}
