#include <fmt/format.h>

#include <cctype>
#include <set>

#include "export/metric_catalogue.h"

namespace flopledger {
namespace {

bool IsSnakeName(std::string_view name) {
  if (name.empty() || std::islower(static_cast<unsigned char>(name.front())) == 0) return false;
  for (char c : name) {
    const auto u = static_cast<unsigned char>(c);
    if (std::islower(u) == 0 && std::isdigit(u) == 0 && c != '_') return false;
  }
  return true;
}

void LintName(const MetricEntry& entry, std::vector<std::string>* wrong) {
  if (!IsSnakeName(entry.name)) wrong->push_back(fmt::format("{}: not snake_case", entry.name));
  if (!entry.name.starts_with("flopledger_")) {
    wrong->push_back(fmt::format("{}: does not begin with flopledger_", entry.name));
  }
  const bool total = entry.name.ends_with("_total");
  if (total != (entry.type == MetricType::kCounter)) {
    wrong->push_back(fmt::format("{}: _total belongs to counters, and to all of them", entry.name));
  }
  for (std::string_view unit : {"percent", "milliseconds", "_ms", "tflops"}) {
    if (entry.name.find(unit) != std::string_view::npos) {
      wrong->push_back(fmt::format("{}: {} is not a base unit", entry.name, unit));
    }
  }
  if (entry.help.empty() || !entry.help.ends_with('.')) {
    wrong->push_back(fmt::format("{}: the help is not a sentence", entry.name));
  }
  if (entry.unit.empty()) wrong->push_back(fmt::format("{}: no unit", entry.name));
}

}  // namespace

std::string LintLabelName(std::string_view name) {
  if (name == "instance" || name == "job" || name.starts_with("exported_")) {
    return fmt::format("label '{}' is set by the server at scrape", name);
  }
  if (name == "le" || name == "quantile" || name.starts_with("__")) {
    return fmt::format("label '{}' is reserved by the format", name);
  }
  if (!IsSnakeName(name)) return fmt::format("label '{}' is not snake_case", name);
  return {};
}

std::vector<std::string> LintCatalogue(std::span<const MetricEntry> entries) {
  std::vector<std::string> wrong;
  std::set<std::string_view> names;
  int series = 0;
  for (const MetricEntry& entry : entries) {
    LintName(entry, &wrong);
    if (!names.insert(entry.name).second) wrong.push_back(fmt::format("{}: twice", entry.name));
    for (const MetricLabel& label : entry.labels) {
      if (std::string text = LintLabelName(label.name); !text.empty()) {
        wrong.push_back(fmt::format("{}: {}", entry.name, text));
      }
      if (label.name == "run_id" || label.name == "rank") {
        wrong.push_back(fmt::format("{}: {} is on every series already", entry.name, label.name));
      }
      if (label.meaning.empty()) {
        wrong.push_back(fmt::format("{}: label {} has no meaning", entry.name, label.name));
      }
    }
    if (entry.max_series < 1) wrong.push_back(fmt::format("{}: no series", entry.name));
    series += entry.max_series;
  }
  if (series > kMaxSeriesPerRank) {
    wrong.push_back(fmt::format("{} series per rank; at most {}", series, kMaxSeriesPerRank));
  }
  return wrong;
}

std::string RenderMetricsDoc() {
  std::string text =
      "# Metrics\n\n"
      "Made from the catalogue in `src/export/metric_catalogue.cc` by `flopledger_metrics_doc`; "
      "do not edit.\n\n"
      "Every series also has `run_id` and `rank`. What is not known has no sample: there is no "
      "NaN, no infinity and no negative stand-in. Every counter of a rank advances in one step "
      "when a training step closes, is there at 0 before the first step, and never falls within "
      "a process.\n\n";
  int series = 0;
  for (const MetricEntry& entry : MetricCatalogue()) series += entry.max_series;
  text +=
      fmt::format("A rank has at most {} series ({} is the limit).\n\n", series, kMaxSeriesPerRank);
  text += "| name | type | unit | labels | series | meaning | no sample |\n";
  text += "|---|---|---|---|---|---|---|\n";
  for (const MetricEntry& entry : MetricCatalogue()) {
    std::string labels;
    for (const MetricLabel& label : entry.labels) {
      if (!labels.empty()) labels += ", ";
      labels += fmt::format("`{}`", label.name);
    }
    text += fmt::format("| `{}` | {} | {} | {} | {} | {} | {} |\n", entry.name,
                        ToString(entry.type), entry.unit, labels, entry.max_series, entry.help,
                        entry.absent.empty() ? "never" : entry.absent);
  }
  text += "\n## Labels\n\n| metric | label | values |\n|---|---|---|\n";
  for (const MetricEntry& entry : MetricCatalogue()) {
    for (const MetricLabel& label : entry.labels) {
      std::string values;
      for (std::string_view value : label.values) {
        values += fmt::format("{}`{}`", values.empty() ? "" : " ", value);
      }
      text += fmt::format("| `{}` | `{}` | {}{}{} |\n", entry.name, label.name, label.meaning,
                          values.empty() ? "" : ": ", values);
    }
  }
  text += "\n## Buckets of `flopledger_step_duration_seconds`\n\n";
  for (double bound : DefaultDurationBounds()) text += fmt::format("`{}` ", bound);
  text += "`+Inf` (seconds)\n";
  return text;
}

}  // namespace flopledger
