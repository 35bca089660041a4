#pragma once

#include <cstdint>

#include "flopledger/device_records.h"

namespace flopledger {

/// The 64 bits that are pushed around a call: a fence with its time, or an op with its phase. The
/// top four bits tell them apart, and from ids that another tool pushes, which count up from 1.
///
///     api.Push(ExternalId::OfFence(boundary_ns));
///     ExternalId::KindOf(id)  // kFence
///
/// Thread: pure. 60 bits of a monotonic clock last 36 years.
struct ExternalId {
  enum class Kind : std::uint8_t { kForeign, kFence, kOp };

  static constexpr std::uint64_t kFenceTag = std::uint64_t{0xF} << 60;
  static constexpr std::uint64_t kOpTag = std::uint64_t{0xA} << 60;
  static constexpr std::uint64_t kTagMask = std::uint64_t{0xF} << 60;

  static constexpr std::uint64_t OfFence(std::int64_t boundary_ns) {
    return kFenceTag | (static_cast<std::uint64_t>(boundary_ns) & ~kTagMask);
  }
  static constexpr std::uint64_t OfOp(SignatureId op, Phase phase) {
    return kOpTag | (std::uint64_t{static_cast<std::uint8_t>(phase)} << 32) | op;
  }
  static constexpr Kind KindOf(std::uint64_t id) {
    if ((id & kTagMask) == kFenceTag) return Kind::kFence;
    if ((id & kTagMask) == kOpTag && ((id >> 32) & 0x0FFFFFFF) < kPhaseCount) return Kind::kOp;
    return Kind::kForeign;
  }
  static constexpr std::int64_t BoundaryOf(std::uint64_t id) {
    // The sign of a time before the clock's zero comes back.
    return static_cast<std::int64_t>(id << 4) >> 4;
  }
  static constexpr SignatureId OpOf(std::uint64_t id) { return static_cast<SignatureId>(id); }
  static constexpr Phase PhaseOf(std::uint64_t id) {
    return static_cast<Phase>((id >> 32) & 0x0FFFFFFF);
  }
};

}  // namespace flopledger
