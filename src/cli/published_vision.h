#pragma once

#include <string_view>

#include "flopledger/status.h"
#include "published_row.h"

namespace flopledger::cli {

/// Multiply-adds of one image in units of 1e9: `VIT_MAC` by the row's columns, `CONV_MAC` by the
/// name of the ResNet variant. Fails: with what is missing or not known.
Result<double> EvaluateVision(const PublishedRow& row, std::string_view formula_id);

}  // namespace flopledger::cli
