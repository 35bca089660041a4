#include "cli/html_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "cli/run_report_text.h"
#include "cli/shipped_files.h"

namespace flopledger::cli {
namespace {

using Json = nlohmann::ordered_json;

/// More would not fit on a screen, and would only make the file large.
constexpr std::size_t kChartPoints = 600;
constexpr std::size_t kLaneCells = 160;
constexpr std::size_t kLanes = 24;
constexpr std::size_t kGaps = 20;

std::string Escape(std::string_view text) {
  std::string escaped;
  for (const char each : text) {
    switch (each) {
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '&':
        escaped += "&amp;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += each;
    }
  }
  return escaped;
}

/// A script element ends at the first `</script` whatever stands around it: no `<` in data.
std::string DataElement(const Json& json) {
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  std::string safe;
  safe.reserve(text.size());
  for (const char each : text) {
    if (each == '<') {
      safe += "\\u003c";
    } else {
      safe += each;
    }
  }
  return safe;
}

/// Mean over the steps of a bin by their length, which is the ratio of sums where the peak is one;
/// nothing if a step has none.
class WeightedRatio {
 public:
  void Add(const std::optional<double>& ratio, double weight) {
    if (!ratio) {
      known_ = false;
      return;
    }
    sum_ += *ratio * weight;
    weight_ += weight;
  }
  Json Value() const { return known_ && weight_ > 0 ? Json(sum_ / weight_) : Json(nullptr); }

 private:
  bool known_ = true;
  double sum_ = 0;
  double weight_ = 0;
};

Json PointsJson(const RunReport& report) {
  std::vector<const GlobalStep*> steps;
  for (const GlobalStep& step : report.steps) {
    if (step.result == StepResult::kComplete) steps.push_back(&step);
  }
  const std::size_t each =
      std::max<std::size_t>(1, (steps.size() + kChartPoints - 1) / kChartPoints);
  Json points = Json::array();
  for (std::size_t from = 0; from < steps.size(); from += each) {
    const std::size_t to = std::min(from + each, steps.size());
    WeightedRatio mfu, low, high, coverage;
    std::int64_t wall_ns = 0;
    std::int64_t longest_ns = 0;
    for (std::size_t i = from; i < to; ++i) {
      const double weight = steps[i]->wall().seconds();
      mfu.Add(steps[i]->ratios.mfu, weight);
      low.Add(steps[i]->ratios.hfu_low, weight);
      high.Add(steps[i]->ratios.hfu_high, weight);
      coverage.Add(steps[i]->ratios.coverage_time, weight);
      wall_ns += steps[i]->wall().ns();
      longest_ns = std::max(longest_ns, steps[i]->wall().ns());
    }
    points.push_back({{"step", steps[to - 1]->step},
                      {"first_step", steps[from]->step},
                      {"mfu_ratio", mfu.Value()},
                      {"hfu_low_ratio", low.Value()},
                      {"hfu_high_ratio", high.Value()},
                      {"coverage_time_ratio", coverage.Value()},
                      {"wall_ns", wall_ns / static_cast<std::int64_t>(to - from)},
                      {"longest_ns", longest_ns}});
  }
  return points;
}

struct Cell {
  std::int64_t start_ns = INT64_MAX;
  std::int64_t end_ns = INT64_MIN;
  std::int64_t first_step = 0;
  std::int64_t last_step = 0;
  std::array<std::int64_t, kDeviceStateCount> state_ns{};
};

Json CellJson(const Cell& cell, std::int64_t origin_ns) {
  Json states = Json::array();
  for (const std::int64_t ns : cell.state_ns) states.push_back(ns);
  return {{"start_ns", cell.start_ns - origin_ns},
          {"end_ns", cell.end_ns - origin_ns},
          {"first_step", cell.first_step},
          {"last_step", cell.last_step},
          {"state_ns", std::move(states)}};
}

Json LaneJson(const RankLog& log, std::size_t device_index, std::size_t each,
              std::int64_t origin_ns) {
  Json cells = Json::array();
  for (std::size_t from = 0; from < log.steps.size(); from += each) {
    Cell cell;
    for (std::size_t i = from; i < std::min(from + each, log.steps.size()); ++i) {
      const PlacedStep& step = log.steps[i];
      if (device_index >= step.report.devices.size()) continue;
      if (cell.end_ns == INT64_MIN) cell.first_step = step.report.step;
      cell.last_step = step.report.step;
      cell.start_ns = std::min(cell.start_ns, step.start_ns);
      cell.end_ns = std::max(cell.end_ns, step.end_ns);
      for (std::size_t state = 0; state < kDeviceStateCount; ++state) {
        cell.state_ns[state] +=
            step.report.devices[device_index].InState(static_cast<DeviceState>(state)).ns();
      }
    }
    if (cell.end_ns != INT64_MIN) cells.push_back(CellJson(cell, origin_ns));
  }
  return cells;
}

Json LanesJson(const RunReport& report, std::size_t* left_out) {
  std::vector<std::size_t> order(report.logs.ranks.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (order.size() > kLanes) {  // the slow ones are what one looks for
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return report.ranks[a].own_over_ratio > report.ranks[b].own_over_ratio;
    });
  }
  std::int64_t origin_ns = INT64_MAX;
  std::size_t longest = 1;
  for (const RankLog& log : report.logs.ranks) {
    longest = std::max(longest, log.steps.size());
    for (const PlacedStep& step : log.steps) origin_ns = std::min(origin_ns, step.start_ns);
  }
  const std::size_t each = (longest + kLaneCells - 1) / kLaneCells;
  Json lanes = Json::array();
  *left_out = 0;
  for (const std::size_t index : order) {
    const RankLog& log = report.logs.ranks[index];
    std::size_t devices = 0;
    for (const PlacedStep& step : log.steps)
      devices = std::max(devices, step.report.devices.size());
    for (std::size_t device = 0; device < devices; ++device) {
      if (lanes.size() >= kLanes) {
        ++*left_out;
        continue;
      }
      lanes.push_back({{"rank", log.run.identity.rank},
                       {"device", device},
                       {"devices", devices},
                       {"cells", LaneJson(log, device, each, origin_ns)}});
    }
  }
  return lanes;
}

Json PageJson(const RunReport& report) {
  Json json = Json::parse(WriteJson(report, /*with_steps=*/false));
  Json& gaps = json["gaps"];
  json["gaps_left_out"] = gaps.size() > kGaps ? gaps.size() - kGaps : 0;
  if (gaps.size() > kGaps) gaps.erase(gaps.begin() + kGaps, gaps.end());
  json["first_step"] = report.steps.empty() ? Json(nullptr) : Json(report.steps.front().step);
  json["last_step"] = report.steps.empty() ? Json(nullptr) : Json(report.steps.back().step);
  json["points"] = PointsJson(report);
  std::size_t left_out = 0;
  json["lanes"] = LanesJson(report, &left_out);
  json["lanes_left_out"] = left_out;
  Json states = Json::array();
  for (std::size_t i = 0; i < kDeviceStateCount; ++i) {
    states.push_back(ToString(static_cast<DeviceState>(i)));
  }
  json["states"] = std::move(states);
  return json;
}

std::string_view LivePart(std::string_view name) {
  for (const LiveAsset& asset : LiveAssets()) {
    if (asset.name == name) return asset.content;
  }
  return {};
}

}  // namespace

std::string WriteHtml(const RunReport& report) {
  std::string page(ShippedFile("report.html"));
  const auto fill = [&page](std::string_view mark, const std::string& text) {
    const std::size_t at = page.find(mark);
    if (at != std::string::npos) page.replace(at, mark.size(), text);
  };
  // Last what holds names of others: nothing is looked for in it.
  fill("@STYLE@", fmt::format("{}{}", LivePart("live.css"), ShippedFile("report.css")));
  fill("@SCRIPT@", fmt::format("{}{}", LivePart("chart.js"), ShippedFile("report.js")));
  const std::string data = DataElement(PageJson(report));
  const std::string text = Escape(WriteText(report, Ink(false)));
  const std::string title = Escape(report.run.identity.run_id);
  const std::size_t data_at = page.find("@DATA@");
  page.replace(data_at, 6, data);
  const std::size_t text_at = page.find("@TEXT@");
  page.replace(text_at, 6, text);
  fill("@TITLE@", title);
  return page;
}

}  // namespace flopledger::cli
