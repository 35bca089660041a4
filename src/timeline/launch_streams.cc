#include "timeline/launch_streams.h"

#include <algorithm>

namespace flopledger {
namespace {

constexpr std::size_t kStreams = 4096;

}  // namespace

LaunchStreams::Stream* LaunchStreams::FindSlow(std::uint16_t device, std::uint32_t stream) {
  const auto found = std::find_if(streams_.begin(), streams_.end(), [&](const Stream& known) {
    return known.stream == stream && known.device == device;
  });
  if (found == streams_.end()) return nullptr;
  cache_[Slot(device, stream)] = static_cast<std::uint32_t>(found - streams_.begin());
  return &*found;
}

LaunchStreams::Stream& LaunchStreams::Insert(std::uint16_t device, std::uint32_t stream,
                                             std::uint16_t lane, LaunchOrder idle_before) {
  if (streams_.size() >= kStreams) {
    std::erase_if(streams_, [&](const Stream& known) { return known.last_order < idle_before; });
    // All of them at work: the one that is furthest behind is taken to be gone.
    if (streams_.size() >= kStreams) {
      streams_.erase(std::min_element(
          streams_.begin(), streams_.end(),
          [](const Stream& a, const Stream& b) { return a.last_order < b.last_order; }));
    }
  }
  cache_[Slot(device, stream)] = static_cast<std::uint32_t>(streams_.size());
  streams_.push_back({.stream = stream, .device = device, .lane = lane});
  return streams_.back();
}

}  // namespace flopledger
