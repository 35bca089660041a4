#include "export/metric_catalogue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace flopledger {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(MetricCatalogueTest, KeepsItsOwnRules) {
  EXPECT_THAT(LintCatalogue(MetricCatalogue()), IsEmpty());
  ASSERT_EQ(MetricCatalogue().size(), kMetricCount);
  for (std::size_t i = 0; i < kMetricCount; ++i) {
    EXPECT_EQ(static_cast<std::size_t>(MetricCatalogue()[i].metric), i);
  }
}

// The names that dashboards and alerts are written against.
TEST(MetricCatalogueTest, HasTheNamesOfTheDesign) {
  std::vector<std::string> names;
  for (const MetricEntry& entry : MetricCatalogue()) {
    names.push_back(std::string(entry.name).substr(std::string("flopledger_").size()));
  }
  for (const char* name : {"useful_flops_total",
                           "executed_flops_total",
                           "recomputed_flops_total",
                           "auxiliary_flops_total",
                           "padding_flops_total",
                           "excess_flops_total",
                           "unexplained_flops_total",
                           "eligible_peak_flops_total",
                           "lost_peak_flops_total",
                           "step_wall_seconds_total",
                           "excluded_seconds_total",
                           "device_seconds_total",
                           "kernel_seconds_total",
                           "kernels_total",
                           "tokens_total",
                           "steps_total",
                           "dropped_records_total",
                           "late_records_total",
                           "overhead_seconds_total",
                           "step_duration_seconds",
                           "last_step",
                           "last_step_end_timestamp_seconds",
                           "run_finished",
                           "world_size",
                           "eligible_peak_flops_per_second",
                           "collector_state",
                           "capability",
                           "finding",
                           "training_value",
                           "convention_info",
                           "device_info",
                           "build_info",
                           "window_mfu_ratio",
                           "window_hfu_ratio",
                           "window_coverage_ratio"}) {
    EXPECT_THAT(names, Contains(name));
  }
}

TEST(MetricCatalogueTest, C59ReservedTargetLabelsAreFound) {
  std::vector<std::string> flagged;
  for (const char* name : {"run", "rank", "local_rank", "device", "dtype", "instance", "job",
                           "exported_job", "hostname"}) {
    if (!LintLabelName(name).empty()) flagged.emplace_back(name);
  }
  EXPECT_EQ(flagged, (std::vector<std::string>{"instance", "job", "exported_job"}));
}

TEST(MetricCatalogueTest, C58LabelNamesOutsideTheGrammarAreFound) {
  std::vector<std::string> flagged;
  for (const char* name : {"gpu-name", "__reserved", "1st", "run", "le", "Rank", ""}) {
    if (!LintLabelName(name).empty()) flagged.emplace_back(name);
  }
  EXPECT_EQ(flagged, (std::vector<std::string>{"gpu-name", "__reserved", "1st", "le", "Rank", ""}));
}

TEST(MetricCatalogueTest, LintNamesWhatIsWrong) {
  const MetricEntry wrong{Metric::kSteps,      MetricType::kGauge,
                          "mfu_percent_total", "",
                          "No full stop",      "",
                          {{"job", {}, ""}},   0};
  const MetricEntry wide{Metric::kSteps,
                         MetricType::kCounter,
                         "flopledger_wide_total",
                         "steps",
                         "Too many.",
                         "",
                         {},
                         201};
  const std::vector<MetricEntry> entries = {wrong, wide, wide};
  const std::vector<std::string> found = LintCatalogue(entries);
  for (const char* text :
       {"does not begin with flopledger_", "_total belongs to counters",
        "percent is not a base unit", "not a sentence", "no unit", "set by the server",
        "has no meaning", "no series", "twice", "402 series per rank; at most 200"}) {
    EXPECT_THAT(found, Contains(HasSubstr(text)));
  }
}

TEST(MetricCatalogueTest, TheDocumentIsUpToDate) {
  const auto path = std::filesystem::path(FLOPLEDGER_SOURCE_FOLDER) / "docs" / "metrics.md";
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_EQ(text.str(), RenderMetricsDoc()) << "run flopledger_metrics_doc > docs/metrics.md";
}

}  // namespace
}  // namespace flopledger
