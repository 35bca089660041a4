#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "flopledger/peak_table.h"

namespace flopledger::flops {

// The sourced table, a generation a file. Rows are of NVIDIA's parts.
std::span<const PeakSku> PeaksVoltaToAda();
std::span<const PeakSku> PeaksHopperAndBlackwell();

}  // namespace flopledger::flops
