#pragma once

#include "collect/cupti/cupti_source.h"

namespace flopledger {

/// Refuses options that cannot be, with the accepted ones.
Result<void> CheckCuptiOptions(const CuptiOptions& options);

}  // namespace flopledger
