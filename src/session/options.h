#pragma once

#include "flopledger/session.h"
#include "flopledger/status.h"

namespace flopledger {

/// Says what is wrong with the options: the field, its value, what is accepted. Touches nothing.
std::optional<Status> FindWrongOption(const SessionOptions& options);

}  // namespace flopledger
