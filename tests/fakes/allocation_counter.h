#pragma once

#include <cstdint>

namespace flopledger::testing_support {

/// Counts the allocations of the calling thread; every form of `new` of the executable is replaced.
void StartCountingAllocations();
std::int64_t StopCountingAllocations();

/// Allocations of this thread while `work` runs.
template <typename Work>
std::int64_t AllocationsOf(const Work& work) {
  StartCountingAllocations();
  work();
  return StopCountingAllocations();
}

}  // namespace flopledger::testing_support
