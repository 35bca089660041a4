#pragma once

#include "flopledger/units.h"

namespace flopledger::flops {

/// An integer that remembers whether any step on the way to it left 128 bits, so that a formula
/// reads like a formula and is checked once at its end.
///
///     Exact work = Exact(2) * tokens * hidden * width;
///     if (!work.valid()) return Fail(StatusCode::kOverflow, ...);
class Exact {
 public:
  constexpr Exact(Int128 value = 0) : value_(value) {}  // NOLINT(google-explicit-constructor)

  constexpr bool valid() const { return valid_; }
  constexpr Int128 value() const { return value_; }

  friend constexpr Exact operator+(Exact a, Exact b) {
    Exact sum;
    sum.valid_ = CheckedAdd(a.value_, b.value_, &sum.value_) && a.valid_ && b.valid_;
    return sum;
  }
  friend constexpr Exact operator-(Exact a, Exact b) {
    Exact difference;
    difference.valid_ =
        !__builtin_sub_overflow(a.value_, b.value_, &difference.value_) && a.valid_ && b.valid_;
    return difference;
  }
  friend constexpr Exact operator*(Exact a, Exact b) {
    Exact product;
    product.valid_ = CheckedMultiply(a.value_, b.value_, &product.value_) && a.valid_ && b.valid_;
    return product;
  }
  /// Rounded towards zero. The divisor is a constant other than 0.
  friend constexpr Exact operator/(Exact a, std::int64_t divisor) {
    Exact quotient = a;
    quotient.value_ /= divisor;
    return quotient;
  }
  constexpr Exact& operator+=(Exact other) { return *this = *this + other; }

 private:
  Int128 value_ = 0;
  bool valid_ = true;
};

}  // namespace flopledger::flops
