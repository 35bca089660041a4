#pragma once

#include <string_view>

#include "flopledger/op_class.h"

namespace flopledger {

/// Class of a device kernel by its name alone, mangled or demangled, NVIDIA or AMD: a rule of thumb
/// for kernels that no op is linked to. It decides what the kernel occupies the device with and
/// whether the convention leaves it out; it never gives a count.
///
///     ClassifyKernel("ncclDevKernel_AllReduce_Sum_bf16_RING_LL");  // OpClass::kCommunication
///
/// Thread: pure. Fails: never; a name without a rule is `kUnknown`.
OpClass ClassifyKernel(std::string_view name);

}  // namespace flopledger
