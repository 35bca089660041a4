#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace flopledger {

/// Every metric of the page, in the order of the page.
enum class Metric : std::uint8_t {
  kUsefulFlops,
  kExecutedFlops,
  kRecomputedFlops,
  kAuxiliaryFlops,
  kPaddingFlops,
  kExcessFlops,
  kUnexplainedFlops,
  kEligiblePeakFlops,
  kLostPeakFlops,
  kStepWallSeconds,
  kExcludedSeconds,
  kDeviceSeconds,
  kKernelSeconds,
  kKernels,
  kTokens,
  kSteps,
  kDroppedRecords,
  kLateRecords,
  kOverheadSeconds,
  kStepDurationSeconds,
  kWindowMfuRatio,
  kWindowHfuRatio,
  kWindowCoverageRatio,
  kLastStep,
  kLastStepEndTimestampSeconds,
  kRunFinished,
  kWorldSize,
  kEligiblePeakFlopsPerSecond,
  kCollectorState,
  kCapability,
  kFinding,
  kTrainingValue,
  kConventionInfo,
  kDeviceInfo,
  kBuildInfo,
};
inline constexpr std::size_t kMetricCount = 35;

enum class MetricType : std::uint8_t { kCounter, kGauge, kHistogram };

std::string_view ToString(MetricType type);

/// A label beyond `run_id` and `rank`, and what it may say.
struct MetricLabel {
  std::string_view name;
  std::vector<std::string_view> values;  ///< closed set; empty: `meaning` says what it holds
  std::string_view meaning;
};

/// One metric: what the HELP line, docs/metrics.md and the lint are made from.
struct MetricEntry {
  Metric metric;
  MetricType type;
  std::string_view name;  ///< whole, with `flopledger_`
  std::string_view unit;  ///< `FLOPs`, `seconds`, `ratio`, ...
  std::string_view help;
  std::string_view absent;  ///< when it has no sample; empty: it always has one
  std::vector<MetricLabel> labels;
  int max_series;  ///< per rank; of a histogram with its buckets, sum and count
};

/// The one list of metrics, indexed by `Metric`. Thread: immutable.
const std::vector<MetricEntry>& MetricCatalogue();
const MetricEntry& EntryOf(Metric metric);

/// Series that one rank may have, whatever happens.
inline constexpr int kMaxSeriesPerRank = 200;

/// Bounds of the step histogram in seconds; `+Inf` is added by the format.
std::span<const double> DefaultDurationBounds();

/// What is wrong with a label name (reserved by the server or by the format, or not a name), or
/// empty.
std::string LintLabelName(std::string_view name);
/// Everything that is wrong with a catalogue: names, units, suffixes, labels, the series budget.
std::vector<std::string> LintCatalogue(std::span<const MetricEntry> entries);

/// docs/metrics.md.
std::string RenderMetricsDoc();

}  // namespace flopledger
