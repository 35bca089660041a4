// The only source that sees prometheus-cpp.
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <sstream>

#include "export/metric_table.h"

namespace flopledger {
namespace {

prometheus::MetricType TypeOf(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return prometheus::MetricType::Counter;
    case MetricType::kHistogram:
      return prometheus::MetricType::Histogram;
    case MetricType::kGauge:
      break;
  }
  return prometheus::MetricType::Gauge;
}

prometheus::ClientMetric WithIdentity(const std::string& run_id, const std::string& rank) {
  prometheus::ClientMetric metric;
  metric.label.push_back({"run_id", run_id});
  metric.label.push_back({"rank", rank});
  return metric;
}

prometheus::ClientMetric::Histogram DurationHistogram(const MetricTable& table) {
  prometheus::ClientMetric::Histogram histogram;
  const auto bounds = table.duration_bounds();
  const auto counts = table.duration_counts();
  for (std::size_t i = 0; i < counts.size(); ++i) {
    histogram.sample_count += counts[i];
    if (i < bounds.size()) histogram.bucket.push_back({histogram.sample_count, bounds[i]});
  }
  histogram.sample_sum = table.duration_sum_seconds();
  return histogram;
}

}  // namespace

std::string RenderPrometheusText(const MetricTable& table, std::string_view run_id, int rank) {
  const std::string run_text = CleanLabelValue(run_id);
  const std::string rank_text = std::to_string(rank);
  std::vector<prometheus::MetricFamily> families;
  families.reserve(kMetricCount);
  for (const MetricEntry& entry : MetricCatalogue()) {
    prometheus::MetricFamily family;
    family.name = entry.name;
    family.help = entry.help;
    family.type = TypeOf(entry.type);
    if (entry.type == MetricType::kHistogram) {
      family.metric.push_back(WithIdentity(run_text, rank_text));
      family.metric.back().histogram = DurationHistogram(table);
    }
    for (const MetricSample& sample : table.Samples(entry.metric)) {
      prometheus::ClientMetric metric = WithIdentity(run_text, rank_text);
      for (std::size_t i = 0; i < entry.labels.size() && i < sample.labels.size(); ++i) {
        metric.label.push_back({std::string(entry.labels[i].name), sample.labels[i]});
      }
      (entry.type == MetricType::kCounter ? metric.counter.value : metric.gauge.value) =
          sample.value;
      family.metric.push_back(std::move(metric));
    }
    if (!family.metric.empty()) families.push_back(std::move(family));
  }
  std::ostringstream out;
  prometheus::TextSerializer().Serialize(out, families);
  return std::move(out).str();
}

}  // namespace flopledger
