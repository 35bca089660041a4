#pragma once

#include <cstdint>
#include <string>

namespace flopledger::fakes {

/// What a trace of `WriteBigTrace` comes to, by its construction.
struct BigTraceTruth {
  std::int64_t events = 0;
  std::int64_t kernels = 0;
  std::int64_t steps = 0;
  std::int64_t busy_ns = 0;
  std::int64_t flops = 0;
};

/// Writes a Kineto document of at least `bytes` bytes, event by event: linear layers with their
/// matmul, launch, flow arrows, kernel and Python frames, 2,000 layers a step. False if the file
/// cannot be written.
bool WriteBigTrace(const std::string& path, std::uint64_t bytes, BigTraceTruth* truth);

}  // namespace flopledger::fakes
