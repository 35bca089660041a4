#include "export/metric_table.h"

#include <algorithm>
#include <cmath>

namespace flopledger {
namespace {

constexpr std::string_view kOther = "other";

MetricSample* FindSample(std::vector<MetricSample>* samples, const LabelValues& labels) {
  for (MetricSample& sample : *samples) {
    if (sample.labels == labels) return &sample;
  }
  return nullptr;
}

// Do the closed sets of the labels have a place for every combination?
bool HasPlaceForAll(const MetricEntry& entry) {
  std::size_t combinations = 1;
  for (const MetricLabel& label : entry.labels) combinations *= label.values.size();
  return combinations > 0 && combinations <= static_cast<std::size_t>(entry.max_series);
}

bool IsInClosedSets(const MetricEntry& entry, const LabelValues& labels) {
  for (std::size_t i = 0; i < entry.labels.size(); ++i) {
    const auto& values = entry.labels[i].values;
    if (std::find(values.begin(), values.end(), labels[i]) == values.end()) return false;
  }
  return true;
}

bool IsCounterValue(double value) { return std::isfinite(value) && value >= 0; }

// Length of the UTF-8 character at the start of `text`, or 0 if there is none.
std::size_t Utf8Length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  std::size_t length = 0;
  std::uint32_t code = 0;
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
    code = first & 0x1FU;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    code = first & 0x0FU;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    code = first & 0x07U;
  }
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return 0;
    code = (code << 6) | (byte(i) & 0x3FU);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
  return overlong || surrogate || code > 0x10FFFF ? 0 : length;
}

}  // namespace

MetricTable::MetricTable(std::span<const double> duration_bounds)
    : bounds_(duration_bounds.begin(), duration_bounds.end()), counts_(bounds_.size() + 1) {}

void MetricTable::SetCounters(Metric metric, const std::vector<MetricSample>& totals) {
  std::vector<MetricSample>& samples = samples_[static_cast<std::size_t>(metric)];
  const MetricEntry& entry = EntryOf(metric);
  const LabelValues other(entry.labels.size(), std::string(kOther));
  const auto budget = static_cast<std::size_t>(entry.max_series);
  const bool place_for_all = HasPlaceForAll(entry);
  double folded = 0;
  bool folds = false;
  for (const MetricSample& total : totals) {
    if (!IsCounterValue(total.value)) continue;
    MetricSample* sample = total.labels == other ? nullptr : FindSample(&samples, total.labels);
    if (sample != nullptr) {
      sample->value = std::max(sample->value, total.value);
      continue;
    }
    // Where not everything has a place, the last one is kept for the sum of the rest.
    const bool has_place =
        place_for_all ? IsInClosedSets(entry, total.labels) : samples.size() + 1 < budget;
    if (total.labels != other && has_place) {
      samples.push_back(total);
      continue;
    }
    folded += total.value;
    folds = true;
  }
  if (!folds) return;  // `other` of an unlabelled metric is its one series
  MetricSample* rest = FindSample(&samples, other);
  if (rest == nullptr) {
    if (samples.size() < budget) samples.push_back({other, folded});
  } else {
    rest->value = std::max(rest->value, folded);
  }
}

void MetricTable::SetGauges(Metric metric, std::vector<MetricSample> values) {
  const auto budget = static_cast<std::size_t>(EntryOf(metric).max_series);
  std::vector<MetricSample>& samples = samples_[static_cast<std::size_t>(metric)];
  samples.clear();
  for (MetricSample& value : values) {
    if (samples.size() >= budget) break;
    if (!std::isfinite(value.value) || FindSample(&samples, value.labels) != nullptr) continue;
    samples.push_back(std::move(value));
  }
}

void MetricTable::SetGauge(Metric metric, std::optional<double> value) {
  std::vector<MetricSample> values;
  if (value) values.push_back({{}, *value});
  SetGauges(metric, std::move(values));
}

void MetricTable::Observe(double seconds) {
  if (!IsCounterValue(seconds)) return;
  const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), seconds);
  ++counts_[static_cast<std::size_t>(bucket - bounds_.begin())];
  duration_sum_seconds_ += seconds;
}

std::size_t MetricTable::SeriesCount() const {
  std::size_t count = counts_.size() + 2;
  for (const auto& samples : samples_) count += samples.size();
  return count;
}

std::string CleanLabelValue(std::string_view text, std::size_t max_bytes) {
  std::string clean;
  while (!text.empty()) {
    std::size_t length = Utf8Length(text);
    std::string_view character = text.substr(0, length);
    if (length == 0) {
      length = 1;
      character = "\xEF\xBF\xBD";
    } else if (length == 1 && text[0] != '\n' &&
               (static_cast<unsigned char>(text[0]) < 0x20 || text[0] == 0x7F)) {
      character = " ";
    }
    if (clean.size() + character.size() > max_bytes) break;
    clean += character;
    text.remove_prefix(length);
  }
  return clean;
}

}  // namespace flopledger
