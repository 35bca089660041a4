// Whatever steps come, no counter falls and no page outgrows its budget.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "export/prometheus_sink.h"
#include "unit/export/exposition.h"

namespace flopledger {
namespace {

constexpr int kSteps = 100'000;

template <typename Enum>
Enum Any(std::mt19937_64& random, int count) {
  return static_cast<Enum>(random() % static_cast<unsigned>(count));
}

Flops AnyFlops(std::mt19937_64& random) {
  // Up to 1e25 a step, so that the totals pass 1e22 at once; at times nothing.
  if (random() % 5 == 0) return Flops();
  return Flops::FromInteger(Int128{1} * static_cast<std::int64_t>(random() >> 1) *
                            static_cast<std::int64_t>(random() % 1'000'000));
}

DurationNs AnyTime(std::mt19937_64& random) {
  return DurationNs(static_cast<std::int64_t>(random() % 10'000'000'000));
}

StepReport AnyStep(std::mt19937_64& random, std::int64_t step) {
  StepReport report;
  report.step = step;
  report.result = Any<StepResult>(random, 3);
  report.wall = AnyTime(random);
  report.excluded_before = random() % 50 == 0 ? AnyTime(random) : DurationNs();
  report.tokens.useful = static_cast<std::int64_t>(random() % 100'000);
  report.tokens.padded = report.tokens.useful + static_cast<std::int64_t>(random() % 1000);
  if (random() % 4 != 0) {
    report.declared = DeclaredFlops{AnyFlops(random), AnyFlops(random), AnyFlops(random)};
  }
  if (random() % 3 != 0) {
    report.unexplained = random() % 2 == 0 ? AnyFlops(random) : -AnyFlops(random);
  }
  report.executed.recomputed = AnyFlops(random);
  report.executed.auxiliary = AnyFlops(random);
  report.executed.excess = random() % 2 == 0 ? AnyFlops(random) : -AnyFlops(random);
  for (unsigned i = random() % 4; i > 0; --i) {
    report.executed.parts.push_back(
        {Any<DType>(random, 9), Any<FlopSource>(random, 5), AnyFlops(random)});
  }
  report.executed_equivalent = AnyFlops(random);
  report.peak_dtype = Any<DType>(random, 9);
  report.peak_flops = AnyFlops(random);
  DeviceTime device;
  for (auto& sections : device.by_state_and_section) sections[0] = AnyTime(random);
  report.devices = {device};
  for (unsigned i = random() % 6; i > 0; --i) {
    report.kernels.push_back({Any<OpClass>(random, 12), Any<CoverageKind>(random, 3),
                              static_cast<std::int64_t>(random() % 1000), AnyTime(random)});
  }
  for (unsigned i = random() % 3; i > 0; --i) {
    report.waterfall.push_back({"cause_" + std::to_string(random() % 60),
                                random() % 3 == 0 ? -AnyFlops(random) : AnyFlops(random), false});
    report.findings.push_back({"finding_" + std::to_string(random() % 60), 1.5, "x"});
    LossRecord loss;
    loss.where = Any<LossRecord::Where>(random, 5);
    loss.reason = Any<LossRecord::Reason>(random, 3);
    loss.count = static_cast<std::int64_t>(random() % 100);
    report.losses.push_back(loss);
    report.values.push_back(
        {"value_" + std::to_string(random() % 100), random() % 2 == 0 ? std::nan("") : -1.5});
  }
  report.utilization.mfu_ratio = 0.5;
  report.utilization.hfu_low_ratio = 0.5;
  report.late_records = static_cast<std::int64_t>(random() % 3);
  report.overhead = AnyTime(random);
  return report;
}

RunDescription WorstRun() {
  RunDescription run;
  run.identity.run_id = std::string(500, 'r');
  run.model = std::string(500, 'm');
  run.version = std::string(500, 'v');
  for (int i = 0; i < 50; ++i) {
    PeakRate peak;
    peak.device_model = std::string(100, 'd') + std::to_string(i);
    peak.dtype = static_cast<DType>(i % 9);
    peak.rate = FlopsPerSecond(1e12);
    peak.source = std::string(500, 's');
    run.peaks.push_back(peak);
  }
  return run;
}

SessionState WorstState() {
  SessionState state;
  state.collector = SessionState::Collector::kCounting;
  for (int i = 0; i < 100; ++i) {
    state.capabilities.push_back({"name_" + std::to_string(i), i % 2 == 0, "reason"});
  }
  return state;
}

TEST(ExportCountersPropertyTest, NoCounterFallsAndNoPageOutgrowsItsBudget) {
  std::mt19937_64 random(20);
  auto sink = *PrometheusSink::Create();
  RunTotals totals;
  sink->Open(WorstRun());
  sink->Announce(WorstState());
  std::map<std::pair<Metric, LabelValues>, double> last;
  for (int step = 0; step < kSteps; ++step) {
    const StepReport report = AnyStep(random, step);
    totals.Add(report);
    if (random() % 10 == 0) totals.Exclude("reason_" + std::to_string(random() % 9), DurationNs(7));
    sink->Publish(report, totals);
    const MetricTable& table = sink->table();
    ASSERT_LE(table.SeriesCount(), static_cast<std::size_t>(kMaxSeriesPerRank));
    for (const MetricEntry& entry : MetricCatalogue()) {
      ASSERT_LE(table.Samples(entry.metric).size(), static_cast<std::size_t>(entry.max_series));
      if (entry.type != MetricType::kCounter) continue;
      for (const MetricSample& sample : table.Samples(entry.metric)) {
        double& before = last[{entry.metric, sample.labels}];
        ASSERT_GE(sample.value, before) << entry.name << " at step " << step;
        before = sample.value;
      }
    }
  }
  // No series has gone, the sums passed 1e22, and the whole is still a page.
  std::size_t counters = 0;
  for (const MetricEntry& entry : MetricCatalogue()) {
    if (entry.type == MetricType::kCounter) counters += sink->table().Samples(entry.metric).size();
  }
  EXPECT_EQ(counters, last.size());
  EXPECT_GT(totals.ExecutedTotal().ToDouble(), 1e22);
  const std::string text = *sink->page()->Text();
  const auto page = testing_text::ReadExposition(text);
  for (const std::string& fault : page.faults) {
    EXPECT_TRUE(fault.starts_with("negative: flopledger_training_value")) << fault;
  }
  EXPECT_LE(page.series.size(), static_cast<std::size_t>(kMaxSeriesPerRank));
  EXPECT_LE(text.size(), 64U << 10);
}

// Folding into `other` loses nothing: the sum over the labels is the total.
TEST(ExportCountersPropertyTest, SumsOverLabelsAreTheTotals) {
  std::mt19937_64 random(21);
  auto sink = *PrometheusSink::Create();
  RunTotals totals;
  sink->Open(WorstRun());
  sink->Announce(WorstState());
  const auto sum = [&](Metric metric) {
    double value = 0;
    for (const MetricSample& sample : sink->table().Samples(metric)) value += sample.value;
    return value;
  };
  for (int step = 0; step < 2000; ++step) {
    const StepReport report = AnyStep(random, step);
    totals.Add(report);
    sink->Publish(report, totals);
    double lost = 0, dropped = 0;
    for (const auto& [cause, flops] : totals.lost_peak) lost += flops.ToDouble();
    for (const auto& [key, count] : totals.dropped) dropped += static_cast<double>(count);
    ASSERT_NEAR(sum(Metric::kExecutedFlops), totals.ExecutedTotal().ToDouble(),
                1e-12 * totals.ExecutedTotal().ToDouble());
    ASSERT_NEAR(sum(Metric::kLostPeakFlops), lost, 1e-12 * lost);
    ASSERT_EQ(sum(Metric::kDroppedRecords), dropped);
    DurationNs kernels;
    for (const auto& row : totals.kernel_time) {
      for (DurationNs time : row) kernels += time;
    }
    ASSERT_NEAR(sum(Metric::kKernelSeconds), kernels.seconds(), 1e-12 * kernels.seconds());
  }
}

}  // namespace
}  // namespace flopledger
