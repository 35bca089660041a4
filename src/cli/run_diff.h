#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/ink.h"
#include "cli/run_report.h"

namespace flopledger::cli {

/// What the times of two runs are compared by. Tokens where both declare them: a step with half the
/// tokens is no speed-up.
enum class DiffUnit { kToken, kStep };

/// Something of the way of counting that differs. It moves a ratio and is not a change of speed.
struct ChangedTerm {
  std::string what;  ///< `peak`, `peak_dtype`, `device`, `convention`, `formula`, `tokens`, `ranks`
  std::string before;
  std::string after;
};

/// Time of one cause in each run, per unit; the causes sum to the time of a unit.
struct CauseChange {
  std::string cause;
  double before_seconds = 0;
  double after_seconds = 0;
  double change_seconds() const { return after_seconds - before_seconds; }
};

/// The one cause of all matmul work where the runs have different peaks: its split into useful
/// work, recomputation and so on would change with the peak alone.
inline constexpr const char* kMatmulWork = "matmul_work";

/// A kernel class in each run, per unit.
struct ClassChange {
  OpClass op_class = OpClass::kUnknown;
  double before_seconds = 0;
  double after_seconds = 0;
};

enum class SpeedVerdict { kFaster, kSlower, kWithinNoise, kUnknown };

/// Run `after` against run `before`.
///
/// MFU = FLOPs per unit / (peak x time per unit), so that its change is the product of three
/// factors; only `speed_factor` is a change of speed.
struct RunDiff {
  DiffUnit unit = DiffUnit::kStep;
  double before_seconds = 0;  ///< per unit
  double after_seconds = 0;
  double noise_ratio = 0;  ///< two standard errors of the change, as a share of `before_seconds`
  double before_step_deviation_ratio = 0;  ///< of single steps: how far they scatter
  double after_step_deviation_ratio = 0;
  SpeedVerdict verdict = SpeedVerdict::kUnknown;
  std::vector<ChangedTerm> terms;
  std::optional<double> mfu_factor;
  std::optional<double> speed_factor;  ///< above 1: faster
  std::optional<double> work_factor;   ///< declared FLOPs per unit
  std::optional<double> peak_factor;   ///< what a higher peak takes from MFU: before / after
  bool by_waterfall = false;           ///< else by state of the devices: a run has no peak
  std::vector<CauseChange> causes;     ///< the largest change first
  std::vector<ClassChange> classes;
  std::vector<std::string> new_gaps;  ///< names that only `after` has
  std::vector<std::string> gone_gaps;

  double change_ratio() const {
    return before_seconds > 0 ? after_seconds / before_seconds - 1 : 0;
  }
};

/// Pure. Thread: any. Fails: never.
RunDiff CompareRuns(const RunReport& before, const RunReport& after);

std::string WriteText(const RunDiff& diff, const RunReport& before, const RunReport& after,
                      const Ink& ink);
/// One object for programs; keys in docs/cli.md.
std::string WriteJson(const RunDiff& diff, const RunReport& before, const RunReport& after);

}  // namespace flopledger::cli
