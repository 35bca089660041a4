#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "flopledger/status.h"

namespace flopledger::flops {

/// Far above any model, far below what could wrap 64 bits in a product of two.
inline constexpr std::int64_t kLargestDimension = std::int64_t{1} << 30;

/// Collects what is wrong with a description, so that one message names every field.
class Findings {
 public:
  explicit Findings(std::string what) : what_(std::move(what)) {}

  void Require(std::string_view name, std::int64_t value);
  void Range(std::string_view name, std::int64_t value);
  void Wrong(std::string text) { wrong_.push_back(std::move(text)); }
  /// Fails: kInvalidArgument naming what is missing and what is wrong.
  Result<void> Verdict() const;

 private:
  std::string what_;
  std::vector<std::string> missing_;
  std::vector<std::string> wrong_;
};

}  // namespace flopledger::flops
