// Any text as a Kineto trace, strict and lenient: read or refused, never a crash, and the sums of
// what was read keep to their rules.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "fakes/memory_file.h"
#include "session/replay.h"

namespace {

void Check(bool holds) {
  if (!holds) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const flopledger::fakes::MemoryFile file(bytes, size);
  for (const bool lenient : {false, true}) {
    flopledger::ReplayOptions options;
    options.lenient = lenient;
    options.max_inflated_bytes = 8 << 20;
    const auto result = flopledger::Replay({file.path()}, options);
    if (!result.has_value()) {
      Check(!result.error().message().empty());
      continue;
    }
    for (const flopledger::ReplayTrace& trace : result->traces) {
      for (const flopledger::ReplayDevice& device : trace.devices) {
        const flopledger::DeviceActivity& at = device.activity;
        Check(at.busy_kernels_ns <= at.kernel_time_sum_ns);
        Check(at.busy_kernels_ns <= at.busy_all_ns);
        Check(at.exposed_communication_ns <= at.communication_union_ns);
        Check(at.idle_ns >= 0);
      }
    }
  }
  return 0;
}
