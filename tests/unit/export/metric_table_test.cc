#include "export/metric_table.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace flopledger {
namespace {

TEST(MetricTableTest, ACounterNeverFalls) {
  MetricTable table(DefaultDurationBounds());
  for (double value :
       {1.0, 3.0, 2.0, std::nan(""), -5.0, std::numeric_limits<double>::infinity()}) {
    table.SetCounter(Metric::kLateRecords, value);
  }
  ASSERT_EQ(table.Samples(Metric::kLateRecords).size(), 1U);
  EXPECT_EQ(table.Samples(Metric::kLateRecords)[0].value, 3);
}

// C51: 5000 names in a label, a budget of 12: 11 of them and one sum, and nothing is lost.
TEST(MetricTableTest, C51SeriesBeyondTheBudgetAreSummed) {
  MetricTable table(DefaultDurationBounds());
  std::vector<MetricSample> totals;
  for (int round = 1; round <= 3; ++round) {
    totals.clear();
    for (int i = 0; i < 5000; ++i) {
      totals.push_back({{"name_" + std::to_string(i), "full"}, 10.0 * round});
    }
    table.SetCounters(Metric::kDroppedRecords, totals);
    const auto& samples = table.Samples(Metric::kDroppedRecords);
    ASSERT_EQ(samples.size(),
              static_cast<std::size_t>(EntryOf(Metric::kDroppedRecords).max_series));
    double sum = 0;
    for (const MetricSample& sample : samples) sum += sample.value;
    EXPECT_EQ(sum, 50'000.0 * round);
    EXPECT_EQ(samples.front().labels[0], "name_0") << "the same names at every scrape";
    EXPECT_EQ(samples.back().labels, (LabelValues{"other", "other"}));
  }
}

TEST(MetricTableTest, AStrangerToAClosedSetIsOther) {
  MetricTable table(DefaultDurationBounds());
  table.SetCounters(Metric::kLostPeakFlops, {{{"data"}, 1}, {{"new_cause"}, 2}, {{"newer"}, 3}});
  const auto& samples = table.Samples(Metric::kLostPeakFlops);
  ASSERT_EQ(samples.size(), 2U);
  EXPECT_EQ(samples[1].labels[0], "other");
  EXPECT_EQ(samples[1].value, 5);
}

TEST(MetricTableTest, AClosedSetThatFitsNeedsNoOther) {
  MetricTable table(DefaultDurationBounds());
  table.SetCounters(Metric::kKernels, {{{"counted"}, 1}, {{"outside"}, 2}, {{"unknown"}, 3}});
  const auto& samples = table.Samples(Metric::kKernels);
  ASSERT_EQ(samples.size(), 3U);
  EXPECT_EQ(samples[2].labels[0], "unknown");
  EXPECT_EQ(samples[2].value, 3);
}

TEST(MetricTableTest, AnOrdinaryValueNamedOtherSharesTheSum) {
  MetricTable table(DefaultDurationBounds());
  table.SetCounters(
      Metric::kEligiblePeakFlops,
      {{{"fp32"}, 1}, {{"fp16"}, 2}, {{"bf16"}, 4}, {{"fp8"}, 8}, {{"other"}, 16}, {{"int8"}, 32}});
  const auto& samples = table.Samples(Metric::kEligiblePeakFlops);
  ASSERT_EQ(samples.size(), 4U);
  EXPECT_EQ(samples[3].labels[0], "other");
  EXPECT_EQ(samples[3].value, 8 + 16 + 32);
}

TEST(MetricTableTest, GaugesAreReplacedAndCut) {
  MetricTable table(DefaultDurationBounds());
  std::vector<MetricSample> values;
  for (int i = 0; i < 40; ++i) values.push_back({{"v" + std::to_string(i)}, 1.0 * i});
  values.insert(values.begin(), {{"bad"}, std::nan("")});
  table.SetGauges(Metric::kTrainingValue, values);
  EXPECT_EQ(table.Samples(Metric::kTrainingValue).size(), 16U);
  EXPECT_EQ(table.Samples(Metric::kTrainingValue)[0].labels[0], "v0");
  table.SetGauges(Metric::kTrainingValue, {{{"a"}, 1}, {{"a"}, 2}});
  EXPECT_EQ(table.Samples(Metric::kTrainingValue).size(), 1U) << "no series twice";
  table.SetGauge(Metric::kWindowMfuRatio, 0.4);
  table.SetGauge(Metric::kWindowMfuRatio, std::nullopt);
  EXPECT_TRUE(table.Samples(Metric::kWindowMfuRatio).empty());
}

TEST(MetricTableTest, BucketsIncludeTheirBound) {
  const double bounds[] = {0.1, 1};
  MetricTable table(bounds);
  for (double seconds : {0.05, 0.1, 0.100001, 1.0, 7.0, -1.0, std::nan("")}) table.Observe(seconds);
  const auto counts = table.duration_counts();
  ASSERT_EQ(counts.size(), 3U);
  EXPECT_EQ(counts[0], 2U);
  EXPECT_EQ(counts[1], 2U);
  EXPECT_EQ(counts[2], 1U);
  EXPECT_DOUBLE_EQ(table.duration_sum_seconds(), 0.05 + 0.1 + 0.100001 + 1.0 + 7.0);
}

TEST(CleanLabelValueTest, KeepsTextAndRepairsTheRest) {
  EXPECT_EQ(CleanLabelValue("na\xc3\xafve \xe2\x82\xac \xf0\x9f\x94\xa5"),
            "na\xc3\xafve \xe2\x82\xac \xf0\x9f\x94\xa5");
  EXPECT_EQ(CleanLabelValue(std::string("a\0b\tc\x7f", 6)), "a b c ");
  EXPECT_EQ(CleanLabelValue("line\nbreak \"q\" \\"), "line\nbreak \"q\" \\");
  const std::string bad = "\xEF\xBF\xBD";
  EXPECT_EQ(CleanLabelValue("\xff"), bad);
  EXPECT_EQ(CleanLabelValue("\xc0\x80"), bad + bad) << "overlong";
  EXPECT_EQ(CleanLabelValue("\xed\xa0\x80"), bad + bad + bad) << "surrogate";
  EXPECT_EQ(CleanLabelValue("\xf4\x90\x80\x80"), bad + bad + bad + bad) << "above U+10FFFF";
  EXPECT_EQ(CleanLabelValue("\xe2\x82"), bad + bad) << "cut";
  EXPECT_EQ(CleanLabelValue("ab\xe2\x82\xac", 4), "ab") << "never half a character";
  EXPECT_EQ(CleanLabelValue("", 4), "");
}

}  // namespace
}  // namespace flopledger
