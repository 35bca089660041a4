#include "rational.h"

#include <limits>
#include <utility>

namespace flopledger::flops {
namespace {

constexpr Int128 kLowest = -((((Int128{1} << 126) - 1) * 2) + 1) - 1;

/// Of numbers other than the lowest one.
Int128 GreatestCommonDivisor(Int128 a, Int128 b) {
  if (a < 0) a = -a;
  if (b < 0) b = -b;
  while (b != 0) {
    a %= b;
    std::swap(a, b);
  }
  return a;
}

}  // namespace

std::optional<Rational> Rational::Create(Int128 numerator, Int128 denominator) {
  if (denominator == 0 || numerator == kLowest || denominator == kLowest) return std::nullopt;
  const Int128 divisor = GreatestCommonDivisor(numerator, denominator);
  if (divisor > 1) {
    numerator /= divisor;
    denominator /= divisor;
  }
  if (denominator < 0) {
    numerator = -numerator;
    denominator = -denominator;
  }
  Rational result;
  result.numerator_ = numerator;
  result.denominator_ = denominator;
  return result;
}

std::optional<Int128> Rational::Round() const {
  if (denominator_ == 1) return numerator_;
  Int128 floor = numerator_ / denominator_;
  Int128 rest = numerator_ % denominator_;
  if (rest < 0) {
    rest += denominator_;
    --floor;
  }
  return rest >= denominator_ - rest ? floor + 1 : floor;
}

std::optional<Rational> Rational::Add(const Rational& a, const Rational& b) {
  const Int128 divisor = GreatestCommonDivisor(a.denominator_, b.denominator_);
  Int128 left = 0;
  Int128 right = 0;
  Int128 denominator = 0;
  Int128 numerator = 0;
  if (!CheckedMultiply(a.numerator_, b.denominator_ / divisor, &left) ||
      !CheckedMultiply(b.numerator_, a.denominator_ / divisor, &right) ||
      !CheckedMultiply(a.denominator_, b.denominator_ / divisor, &denominator) ||
      !CheckedAdd(left, right, &numerator)) {
    return std::nullopt;
  }
  return Create(numerator, denominator);
}

std::optional<Rational> Rational::Subtract(const Rational& a, const Rational& b) {
  return Add(a, Rational(b).numerator_ == 0 ? b : *Create(-b.numerator_, b.denominator_));
}

std::optional<Rational> Rational::Multiply(const Rational& a, const Rational& b) {
  if (a.numerator_ == 0 || b.numerator_ == 0) return Rational();
  // Reduced crosswise first, so that only a result which is too large fails.
  const Int128 first = GreatestCommonDivisor(a.numerator_, b.denominator_);
  const Int128 second = GreatestCommonDivisor(b.numerator_, a.denominator_);
  Int128 numerator = 0;
  Int128 denominator = 0;
  if (!CheckedMultiply(a.numerator_ / first, b.numerator_ / second, &numerator) ||
      !CheckedMultiply(a.denominator_ / second, b.denominator_ / first, &denominator)) {
    return std::nullopt;
  }
  return Create(numerator, denominator);
}

std::optional<Rational> Rational::Divide(const Rational& a, const Rational& b) {
  const std::optional<Rational> inverse = Create(b.denominator_, b.numerator_);
  if (!inverse.has_value()) return std::nullopt;
  return Multiply(a, *inverse);
}

std::optional<Rational> Rational::Power(const Rational& base, const Rational& exponent) {
  if (exponent.denominator_ != 1 || exponent.numerator_ > 64 || exponent.numerator_ < -64) {
    return std::nullopt;
  }
  const int steps =
      static_cast<int>(exponent.numerator_ < 0 ? -exponent.numerator_ : exponent.numerator_);
  std::optional<Rational> result = Rational(1);
  for (int i = 0; i < steps && result.has_value(); ++i) result = Multiply(*result, base);
  if (result.has_value() && exponent.numerator_ < 0) return Divide(Rational(1), *result);
  return result;
}

std::optional<bool> Rational::Less(const Rational& a, const Rational& b) {
  const std::optional<Rational> difference = Subtract(a, b);
  if (!difference.has_value()) return std::nullopt;
  return difference->numerator_ < 0;
}

}  // namespace flopledger::flops
