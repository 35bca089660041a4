#pragma once

#include <optional>

#include "flopledger/units.h"

namespace flopledger::flops {

/// An exact fraction, reduced, with a positive denominator. Every operation says when it left 128
/// bits (or divided by 0) instead of wrapping.
class Rational {
 public:
  constexpr Rational() = default;
  constexpr Rational(Int128 value) : numerator_(value) {}  // NOLINT(google-explicit-constructor)
  /// None if `denominator` is 0 or the sign cannot be moved.
  static std::optional<Rational> Create(Int128 numerator, Int128 denominator);

  constexpr Int128 numerator() const { return numerator_; }
  constexpr Int128 denominator() const { return denominator_; }
  double ToDouble() const {
    return static_cast<double>(numerator_) / static_cast<double>(denominator_);
  }
  /// Nearest integer, halves upwards; none if that leaves 128 bits.
  std::optional<Int128> Round() const;

  static std::optional<Rational> Add(const Rational& a, const Rational& b);
  static std::optional<Rational> Subtract(const Rational& a, const Rational& b);
  static std::optional<Rational> Multiply(const Rational& a, const Rational& b);
  static std::optional<Rational> Divide(const Rational& a, const Rational& b);
  /// Exponents from -64 to 64.
  static std::optional<Rational> Power(const Rational& base, const Rational& exponent);
  /// Whether a < b; none if the comparison leaves 128 bits.
  static std::optional<bool> Less(const Rational& a, const Rational& b);

 private:
  Int128 numerator_ = 0;
  Int128 denominator_ = 1;
};

}  // namespace flopledger::flops
