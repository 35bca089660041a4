#pragma once

// What the binding sources share.

#include <nanobind/nanobind.h>

#include <string_view>
#include <utility>

#include "flopledger/dtype.h"
#include "flopledger/status.h"

namespace flopledger {

/// A refusal as the exception that a Python user expects for it: ValueError, KeyError,
/// OverflowError, OSError or RuntimeError.
[[noreturn]] void Raise(const Status& status);

template <typename T>
T Unwrap(Result<T> result) {
  if (!result) Raise(result.error());
  return *std::move(result);
}

/// Raises ValueError with the accepted names.
DType DTypeOf(std::string_view name);

/// `PeakRate`, the table and what reads them.
void BindPeak(nanobind::module_& module);

}  // namespace flopledger
