#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "flopledger/op_class.h"

namespace flopledger {

/// Index of an op signature in the session's table. 0 is the signature of ops that the full table
/// could not take; it has no count.
using SignatureId = std::uint32_t;
inline constexpr SignatureId kOverflowSignature = 0;

/// Identity of device work for counting: what was launched, and how large. Two launches of one
/// signature are taken to do the same work until evidence says otherwise.
///
///     sm90_xmma_gemm_bf16bf16_...  grid 132x1x1  block 384x1x1  shared 227328 bytes
struct KernelSignature {
  std::string name;  ///< as the collector reports it, mangled or not; empty: the collector has none
  std::array<std::uint32_t, 3> grid{};
  std::array<std::uint32_t, 3> block{};
  std::uint32_t shared_memory_bytes = 0;  ///< static and dynamic

  friend bool operator==(const KernelSignature&, const KernelSignature&) = default;
};

/// Index of a kernel signature in the source's table; 0 is what the full table could not take.
using KernelId = std::uint32_t;
inline constexpr KernelId kOverflowKernel = 0;

/// Place of a launch in the order of launches of a process: what has the smaller number was
/// launched before. A live collector gives correlation ids, a trace gives the launch call's time;
/// a fence puts a step boundary into the same order.
using LaunchOrder = std::int64_t;

/// One piece of work that a device executed: a kernel, a copy, a fill. Times are of the session's
/// monotonic clock (in a replay: of the trace), device end not before device start.
///
/// It belongs to the step that launched it. Work whose launch nobody saw (launched before the
/// window, or by a launch that was not recorded) belongs to the step in which it started, and is
/// counted as such.
struct KernelRecord {
  enum class Kind : std::uint8_t { kKernel, kMemcpy, kMemset };
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  LaunchOrder launch_order = 0;  ///< only with `launch_known`
  KernelId kernel = kOverflowKernel;
  std::uint32_t stream = 0;
  SignatureId op = kOverflowSignature;  ///< only with `op_known`: the innermost op that launched it
  std::uint16_t device = 0;
  Kind kind = Kind::kKernel;
  OpClass op_class = OpClass::kUnknown;
  Phase phase = Phase::kForward;  ///< of the op; without one `kForward`, sections decide
  bool launch_known = false;
  bool op_known = false;
};

/// Puts the step boundary at `boundary_ns` into the launch order: what has a smaller launch order
/// was launched before it. Begins and ends of steps both have one; without the one of an end, work
/// launched behind the last step's end is taken to be of that step.
struct FenceRecord {
  std::int64_t boundary_ns = 0;  ///< `MarkerRecord::time_ns` of the step's begin or end
  LaunchOrder launch_order = 0;
};

/// Time that the collector itself cost, as the collector's library reports it.
struct OverheadRecord {
  enum class Kind : std::uint8_t { kBufferFlush, kInstrumentation, kResource, kCompiler, kOther };
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  Kind kind = Kind::kOther;
};

inline constexpr std::size_t kOverheadKindCount = 5;

/// Label values of the collector's own cost.
constexpr std::string_view ToString(OverheadRecord::Kind kind) {
  constexpr std::array<std::string_view, kOverheadKindCount> kNames = {
      "buffer_flush", "instrumentation", "resource", "compiler", "other"};
  return kNames[static_cast<std::size_t>(kind)];
}

/// The clock behind the device's times was set by `jump_ns` at about `time_ns`: times across it
/// cannot be compared, and the step is marked.
struct ClockStepRecord {
  std::int64_t time_ns = 0;
  std::int64_t jump_ns = 0;
};

}  // namespace flopledger
