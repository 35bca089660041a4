#include "collect/cupti/cupti_options.h"

#include <string>

namespace flopledger {

Result<void> CheckCuptiOptions(const CuptiOptions& options) {
  // Below 4 KiB a buffer holds no useful number of records; above 2 GiB CUPTI fails.
  if (options.buffer_bytes < 4096 || options.buffer_bytes > (std::size_t{1} << 30) ||
      options.buffer_bytes % 4096 != 0) {
    return InvalidArgument("buffer_bytes is " + std::to_string(options.buffer_bytes) +
                           "; accepted: a multiple of 4096, up to 1073741824");
  }
  if (options.buffers < 2 || options.buffers > 4096) {
    return InvalidArgument("buffers is " + std::to_string(options.buffers) +
                           "; accepted: 2 to 4096");
  }
  if (options.cap_bytes / options.buffer_bytes < options.buffers) {
    return InvalidArgument("cap_bytes is " + std::to_string(options.cap_bytes) +
                           "; accepted: at least buffers x buffer_bytes = " +
                           std::to_string(options.buffers * options.buffer_bytes));
  }
  if (options.flush_interval_ms < 0 || options.flush_interval_ms > 60'000) {
    return InvalidArgument("flush_interval_ms is " + std::to_string(options.flush_interval_ms) +
                           "; accepted: 0 (no thread) to 60000");
  }
  if (options.kernel_signatures < 2 || options.kernel_signatures > (std::size_t{1} << 24)) {
    return InvalidArgument("kernel_signatures is " + std::to_string(options.kernel_signatures) +
                           "; accepted: 2 to 16777216");
  }
  return {};
}

}  // namespace flopledger
