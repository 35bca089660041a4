#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flopledger/convention.h"
#include "flopledger/device_time.h"
#include "flopledger/dtype.h"
#include "flopledger/export.h"
#include "flopledger/peak.h"
#include "flopledger/records.h"
#include "flopledger/units.h"

namespace flopledger {

/// How a step ended. Only complete steps enter the step counters; the time of the others is in
/// `excluded_seconds_total{reason}`.
enum class StepResult : std::uint8_t { kComplete, kWarmup, kIncomplete };

constexpr std::string_view ToString(StepResult result) {
  constexpr std::array<std::string_view, 3> kNames = {"complete", "warmup", "incomplete"};
  return kNames[static_cast<std::size_t>(result)];
}

/// Where a count came from. The absence of a count is a `CoverageGap`, never a zero.
enum class FlopSource : std::uint8_t { kCounter, kOpShapes, kCompiler, kLearned, kDeclared };

constexpr std::string_view ToString(FlopSource source) {
  constexpr std::array<std::string_view, 5> kNames = {"counter", "op_shapes", "compiler", "learned",
                                                      "declared"};
  return kNames[static_cast<std::size_t>(source)];
}

/// Is the work of a kernel known? `kOutside`: the convention leaves its kind out; its time counts.
enum class CoverageKind : std::uint8_t { kCounted, kOutside, kUnknown };
inline constexpr std::size_t kCoverageKindCount = 3;

constexpr std::string_view ToString(CoverageKind kind) {
  constexpr std::array<std::string_view, kCoverageKindCount> kNames = {"counted", "outside",
                                                                       "unknown"};
  return kNames[static_cast<std::size_t>(kind)];
}

/// Executed FLOPs of one dtype from one source.
struct ExecutedPart {
  DType dtype = DType::kFloat32;
  FlopSource source = FlopSource::kOpShapes;
  Flops flops;
};

/// Excess with a name: work of the implementation that the mathematics does not need.
struct ExcessPart {
  std::string cause;  ///< `attention_score_recompute`
  Flops flops;
};

/// What ran, from evidence.
struct ExecutedFlops {
  Flops total;
  Flops recomputed;  ///< R: forward work run again
  Flops auxiliary;   ///< A: matmuls of the optimizer, of evaluation, of clipping
  Flops excess;      ///< X: sum of `excess_parts`
  std::vector<ExecutedPart> parts;
  std::vector<ExcessPart> excess_parts;
};

/// What the model needed, from the declared formula.
struct DeclaredFlops {
  Flops useful_forward;
  Flops useful_backward;
  Flops padding;  ///< P: the formula on padded lengths minus the formula on useful lengths
  Flops useful() const { return useful_forward + useful_backward; }
};

/// Time and launches of one class of kernels or ops.
struct KernelTime {
  OpClass op_class = OpClass::kUnknown;
  CoverageKind coverage = CoverageKind::kUnknown;
  std::int64_t launches = 0;
  DurationNs time;  ///< sum of self times
};

/// Why a kernel has no count.
enum class GapReason : std::uint8_t {
  kNoRule,
  kNoShape,
  kSignatureTableFull,
  kRecordLost,
  kNoOp,  ///< a kernel that no op is linked to, of a kind that may have FLOPs
};
inline constexpr std::size_t kGapReasonCount = 5;

constexpr std::string_view ToString(GapReason reason) {
  constexpr std::array<std::string_view, kGapReasonCount> kNames = {
      "no_rule", "no_shape", "signature_table_full", "record_lost", "no_op"};
  return kNames[static_cast<std::size_t>(reason)];
}

/// Work that nobody could count, by name. Names go to the JSONL log, never into labels.
struct CoverageGap {
  std::string name;
  GapReason reason = GapReason::kNoRule;
  std::int64_t launches = 0;
  DurationNs time;
};

/// 1 - unknown / all, by time and by launches. Absent while nothing was observed.
struct Coverage {
  std::optional<double> time_ratio;
  std::optional<double> launch_ratio;
};

/// Why a ratio cannot be given.
enum class RefusalReason : std::uint8_t {
  kNone,
  kNoDeclaration,     ///< no formula was declared
  kNoTokens,          ///< the step declared no tokens
  kNoSequenceLength,  ///< attention needs lengths; neither start() nor tokens() gave any
  kDeclarationLost,   ///< part of the declared tokens was lost on the way
  kEvaluationFailed,  ///< the formula refused the workload (overflow, wrong kind of model)
  kNoPeak,            ///< no peak for the dtype
  kNoEvidence,        ///< nothing was observed, so HFU has no lower bound worth the name
  kNoWall,            ///< the step has no length
};

constexpr std::string_view ToString(RefusalReason reason) {
  constexpr std::array<std::string_view, 9> kNames = {"none",
                                                      "no_declaration",
                                                      "no_tokens",
                                                      "no_sequence_length",
                                                      "declaration_lost",
                                                      "evaluation_failed",
                                                      "no_peak",
                                                      "no_evidence",
                                                      "no_wall"};
  return kNames[static_cast<std::size_t>(reason)];
}

/// MFU and HFU of one step. HFU is the interval [low, high]; a point only at full coverage.
struct Utilization {
  std::optional<double> mfu_ratio;
  std::optional<double> hfu_low_ratio;
  std::optional<double> hfu_high_ratio;
  RefusalReason mfu_refusal = RefusalReason::kNone;
  RefusalReason hfu_refusal = RefusalReason::kNone;
};

/// Something that a person should look at. Findings never change a number.
struct Finding {
  std::string id;       ///< closed set: `mfu_above_hfu`, `executed_below_declared`, ...
  double ratio = 0;     ///< the two sides, one over the other
  std::string suspect;  ///< the first thing to check
};

/// One line of the way from peak x wall down to useful work. The lines sum to `peak_flops` exactly.
struct WaterfallLine {
  std::string cause;  ///< closed set, a metric label: `idle_data`, `recompute`, `useful`, ...
  Flops flops;
  bool physics = false;  ///< false: a choice of the program or the configuration
};

/// Tokens of a step.
struct TokenCount {
  std::int64_t useful = 0;
  std::int64_t padded = 0;  ///< all rows at full length, padding included
  bool even_split = false;  ///< lengths were assumed, see `TokenRecord::even_split`
};

/// A number that the user wants to see beside the books (loss, learning rate).
struct TrainingValue {
  std::string name;
  double value = 0;
};

struct RunTotals;

/// One closed step's balanced books: an immutable value, the only thing that sinks see.
///
/// `E = U + R + A + P + X + e` per step: `executed.total = declared->useful() + executed.recomputed
/// + executed.auxiliary + declared->padding + executed.excess + *unexplained`.
///
/// Thread: immutable once published.
struct FLOPLEDGER_EXPORT StepReport {
  std::int64_t step = 0;
  StepResult result = StepResult::kComplete;
  /// `fence`, `lag`, `timeout` (device work); `next_boundary`, `exit`, `close`, `exception`
  std::string closed_by;
  StepBoundary boundary = StepBoundary::kHost;
  std::int64_t start_ns = 0;  ///< of the session's monotonic clock
  std::int64_t end_ns = 0;
  DurationNs wall;
  DurationNs excluded_before;   ///< time before the first boundary; in the first report only
  double end_unix_seconds = 0;  ///< wall-clock time of the end, for display only

  std::vector<DeviceTime> devices;
  std::array<DurationNs, kPhaseCount> op_time_by_phase{};  ///< sums: of kernels, else self times
  TokenCount tokens;

  ExecutedFlops executed;
  std::optional<DeclaredFlops> declared;
  std::optional<Flops> unexplained;  ///< e; absent without a declaration
  Flops peak_flops;                  ///< eligible peak x wall, rounded; zero without a peak
  Flops executed_equivalent;  ///< executed work in FLOPs of `peak_dtype`: sum of E_d x P / P_d
  DType peak_dtype = DType::kFloat32;

  Utilization utilization;
  Coverage coverage;
  std::vector<KernelTime> kernels;
  std::vector<CoverageGap> gaps;
  std::vector<Finding> findings;
  std::vector<WaterfallLine> waterfall;
  std::vector<LossRecord> losses;
  std::vector<TrainingValue> values;
  std::int64_t late_records = 0;
  std::int64_t unlaunched_kernels = 0;  ///< their launch is not known: placed by their start
  DurationNs overhead;                  ///< flopledger's own time on the worker for this step
  std::array<DurationNs, kOverheadKindCount> collector_overhead{};  ///< by `OverheadRecord::Kind`

  ConventionId convention;

  /// R as a share of executed work; absent when nothing was executed.
  std::optional<double> RecomputeRatio() const;
};

}  // namespace flopledger
