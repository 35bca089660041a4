#pragma once

#include <cstdint>
#include <random>

#include "flopledger/report_sink.h"
#include "flopledger/step_report.h"

namespace flopledger::fakes {

/// A run that never was: reports that balance, for tests and demos of what reads them.
///
///     FakeRun run(/*seed=*/1);
///     sink.Open(run.description());
///     StepReport report = run.NextStep();
///
/// Every report keeps `E = U + R + A + P + X + e`, its device states sum to the wall time, its
/// waterfall to the peak.
class FakeRun {
 public:
  explicit FakeRun(std::uint64_t seed = 1);

  const RunDescription& description() const { return description_; }
  SessionState state() const;
  /// The first one is a warmup step.
  StepReport NextStep();

 private:
  double Noise(double spread);

  RunDescription description_;
  std::mt19937_64 random_;
  std::int64_t step_ = 0;
  std::int64_t now_ns_ = 1'000'000'000;
};

}  // namespace flopledger::fakes
