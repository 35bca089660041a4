#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "flopledger/export.h"
#include "flopledger/status.h"

namespace flopledger {

/// The widest integer: FLOP totals of a fleet leave 64 bits within seconds (1e16 FLOP/s x 1000 s).
__extension__ using Int128 = __int128;

/// Decimal digits of a 128-bit integer; the standard library prints none.
FLOPLEDGER_EXPORT std::string ToString(Int128 value);

/// Reads what `ToString(Int128)` wrote. Fails: kInvalidArgument (not an integer), kOverflow.
FLOPLEDGER_EXPORT Result<Int128> ParseInt128(std::string_view text);

/// A number of floating-point operations; a multiply-add is two. Exact, signed (an excess or an
/// unexplained rest may be negative).
///
///     Flops forward = Flops::FromInteger(2) * m * n * k;
///     std::string text = forward.ToString();
///
/// Thread: a value. Fails: plain arithmetic does not check; use the `Checked...` functions where
/// the operands are not known to be small.
class Flops {
 public:
  constexpr Flops() = default;
  static constexpr Flops FromInteger(Int128 count) { return Flops(count); }

  constexpr Int128 count() const { return count_; }
  /// Nearest double: for ratios and for text that wants one.
  constexpr double ToDouble() const { return static_cast<double>(count_); }
  /// All digits.
  std::string ToString() const { return flopledger::ToString(count_); }

  constexpr Flops& operator+=(Flops other) {
    count_ += other.count_;
    return *this;
  }
  constexpr Flops& operator-=(Flops other) {
    count_ -= other.count_;
    return *this;
  }
  friend constexpr Flops operator+(Flops a, Flops b) { return a += b; }
  friend constexpr Flops operator-(Flops a, Flops b) { return a -= b; }
  friend constexpr Flops operator-(Flops a) { return Flops(-a.count_); }
  friend constexpr Flops operator*(Flops a, Int128 times) { return Flops(a.count_ * times); }
  friend constexpr Flops operator*(Int128 times, Flops a) { return a * times; }
  friend constexpr bool operator==(Flops, Flops) = default;
  friend constexpr auto operator<=>(Flops, Flops) = default;

 private:
  explicit constexpr Flops(Int128 count) : count_(count) {}
  Int128 count_ = 0;
};

/// `a + b` and `a * b`, or false if the result leaves 128 bits (`out` is then untouched).
[[nodiscard]] constexpr bool CheckedAdd(Int128 a, Int128 b, Int128* out) {
  Int128 sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) return false;
  *out = sum;
  return true;
}
[[nodiscard]] constexpr bool CheckedMultiply(Int128 a, Int128 b, Int128* out) {
  Int128 product = 0;
  if (__builtin_mul_overflow(a, b, &product)) return false;
  *out = product;
  return true;
}

/// A rate. Never mix it up with a count: a peak is a rate, a step's work is a count.
///
///     FlopsPerSecond peak(989.4e12);
///     double flops_in_interval = peak.value() * wall.seconds();
///
/// Thread: a value. Fails: never; who makes one checks that it is finite and positive.
class FlopsPerSecond {
 public:
  constexpr FlopsPerSecond() = default;
  explicit constexpr FlopsPerSecond(double value) : value_(value) {}
  constexpr double value() const { return value_; }
  friend constexpr bool operator==(FlopsPerSecond, FlopsPerSecond) = default;
  friend constexpr auto operator<=>(FlopsPerSecond, FlopsPerSecond) = default;

 private:
  double value_ = 0;
};

/// A length of time in integer nanoseconds of a monotonic clock. Integers, so that the parts of a
/// step sum to its wall time exactly; `seconds()` is for text and ratios.
///
///     DurationNs wall = DurationNs(end_ns - start_ns);
///
/// Thread: a value. Fails: never; 64 bits hold 292 years.
class DurationNs {
 public:
  constexpr DurationNs() = default;
  explicit constexpr DurationNs(std::int64_t ns) : ns_(ns) {}
  constexpr std::int64_t ns() const { return ns_; }
  constexpr double seconds() const { return static_cast<double>(ns_) * 1e-9; }

  constexpr DurationNs& operator+=(DurationNs other) {
    ns_ += other.ns_;
    return *this;
  }
  constexpr DurationNs& operator-=(DurationNs other) {
    ns_ -= other.ns_;
    return *this;
  }
  friend constexpr DurationNs operator+(DurationNs a, DurationNs b) { return a += b; }
  friend constexpr DurationNs operator-(DurationNs a, DurationNs b) { return a -= b; }
  friend constexpr bool operator==(DurationNs, DurationNs) = default;
  friend constexpr auto operator<=>(DurationNs, DurationNs) = default;

 private:
  std::int64_t ns_ = 0;
};

}  // namespace flopledger
