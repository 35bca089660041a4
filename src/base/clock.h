#pragma once

#include <cstdint>
#include <ctime>

namespace flopledger {

/// The two clocks of a session: a monotonic one for every duration, a settable one for display.
///
/// Thread: any. Fails: never.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual std::int64_t MonotonicNs() const noexcept = 0;
  virtual double UnixSeconds() const noexcept = 0;
};

class SystemClock final : public Clock {
 public:
  std::int64_t MonotonicNs() const noexcept override { return Now(); }
  double UnixSeconds() const noexcept override {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
  }

  /// CLOCK_MONOTONIC in ns: the clock that every observer stamps with.
  static std::int64_t Now() noexcept {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
  }
};

/// A clock that tests set.
class ManualClock final : public Clock {
 public:
  explicit ManualClock(std::int64_t start_ns = 0) : now_ns_(start_ns) {}
  std::int64_t MonotonicNs() const noexcept override { return now_ns_; }
  double UnixSeconds() const noexcept override { return static_cast<double>(now_ns_) * 1e-9; }
  void Advance(std::int64_t ns) { now_ns_ += ns; }

 private:
  std::int64_t now_ns_;
};

}  // namespace flopledger
