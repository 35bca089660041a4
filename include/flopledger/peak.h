#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flopledger/dtype.h"
#include "flopledger/status.h"
#include "flopledger/units.h"

namespace flopledger {

/// How far a peak can be believed. Contested and unverified entries say so wherever they are shown.
enum class PeakEvidence : std::uint8_t {
  kPublished,    ///< read in the vendor's published sheet
  kOtherTables,  ///< found in other projects' tables
  kArithmetic,   ///< follows from SM count x clock x FLOPs per SM and clock
  kUnconfirmed,  ///< no source that can be checked
  kMeasured,     ///< the best of a few matmuls on this very device
  kUser,         ///< given by the user, with their source
};

constexpr std::string_view ToString(PeakEvidence evidence) {
  constexpr std::array<std::string_view, 6> kNames = {"published",   "other_tables", "arithmetic",
                                                      "unconfirmed", "measured",     "user"};
  return kNames[static_cast<std::size_t>(evidence)];
}

/// The matmul rate of one device for one dtype, dense unless it says otherwise, with its origin.
///
///     PeakRate peak{.device_model = "NVIDIA H100 80GB HBM3", .dtype = DType::kBfloat16,
///                   .rate = FlopsPerSecond(989.4e12), .source = "H100 datasheet"};
struct PeakRate {
  std::string device_model = {};
  DType dtype = DType::kFloat32;
  bool sparse = false;  ///< 2:4 structured sparsity
  FlopsPerSecond rate = {};
  std::string source = {};  ///< title of the sheet, or how it was measured; never empty
  PeakEvidence evidence = PeakEvidence::kUser;
  /// Of a measured peak: slowest and fastest repetition, as a fraction of `rate`.
  std::optional<double> spread_low_ratio = {};
  std::optional<double> spread_high_ratio = {};
};

/// Reads a user's peak: `989.4 TFLOP/s`, `1.2e12 FLOP/s`, `300 GFLOP/s`, or a bare number of
/// FLOP/s. Fails: kInvalidArgument if the text is none of these or the rate is outside of 1e9 to
/// 1e17 FLOP/s (a slip of units: 312 for 312 TFLOP/s).
FLOPLEDGER_EXPORT Result<FlopsPerSecond> ParsePeakRate(std::string_view text);

}  // namespace flopledger
