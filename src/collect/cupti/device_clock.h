#pragma once

#include <cstdint>
#include <ctime>
#include <optional>

#include "base/clock.h"
#include "collect/cupti/cupti_api.h"

namespace flopledger {

/// The library stamps with a clock that can be set (CLOCK_REALTIME on Linux); the session's is
/// monotonic. The difference is taken again at every drain. A change of more than 1 ms between two
/// drains is a step of the clock: the difference before it is kept for records from before.
///
///     std::optional<std::int64_t> jump = device_clock.Sample(api, clock);
///     std::int64_t start = device_clock.ToSession(record.start);
///
/// Thread: one.
class DeviceClock {
 public:
  static constexpr std::int64_t kStepNs = 1'000'000;

  /// The jump, if the clock was set since the last call.
  std::optional<std::int64_t> Sample(CuptiApi& api, const Clock& clock) noexcept {
    std::int64_t best_width = 0;
    std::optional<std::int64_t> offset;
    for (int attempt = 0; attempt < 3; ++attempt) {
      const std::int64_t before = clock.MonotonicNs();
      std::uint64_t stamp = 0;
      if (api.Timestamp(&stamp) != CUPTI_SUCCESS || stamp == 0) stamp = RealTimeNs();
      const std::int64_t width = clock.MonotonicNs() - before;
      if (offset && width >= best_width) continue;
      best_width = width;
      offset = static_cast<std::int64_t>(stamp) - (before + width / 2);
      if (width < 1000) break;  // as close as it gets
    }
    return Set(*offset);
  }

  std::int64_t ToSession(std::uint64_t stamp) const { return Difference(stamp, offset_); }
  /// By the difference before the last step of the clock, if there was one.
  std::optional<std::int64_t> ToSessionBeforeStep(std::uint64_t stamp) const {
    if (!stepped_) return std::nullopt;
    return Difference(stamp, previous_);
  }

 private:
  // A stamp may be anything; what comes of nonsense is refused by its size.
  static std::int64_t Difference(std::uint64_t stamp, std::int64_t offset) {
    return static_cast<std::int64_t>(stamp - static_cast<std::uint64_t>(offset));
  }
  // What the library uses by default, for one that does not tell.
  static std::uint64_t RealTimeNs() noexcept {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(now.tv_nsec);
  }
  std::optional<std::int64_t> Set(std::int64_t offset) noexcept {
    const std::int64_t jump = offset - offset_;
    const bool step = known_ && (jump > kStepNs || jump < -kStepNs);
    if (step) {
      previous_ = offset_;
      stepped_ = true;
    }
    offset_ = offset;
    known_ = true;
    return step ? std::optional<std::int64_t>(jump) : std::nullopt;
  }

  std::int64_t offset_ = 0;
  std::int64_t previous_ = 0;
  bool known_ = false;
  bool stepped_ = false;
};

}  // namespace flopledger
