#include "export/prometheus_sink.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/clock.h"
#include "flopledger/causes.h"

namespace flopledger {
namespace {

template <typename Enum>
std::string Name(Enum value) {
  return std::string(ToString(value));
}

double SecondsSince(std::int64_t start_ns) {
  return static_cast<double>(SystemClock::Now() - start_ns) * 1e-9;
}

}  // namespace

void MetricsPage::Publish(MetricTable table, const RunIdentity& identity) {
  page_.Set(std::make_shared<const Page>(Page{std::move(table), identity.run_id, identity.rank}));
}

std::shared_ptr<const std::string> MetricsPage::Text() const {
  const auto page = page_.Get();
  if (page == nullptr) return std::make_shared<const std::string>();
  if (const auto rendered = rendered_.Get(); rendered != nullptr && rendered->page == page) {
    return rendered->text;
  }
  const std::int64_t start_ns = SystemClock::Now();
  auto text = std::make_shared<const std::string>(
      RenderPrometheusText(page->table, page->run_id, page->rank));
  rendered_.Set(std::make_shared<const Rendered>(Rendered{page, text}));
  // One HTTP thread asks; if two did, one addition might be lost, nothing else.
  render_seconds_.store(render_seconds() + SecondsSince(start_ns), std::memory_order_relaxed);
  return text;
}

Result<std::unique_ptr<PrometheusSink>> PrometheusSink::Create(PrometheusSinkOptions options) {
  if (options.window_steps < 1 || options.window_steps > 100'000) {
    return InvalidArgument(
        fmt::format("window_steps is {}; accepted: 1 to 100000", options.window_steps));
  }
  const auto& bounds = options.duration_bounds;
  if (bounds.size() > DefaultDurationBounds().size()) {
    return InvalidArgument(fmt::format("duration_bounds has {} values; accepted: at most {}",
                                       bounds.size(), DefaultDurationBounds().size()));
  }
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    if (!std::isfinite(bounds[i]) || bounds[i] <= (i == 0 ? 0 : bounds[i - 1])) {
      return InvalidArgument(fmt::format(
          "duration_bounds[{}] is {}; accepted: rising positive seconds", i, bounds[i]));
    }
  }
  return std::unique_ptr<PrometheusSink>(new PrometheusSink(std::move(options)));
}

PrometheusSink::PrometheusSink(PrometheusSinkOptions options)
    : options_(std::move(options)),
      table_(options_.duration_bounds.empty() ? DefaultDurationBounds()
                                              : std::span<const double>(options_.duration_bounds)),
      window_(static_cast<std::size_t>(options_.window_steps)),
      finding_ids_(kFindingIds.begin(), kFindingIds.end()) {}

void PrometheusSink::Open(const RunDescription& run) {
  run_ = run;
  has_declaration_ = !run.model.empty();
  std::vector<MetricSample> peaks;
  std::string device_model, peak_source, evidence = "unknown";
  for (const PeakRate& peak : run.peaks) {
    if (peak.sparse) continue;
    const std::string model = CleanLabelValue(peak.device_model);
    peaks.push_back({{model, Name(peak.dtype)}, peak.rate.value()});
    if (peak.dtype != run.peak_dtype || has_peak_) continue;
    has_peak_ = true;
    device_model = model;
    peak_source = CleanLabelValue(peak.source);
    evidence = Name(peak.evidence);
  }
  table_.SetGauges(Metric::kEligiblePeakFlopsPerSecond, std::move(peaks));
  table_.SetGauges(
      Metric::kConventionInfo,
      {{{CleanLabelValue(run.convention.name), fmt::format("{:016x}", run.convention.hash),
         Name(run.peak_dtype), evidence, CleanLabelValue(run.model, 128)},
        1}});
  if (has_peak_) table_.SetGauges(Metric::kDeviceInfo, {{{device_model, peak_source}, 1}});
  table_.SetGauges(Metric::kBuildInfo, {{{CleanLabelValue(run.version)}, 1}});
  table_.SetGauge(Metric::kWorldSize, run.identity.world_size);
  table_.SetGauge(Metric::kRunFinished, 0);
  SetTotals(totals_);
  PublishPage();
}

void PrometheusSink::Announce(const SessionState& state) {
  using Collector = SessionState::Collector;
  has_evidence_ = has_evidence_ || state.collector == Collector::kCounting;
  std::vector<MetricSample> states;
  const auto& names = EntryOf(Metric::kCollectorState).labels.front().values;
  states.reserve(names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    states.push_back({{std::string(names[i]), std::to_string(state.rung)},
                      i == static_cast<std::size_t>(state.collector) ? 1.0 : 0.0});
  }
  table_.SetGauges(Metric::kCollectorState, std::move(states));
  std::vector<MetricSample> capabilities;
  capabilities.reserve(state.capabilities.size());
  for (const Capability& capability : state.capabilities) {
    capabilities.push_back({{CleanLabelValue(capability.name), CleanLabelValue(capability.reason)},
                            capability.available ? 1.0 : 0.0});
  }
  table_.SetGauges(Metric::kCapability, std::move(capabilities));
  table_.SetGauge(Metric::kRunFinished, state.run_finished ? 1 : 0);
  if (state.collector == Collector::kDisabled) {
    window_.Clear();
    SetWindow();
    table_.SetGauges(Metric::kFinding, {});
  }
  SetTotals(totals_);
  PublishPage();
}

void PrometheusSink::Publish(const StepReport& report, const RunTotals& totals) {
  const std::int64_t start_ns = SystemClock::Now();
  has_declaration_ = has_declaration_ || report.declared.has_value();
  has_evidence_ = has_evidence_ || !report.kernels.empty() || !report.executed.parts.empty();
  has_peak_ = has_peak_ || report.peak_flops.count() > 0;
  totals_ = totals;
  SetTotals(totals_);
  if (report.result == StepResult::kComplete) {
    table_.Observe(report.wall.seconds());
    window_.Add(report);
    SetWindow();
  }
  SetReport(report);
  PublishPage();
  publish_seconds_ += SecondsSince(start_ns);
}

void PrometheusSink::Finish(const RunTotals& totals) {
  totals_ = totals;
  SetTotals(totals_);
  table_.SetGauge(Metric::kRunFinished, 1);
  PublishPage();
}

void PrometheusSink::SetWindow() {
  const WindowRatios ratios = window_.Ratios();
  table_.SetGauge(Metric::kWindowMfuRatio, ratios.mfu_ratio);
  table_.SetGauge(Metric::kWindowHfuRatio, ratios.hfu_low_ratio);
  table_.SetGauge(Metric::kWindowCoverageRatio, ratios.coverage_time_ratio);
}

void PrometheusSink::SetReport(const StepReport& report) {
  table_.SetGauge(Metric::kLastStep, static_cast<double>(report.step));
  if (report.end_unix_seconds > 0) {
    table_.SetGauge(Metric::kLastStepEndTimestampSeconds, report.end_unix_seconds);
  }
  const auto limit = static_cast<std::size_t>(EntryOf(Metric::kFinding).max_series);
  std::vector<bool> present(limit, false);
  for (const Finding& finding : report.findings) {
    const std::string id = CleanLabelValue(finding.id);
    auto known = std::find(finding_ids_.begin(), finding_ids_.end(), id);
    if (known == finding_ids_.end()) {
      // The last place gathers what is beyond the budget.
      if (finding_ids_.size() >= limit) {
        present[limit - 1] = true;
        continue;
      }
      known = finding_ids_.insert(known, finding_ids_.size() + 1 < limit ? id : "other");
    }
    present[static_cast<std::size_t>(known - finding_ids_.begin())] = true;
  }
  std::vector<MetricSample> findings;
  findings.reserve(finding_ids_.size());
  for (std::size_t i = 0; i < finding_ids_.size(); ++i) {
    findings.push_back({{finding_ids_[i]}, present[i] ? 1.0 : 0.0});
  }
  table_.SetGauges(Metric::kFinding, std::move(findings));
  std::vector<MetricSample> values;
  values.reserve(report.values.size());
  for (const TrainingValue& value : report.values) {
    values.push_back({{CleanLabelValue(value.name)}, value.value});
  }
  table_.SetGauges(Metric::kTrainingValue, std::move(values));
}

void PrometheusSink::PublishPage() {
  std::vector<MetricSample> overhead = {{{"worker"}, totals_.overhead.seconds()},
                                        {{"publish"}, publish_seconds_},
                                        {{"render"}, page_->render_seconds()}};
  for (std::size_t i = 0; i < kOverheadKindCount; ++i) {
    overhead.push_back({{"cupti_" + Name(static_cast<OverheadRecord::Kind>(i))},
                        totals_.collector_overhead[i].seconds()});
  }
  table_.SetCounters(Metric::kOverheadSeconds, overhead);
  page_->Publish(table_, run_.identity);
}

}  // namespace flopledger
