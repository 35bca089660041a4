#include <cmath>
#include <string>

#include "ledger/reconcile.h"

namespace flopledger {
namespace {

constexpr double kAbovePeak = 1.0;
constexpr double kMfuAboveHfu = 1.001;
constexpr double kFullCoverage = 0.98;
constexpr double kLowCoverage = 0.9;
constexpr double kExecutedBelowDeclared = 0.99;
constexpr double kUnexplained = 0.05;

/// Each cause of "executed less than declared" has its own ratio declared / executed.
std::string SuspectOf(double declared_over_executed, const StepReport& report) {
  if (report.tokens.padded == report.tokens.useful && declared_over_executed < 1.0) {
    return "executed more than declared: work outside of the formula";
  }
  if (std::abs(declared_over_executed - 1.5) < 0.03) {
    return "weights declared as trainable are frozen (ratio 1.5 on linear layers)";
  }
  if (std::abs(declared_over_executed - 3.0) < 0.05) {
    return "forward only: no backward ran, but training was declared";
  }
  if (std::abs(declared_over_executed - std::round(declared_over_executed)) < 0.01 &&
      declared_over_executed > 1.5) {
    return "tokens declared more than once (world size or accumulation counted twice)";
  }
  if (report.convention.name != "house") {
    return "a convention that counts masked pairs, while kernels skip them";
  }
  return "tokens declared that did not run: padding that kernels skip, or dropped tokens";
}

}  // namespace

std::vector<Finding> FindContradictions(const StepReport& report, const EligiblePeak& peak) {
  std::vector<Finding> findings;
  const Utilization& use = report.utilization;
  const double worst = std::max(use.mfu_ratio.value_or(0), use.hfu_low_ratio.value_or(0));
  if (worst > kAbovePeak) {
    const PeakRate* rate = peak.Find(peak.dtype);
    const bool measured = rate != nullptr && rate->evidence == PeakEvidence::kMeasured;
    findings.push_back({.id = "above_peak",
                        .ratio = worst,
                        .suspect = measured
                                       ? "the peak was measured while the machine was busy"
                                       : "wrong peak: device, form factor, dtype or sparsity"});
  }
  if (use.mfu_ratio && use.hfu_high_ratio && *use.hfu_high_ratio > 0 &&
      *use.mfu_ratio > *use.hfu_high_ratio * kMfuAboveHfu) {
    findings.push_back({.id = "mfu_above_hfu",
                        .ratio = *use.mfu_ratio / *use.hfu_high_ratio,
                        .suspect = SuspectOf(*use.mfu_ratio / *use.hfu_high_ratio, report)});
  }
  const double coverage = report.coverage.time_ratio.value_or(1.0);
  if (coverage < kLowCoverage) {
    findings.push_back(
        {.id = "coverage_gap",
         .ratio = coverage,
         .suspect = report.gaps.empty() ? "no names" : "no count for " + report.gaps.front().name});
  }
  if (report.declared && report.unexplained && report.executed.total.count() > 0) {
    const double executed = report.executed.total.ToDouble();
    const double needed = (report.declared->useful() + report.declared->padding).ToDouble();
    if (coverage >= kFullCoverage && executed < needed * kExecutedBelowDeclared) {
      findings.push_back({.id = "executed_below_declared",
                          .ratio = executed / needed,
                          .suspect = SuspectOf(needed / executed, report)});
    } else if (coverage >= kFullCoverage &&
               std::abs(report.unexplained->ToDouble()) > kUnexplained * executed) {
      findings.push_back({.id = "unexplained",
                          .ratio = report.unexplained->ToDouble() / executed,
                          .suspect = "matmuls that the declared formula does not know"});
    }
  }
  if (report.tokens.even_split && report.tokens.useful != report.tokens.padded) {
    findings.push_back({.id = "token_lengths_assumed",
                        .ratio = static_cast<double>(report.tokens.useful) /
                                 static_cast<double>(report.tokens.padded),
                        .suspect = "padding without lengths: give `seqlens` for exact attention"});
  }
  return findings;
}

void AddTimingFindings(const StepTimeline& timeline, std::vector<Finding>& findings) {
  if (timeline.clock_step) {
    findings.push_back({.id = "clock_stepped",
                        .ratio = DurationNs(timeline.clock_step->jump_ns).seconds(),
                        .suspect =
                            "the system clock was set (ratio: seconds); device times of this "
                            "step are not trusted, its interval is the host's"});
  }
  if (timeline.boundary_estimated) {
    findings.push_back({.id = "boundary_estimated",
                        .ratio = 1,
                        .suspect = "the device's mark of a step boundary was lost; kernels near it "
                                   "were placed by their start"});
  }
}

}  // namespace flopledger
