#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

/// The closed sets by which work is sorted: what it is for (`Phase`), what it occupies the device
/// with (`ActivityClass`), what kind it is (`OpClass`). Each value is also a label value, so a new
/// one needs a line in the metric catalogue.
///
///     ActivityOf(OpClass::kCommunication);  // ActivityClass::kCommunication
///     ToString(Phase::kRecompute);          // "recompute"
///
/// Thread: values and pure functions. Fails: never.
namespace flopledger {

/// What a piece of a step is for. `kOther` is time inside a step that nobody named.
enum class Phase : std::uint8_t {
  kForward,
  kBackward,
  kRecompute,
  kOptimizer,
  kCommunication,
  kData,
  kCheckpoint,
  kEval,
  kOther,
};
/// Size of arrays that are indexed by phase.
inline constexpr std::size_t kPhaseCount = 9;

/// Label value: `forward`.
constexpr std::string_view ToString(Phase phase) {
  constexpr std::array<std::string_view, kPhaseCount> kNames = {
      "forward", "backward",   "recompute", "optimizer", "communication",
      "data",    "checkpoint", "eval",      "other"};
  return kNames[static_cast<std::size_t>(phase)];
}

/// What a kernel or an op occupies the device with; decides the exclusive time partition.
/// `kNone` is host-side composition: it launches others and occupies nothing itself.
enum class ActivityClass : std::uint8_t { kCompute, kCommunication, kCopy, kNone };

/// Kind of work of a kernel or an op, a closed set that is a metric label.
enum class OpClass : std::uint8_t {
  kMatmul,
  kAttention,
  kConvolution,
  kElementwise,
  kNormalization,
  kReduction,
  kIndexing,  ///< embedding, gather, scatter, sort
  kRandom,
  kCopy,
  kCommunication,
  kComposite,  ///< calls other ops, computes nothing itself
  kUnknown,
};
/// Size of arrays that are indexed by class.
inline constexpr std::size_t kOpClassCount = 12;

/// Label value: `matmul`.
constexpr std::string_view ToString(OpClass op_class) {
  constexpr std::array<std::string_view, kOpClassCount> kNames = {
      "matmul",   "attention", "convolution", "elementwise",   "normalization", "reduction",
      "indexing", "random",    "copy",        "communication", "composite",     "unknown"};
  return kNames[static_cast<std::size_t>(op_class)];
}

/// What a class of work occupies the device with. A class without a line of its own computes.
constexpr ActivityClass ActivityOf(OpClass op_class) {
  switch (op_class) {
    case OpClass::kCommunication:
      return ActivityClass::kCommunication;
    case OpClass::kCopy:
      return ActivityClass::kCopy;
    case OpClass::kComposite:
      return ActivityClass::kNone;
    default:
      return ActivityClass::kCompute;
  }
}

}  // namespace flopledger
