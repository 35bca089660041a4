#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "flopledger/records.h"
#include "flopledger/step_report.h"
#include "flopledger/units.h"

namespace flopledger {

/// All ops of one step with one signature in one phase.
struct OpSum {
  SignatureId signature = kOverflowSignature;
  Phase phase = Phase::kForward;
  OpClass op_class = OpClass::kUnknown;
  std::int64_t launches = 0;
  DurationNs self_time;
};

/// All device work of one step of one signature that one op launched in one phase.
struct KernelSum {
  KernelId kernel = kOverflowKernel;
  SignatureId op = kOverflowSignature;  ///< only with `op_known`
  Phase phase = Phase::kForward;
  OpClass op_class = OpClass::kUnknown;  ///< by the rule for the kernel's name
  bool op_known = false;
  std::int64_t launches = 0;
  DurationNs time;  ///< sum of durations
};

/// Work that users' own formulas declared for a step.
struct DeclaredSum {
  Flops forward;
  Flops backward;
  std::int64_t tokens = 0;
};

/// One closed step on one clock: what the ledger reconciles. A value; nothing of the records is
/// left but sums and times.
struct StepTimeline {
  std::int64_t step = 0;
  bool complete = true;
  std::string closed_by;
  StepBoundary boundary = StepBoundary::kHost;  ///< what `end_ns` is the time of
  std::int64_t start_ns = 0;                    ///< the end of the step before
  std::int64_t end_ns = 0;
  DurationNs excluded_before;  ///< of the first step: time since the session began

  std::vector<DeviceTime> devices;
  std::vector<OpSum> ops;                     ///< sorted by signature, then phase
  std::vector<KernelSum> kernels;             ///< sorted by kernel, then op, phase, class
  std::int64_t unlaunched_kernels = 0;        ///< their launch is not known: placed by their start
  bool boundary_estimated = false;            ///< the fence of its end was lost: put by start times
  std::optional<ClockStepRecord> clock_step;  ///< device times of the step are not trusted
  std::array<DurationNs, kOverheadKindCount> collector_overhead{};  ///< by `OverheadRecord::Kind`
  std::vector<TokenRecord> tokens;  ///< equal rows summed up, sorted
  std::optional<DeclaredSum> declared;
  std::vector<ValueRecord> values;  ///< the last one of each name
  std::vector<LossRecord> losses;
  std::int64_t late_records = 0;
  bool declaration_lost = false;  ///< marks were lost: the tokens may be incomplete

  DurationNs wall() const { return DurationNs(end_ns - start_ns); }
};

}  // namespace flopledger
