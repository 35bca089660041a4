// What a closed step costs the worker at each outlet, and what a scrape costs the HTTP thread. None
// of it is on the training thread.
#include <benchmark/benchmark.h>

#include "export/jsonl_sink.h"
#include "export/live_sink.h"
#include "export/prometheus_sink.h"
#include "fakes/fake_run.h"

namespace flopledger {
namespace {

void PublishTo(benchmark::State& state, ReportSink* sink) {
  fakes::FakeRun run;
  sink->Open(run.description());
  sink->Announce(run.state());
  RunTotals totals;
  StepReport report;
  for (int i = 0; i < 10; ++i) {
    report = run.NextStep();
    totals.Add(report);
  }
  for (auto _ : state) sink->Publish(report, totals);
}

void PublishMetrics(benchmark::State& state) {
  auto sink = PrometheusSink::Create();
  PublishTo(state, sink->get());
  state.counters["series"] = static_cast<double>((*sink)->table().SeriesCount());
}
BENCHMARK(PublishMetrics);

void PublishLivePage(benchmark::State& state) {
  auto sink = LiveSink::Create();
  PublishTo(state, sink->get());
}
BENCHMARK(PublishLivePage);

void PublishStepLog(benchmark::State& state) {
  auto sink = JsonlSink::Create({.path = "/dev/null"});
  PublishTo(state, sink->get());
}
BENCHMARK(PublishStepLog);

// Every metric with as many series as it may have.
MetricTable FullTable() {
  MetricTable table(DefaultDurationBounds());
  for (const MetricEntry& entry : MetricCatalogue()) {
    std::vector<MetricSample> samples;
    for (int i = 0; i < entry.max_series; ++i) {
      MetricSample sample{.labels = {}, .value = 1.234567890123e21 + i};
      int rest = i;
      for (const MetricLabel& label : entry.labels) {
        const int count =
            label.values.empty() ? entry.max_series : static_cast<int>(label.values.size());
        sample.labels.push_back(label.values.empty() ? "a_name_of_some_length_" + std::to_string(i)
                                                     : std::string(label.values[rest % count]));
        rest /= count;
      }
      samples.push_back(std::move(sample));
    }
    if (entry.type == MetricType::kCounter) table.SetCounters(entry.metric, samples);
    if (entry.type == MetricType::kGauge) table.SetGauges(entry.metric, samples);
  }
  return table;
}

// The first scrape after a step; the next ones take the text that is there.
void RenderMetricsPage(benchmark::State& state) {
  const MetricTable table = FullTable();
  std::size_t bytes = 0;
  for (auto _ : state) bytes = RenderPrometheusText(table, "llama-7b-2026-11-29", 0).size();
  state.counters["bytes"] = static_cast<double>(bytes);
  state.counters["series"] = static_cast<double>(table.SeriesCount());
}
BENCHMARK(RenderMetricsPage);

}  // namespace
}  // namespace flopledger
