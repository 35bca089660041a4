#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "export/metric_catalogue.h"

namespace flopledger {

using LabelValues = std::vector<std::string>;

/// One series of a metric and its value.
struct MetricSample {
  LabelValues labels;  ///< in the order of the catalogue, without `run_id` and `rank`
  double value = 0;
};

/// The values of a page: plain data, copied into a snapshot at each step.
///
///     MetricTable table(DefaultDurationBounds());
///     table.SetCounters(Metric::kUsefulFlops, {{{"forward"}, 1e12}, {{"backward"}, 2e12}});
///
/// Keeps what every page must keep: no counter falls, nothing is NaN, infinite or (as a counter)
/// negative, and no metric has more series than its catalogue entry allows.
///
/// Thread: a value. Fails: never; values that are not numbers are left out.
class MetricTable {
 public:
  explicit MetricTable(std::span<const double> duration_bounds);

  /// Sets counters of one metric to their totals. Series beyond the budget are summed into one
  /// whose labels all say `other`. A counter that was set once stays.
  void SetCounters(Metric metric, const std::vector<MetricSample>& totals);
  void SetCounter(Metric metric, double total) { SetCounters(metric, {{{}, total}}); }
  /// Replaces all series of a gauge; what is over the budget or not finite is left out.
  void SetGauges(Metric metric, std::vector<MetricSample> values);
  /// Sets a gauge without labels; unknown is no sample.
  void SetGauge(Metric metric, std::optional<double> value);
  /// Adds to `step_duration_seconds`.
  void Observe(double seconds);

  const std::vector<MetricSample>& Samples(Metric metric) const {
    return samples_[static_cast<std::size_t>(metric)];
  }
  std::span<const double> duration_bounds() const { return bounds_; }
  /// Per bucket, not cumulative; the last one is above all bounds.
  std::span<const std::uint64_t> duration_counts() const { return counts_; }
  double duration_sum_seconds() const { return duration_sum_seconds_; }
  /// Lines of the page.
  std::size_t SeriesCount() const;

 private:
  std::array<std::vector<MetricSample>, kMetricCount> samples_;
  std::vector<double> bounds_;
  std::vector<std::uint64_t> counts_;
  double duration_sum_seconds_ = 0;
};

/// Text that can be a label value: valid UTF-8 (what is not is replaced by U+FFFD), control
/// characters except newline replaced by spaces, cut to `max_bytes` between characters. Quotes,
/// backslashes and newlines stay; the format escapes them.
std::string CleanLabelValue(std::string_view text, std::size_t max_bytes = 64);

/// The page in the Prometheus text format 0.0.4.
std::string RenderPrometheusText(const MetricTable& table, std::string_view run_id, int rank);

}  // namespace flopledger
