#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flopledger/device_records.h"
#include "flopledger/dtype.h"
#include "flopledger/op_class.h"
#include "flopledger/units.h"

namespace flopledger {

/// One argument of an observed op: a tensor by shape and dtype, or a small scalar, never contents.
struct OpArgument {
  enum class Kind : std::uint8_t { kNone, kTensor, kInteger, kIntegerList, kBoolean, kReal, kText };
  Kind kind = Kind::kNone;
  DType dtype = DType::kOther;         ///< of a tensor
  std::vector<std::int64_t> integers;  ///< shape, integer, boolean (0 or 1) or integer list
  double real = 0;

  friend bool operator==(const OpArgument&, const OpArgument&) = default;
};

/// Identity of an op for counting: what it is called and what it was called with. Two calls with
/// one signature do the same number of FLOPs.
///
///     aten::mm  [fp32 1024x256] [fp32 256x768]
struct OpSignature {
  std::string name;  ///< qualified, without overload: `aten::mm`
  std::vector<OpArgument> arguments;

  friend bool operator==(const OpSignature&, const OpSignature&) = default;
};

/// One op that ran to its end, as an observer saw it. Times are of the session's monotonic clock.
/// `self_ns` is its time without the ops that it called: the self times of a thread never overlap,
/// so they can be summed. An op that an exception ended did not run and is no record.
struct OpRecord {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t self_ns = 0;
  SignatureId signature = kOverflowSignature;
  std::uint16_t device = 0;
  Phase phase = Phase::kForward;
  OpClass op_class = OpClass::kUnknown;
};

/// A point in time that the training process named: a step boundary or the edge of a section.
///
///     MarkerRecord{.time_ns = now, .step = 12, .kind = MarkerRecord::Kind::kStepBegin}
///
/// Boundaries are contiguous: the end of a step is the begin of the next one.
struct MarkerRecord {
  enum class Kind : std::uint8_t {
    kStepBegin,
    kStepEnd,
    kStepFailed,
    kSectionBegin,
    kSectionEnd,
    kDeclarationInvalid,  ///< tokens that cannot be: the step's declaration is refused
  };
  std::int64_t time_ns = 0;
  std::int64_t step = 0;  ///< of step markers
  Kind kind = Kind::kStepBegin;
  Phase phase = Phase::kOther;  ///< of section markers
};

/// Sequences that were declared to be in the step at `time_ns`: `count` rows of `length` tokens.
/// `useful_length` of each are real, the rest is padding.
///
///     TokenRecord{.time_ns = now, .count = 8, .length = 128, .useful_length = 100}
struct TokenRecord {
  std::int64_t time_ns = 0;
  std::int64_t count = 0;
  std::int64_t length = 0;
  std::int64_t useful_length = 0;
  /// The useful lengths were not given and are an even split of the useful tokens.
  bool even_split = false;
  /// No length was given: rows of one token stand for the tokens.
  bool unknown_length = false;
};

/// Work that a user's own formula declared for the step at `time_ns`, already in FLOPs.
struct DeclaredRecord {
  std::int64_t time_ns = 0;
  Flops forward;
  Flops backward;
  std::int64_t tokens = 0;
};

/// A number to publish beside the books, given at `time_ns`; `name_id` is the session's.
struct ValueRecord {
  std::int64_t time_ns = 0;
  double value = 0;
  std::uint32_t name_id = 0;
};

/// Records that did not reach the books, counted where they were lost: nothing is dropped silently.
/// The count lowers the coverage of its step and is exported by place and reason.
struct LossRecord {
  enum class Where : std::uint8_t { kHostRing, kMarkerRing, kSignatureTable, kTimeline, kDevice };
  enum class Reason : std::uint8_t {
    kFull,
    kLate,
    kInvalidTime,   ///< untimed (both ends zero) or an end before its start
    kUnknownCount,  ///< the collector could not say whether it lost something
  };
  std::int64_t time_ns = 0;
  std::int64_t count = 0;
  Where where = Where::kHostRing;
  Reason reason = Reason::kFull;
};

/// Sizes of the two sets.
inline constexpr std::size_t kLossWhereCount = 5;
inline constexpr std::size_t kLossReasonCount = 4;

/// Label values of `dropped_records_total{where,reason}`.
constexpr std::string_view ToString(LossRecord::Where where) {
  constexpr std::array<std::string_view, kLossWhereCount> kNames = {
      "host_ring", "marker_ring", "signature_table", "timeline", "device"};
  return kNames[static_cast<std::size_t>(where)];
}
constexpr std::string_view ToString(LossRecord::Reason reason) {
  constexpr std::array<std::string_view, kLossReasonCount> kNames = {"full", "late", "invalid_time",
                                                                     "unknown_count"};
  return kNames[static_cast<std::size_t>(reason)];
}

/// What a source hands on: values, in any order; the timeline sorts by their times. Markers of a
/// batch are at least as new as its ops and kernels (sources drain those first), so that no op and
/// no launch can overtake the boundary that precedes it; fences may come later.
struct RecordBatch {
  std::vector<OpRecord> ops;
  std::vector<MarkerRecord> markers;
  std::vector<TokenRecord> tokens;
  std::vector<DeclaredRecord> declared;
  std::vector<ValueRecord> values;
  std::vector<LossRecord> losses;
  std::vector<KernelRecord> kernels;
  std::vector<FenceRecord> fences;
  std::vector<OverheadRecord> overheads;
  std::vector<ClockStepRecord> clock_steps;
  /// When this was drained, on the session's clock; absent in a replay, where no time passes.
  std::optional<std::int64_t> drained_at_ns;
  std::int64_t aborted_ops = 0;  ///< ended by an exception: they did not run, nothing is lost

  void Clear() {
    ops.clear();
    markers.clear();
    tokens.clear();
    declared.clear();
    values.clear();
    losses.clear();
    kernels.clear();
    fences.clear();
    overheads.clear();
    clock_steps.clear();
    drained_at_ns.reset();
    aborted_ops = 0;
  }
};

}  // namespace flopledger
