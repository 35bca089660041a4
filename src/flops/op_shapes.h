#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>

#include "flopledger/records.h"
#include "flopledger/units.h"

namespace flopledger {

/// A count, or nothing if it left 128 bits.
using Count = std::optional<Int128>;

/// Product of factors, checked.
Count Product(std::initializer_list<Int128> factors);
/// Product of all dimensions from `first` on, checked.
Count ProductOf(std::span<const std::int64_t> dimensions, std::size_t first = 0);
/// a x b and a + b where both are there and the result fits.
Count Times(Count a, Count b);
Count Plus(Count a, Count b);

/// Reads the arguments of a signature that anybody may have written: whatever is missing, of the
/// wrong kind, negative or absurdly large is absent.
class ArgumentReader {
 public:
  /// Larger dimensions are taken for garbage: a tensor of them does not fit any address space, and
  /// products of two stay far from 128 bits.
  static constexpr std::int64_t kLargestDimension = std::int64_t{1} << 48;

  explicit ArgumentReader(const OpSignature& signature, bool all_pairs = false)
      : arguments_(signature.arguments), all_pairs_(all_pairs) {}

  /// Shape of a tensor argument; `rank` 0 takes any.
  std::optional<std::span<const std::int64_t>> Shape(std::size_t index, std::size_t rank = 0) const;
  DType TypeOf(std::size_t index) const;
  std::optional<bool> Boolean(std::size_t index) const;
  std::optional<std::int64_t> Integer(std::size_t index) const;
  std::optional<std::span<const std::int64_t>> List(std::size_t index) const;
  /// Is it there and a tensor with elements? (Absent optional tensors come as nothing or empty.)
  bool IsTensor(std::size_t index) const;
  bool Is(std::size_t index, OpArgument::Kind kind) const;
  std::size_t size() const { return arguments_.size(); }
  /// Attention counts every query-key pair, whatever its mask leaves out.
  bool all_pairs() const { return all_pairs_; }

 private:
  const std::vector<OpArgument>& arguments_;
  const bool all_pairs_;
};

}  // namespace flopledger
