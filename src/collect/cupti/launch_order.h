#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "flopledger/device_records.h"

namespace flopledger {

/// Correlation ids are 32 bits wide and come back after four billion calls, some days of training.
/// Made 64 bits wide by taking each as the one that is nearest to the newest seen.
class LaunchOrders {
 public:
  LaunchOrder Extend(std::uint32_t correlation) {
    if (!started_) {
      started_ = true;
      newest_ = correlation;
    }
    const auto ahead = static_cast<std::int32_t>(correlation - static_cast<std::uint32_t>(newest_));
    const LaunchOrder order = newest_ + ahead;
    if (ahead > 0) newest_ = order;
    return order;
  }

 private:
  LaunchOrder newest_ = 0;
  bool started_ = false;
};

/// The last fences, to ask after which boundary something was launched.
class RecentFences {
 public:
  void Add(const FenceRecord& fence) { fences_[count_++ % fences_.size()] = fence; }

  /// The boundary of the last fence before a launch; nothing if it is older than all kept.
  std::optional<std::int64_t> BoundaryBefore(LaunchOrder order) const {
    const std::size_t kept = count_ < fences_.size() ? count_ : fences_.size();
    for (std::size_t i = 1; i <= kept; ++i) {
      const FenceRecord& fence = fences_[(count_ - i) % fences_.size()];
      if (fence.launch_order <= order) return fence.boundary_ns;
    }
    return std::nullopt;
  }

 private:
  std::array<FenceRecord, 32> fences_{};
  std::size_t count_ = 0;
};

}  // namespace flopledger
