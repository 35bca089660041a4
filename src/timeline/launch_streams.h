#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "flopledger/records.h"

namespace flopledger {

/// How far each stream of each device has come, by launches and by time. Bounded: streams that have
/// been idle for long make room for new ones.
///
/// Thread: one.
class LaunchStreams {
 public:
  struct Stream {
    std::uint32_t stream = 0;
    std::uint16_t device = 0;
    std::uint16_t lane = 0;  ///< the caller's number of the device
    LaunchOrder last_order = std::numeric_limits<LaunchOrder>::min();
    std::int64_t last_end_ns = std::numeric_limits<std::int64_t>::min();
  };

  /// The stream, if it is known; null otherwise.
  Stream* Find(std::uint16_t device, std::uint32_t stream) {
    const std::uint32_t index = cache_[Slot(device, stream)];
    if (index < streams_.size() && streams_[index].stream == stream &&
        streams_[index].device == device) {
      return &streams_[index];
    }
    return FindSlow(device, stream);
  }
  /// A new stream. `idle_before`: streams without a launch since then may be forgotten.
  Stream& Insert(std::uint16_t device, std::uint32_t stream, std::uint16_t lane,
                 LaunchOrder idle_before);

  LaunchOrder latest() const { return latest_; }
  std::int64_t latest_end_ns() const { return latest_end_ns_; }
  void See(Stream& stream, LaunchOrder order, std::int64_t end_ns) {
    if (order > stream.last_order) stream.last_order = order;
    if (end_ns > stream.last_end_ns) stream.last_end_ns = end_ns;
    if (end_ns > latest_end_ns_) latest_end_ns_ = end_ns;
    if (order > latest_) latest_ = order;
  }
  const std::vector<Stream>& all() const { return streams_; }

 private:
  static std::size_t Slot(std::uint16_t device, std::uint32_t stream) {
    return (stream ^ (std::size_t{device} * 37)) & 255;
  }
  Stream* FindSlow(std::uint16_t device, std::uint32_t stream);

  std::vector<Stream> streams_;
  std::array<std::uint32_t, 256> cache_{};
  LaunchOrder latest_ = std::numeric_limits<LaunchOrder>::min();
  std::int64_t latest_end_ns_ = std::numeric_limits<std::int64_t>::min();
};

}  // namespace flopledger
