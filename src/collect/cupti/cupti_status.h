#pragma once

#include <cupti.h>

#include <string>
#include <string_view>

#include "collect/device_source.h"

namespace flopledger {

/// What a refused call of libcupti means for the source. Reasons are a closed set, label values:
///
///     ok, no_fence                              counting; without step fences
///     not_built, no_driver, no_library, two_libraries, too_old, incomplete, already_running
///     other_tool, hardware_busy                 waiting, tried again
///     permission, not_compatible, not_initialized, not_supported, out_of_memory, library_error
///     taken_over, bad_timestamps, stopped, forked
///
/// 15 and 999 are what a library without a usable driver answers.
DeviceSourceState StateOf(CUptiResult code, std::string_view function);

DeviceSourceState MakeState(DeviceSourceState::Kind kind, std::string_view reason,
                            std::string_view text);

}  // namespace flopledger
