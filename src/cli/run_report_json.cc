#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/run_report_text.h"
#include "export/report_json.h"

namespace flopledger::cli {
namespace {

using Json = nlohmann::ordered_json;

Json Number(const std::optional<double>& value) {
  return value && *value == *value ? Json(*value) : Json(nullptr);
}

Json RatiosJson(const RunRatios& ratios) {
  return {{"mfu_ratio", Number(ratios.mfu)},
          {"hfu_low_ratio", Number(ratios.hfu_low)},
          {"hfu_high_ratio", Number(ratios.hfu_high)},
          {"coverage_time_ratio", Number(ratios.coverage_time)},
          {"recompute_ratio", Number(ratios.recompute)},
          {"mfu_refusal", ratios.refusal.empty() ? Json(nullptr) : Json(ratios.refusal)}};
}

Json StepJson(const GlobalStep& step) {
  Json json = {{"step", step.step},           {"result", ToString(step.result)},
               {"start_ns", step.start_ns},   {"end_ns", step.end_ns},
               {"wall_ns", step.wall().ns()}, {"useful_tokens", step.useful_tokens}};
  json.update(RatiosJson(step.ratios));
  json["missing_ranks"] = step.missing_ranks;
  json["slowest_rank"] = step.slowest_rank < 0 ? Json(nullptr) : Json(step.slowest_rank);
  json["slowest_over_ratio"] = step.slowest_over_ratio;
  return json;
}

Json RanksJson(const RunReport& report) {
  Json list = Json::array();
  for (const RankFigures& rank : report.ranks) {
    Json json = {{"rank", rank.rank}, {"device_model", rank.device_model}};
    json["peak_flops_per_second"] =
        rank.peak_per_second > 0 ? Json(rank.peak_per_second) : Json(nullptr);
    json.update(RatiosJson(rank.ratios));
    json.erase("hfu_high_ratio");
    json.erase("mfu_refusal");
    json["wall_ns"] = rank.totals.wall.ns();
    json["own_time_ns"] = rank.own_time.ns();
    json["own_over_ratio"] = rank.own_over_ratio;
    json["times_slowest"] = rank.times_slowest;
    json["missing_steps"] = rank.missing_steps;
    Json states = Json::object();
    for (std::size_t i = 0; i < kDeviceStateCount; ++i) {
      states[std::string(ToString(static_cast<DeviceState>(i)))] = rank.totals.device_time[i].ns();
    }
    json["device_ns"] = std::move(states);
    list.push_back(std::move(json));
  }
  return list;
}

Json PeaksJson(const RunReport& report) {
  Json list = Json::array();
  for (const SharedPeak& shared : report.peaks) {
    Json json = {{"ranks", shared.ranks}, {"dtype", ToString(shared.dtype)}};
    if (shared.peak) {
      json["flops_per_second"] = shared.peak->rate.value();
      json["device_model"] = shared.peak->device_model;
      json["source"] = shared.peak->source;
      json["evidence"] = ToString(shared.peak->evidence);
    } else {
      json["flops_per_second"] = nullptr;
    }
    list.push_back(std::move(json));
  }
  return list;
}

Json KernelsJson(const RunTotals& totals) {
  Json list = Json::array();
  for (std::size_t i = 0; i < kOpClassCount; ++i) {
    for (std::size_t j = 0; j < kCoverageKindCount; ++j) {
      if (totals.kernel_time[i][j].ns() == 0) continue;
      list.push_back({{"op_class", ToString(static_cast<OpClass>(i))},
                      {"coverage", ToString(static_cast<CoverageKind>(j))},
                      {"time_ns", totals.kernel_time[i][j].ns()}});
    }
  }
  return list;
}

Json FlopsJson(const RunReport& report) {
  const RunTotals& totals = report.totals;
  const auto digits = [](Flops flops) { return flops.ToString(); };
  return {{"peak_flops", digits(report.peak)},
          {"useful_flops", digits(report.useful)},
          {"executed_flops", digits(totals.ExecutedTotal())},
          {"executed_equivalent_flops", digits(totals.executed_equivalent)},
          {"recomputed_flops", digits(totals.recomputed)},
          {"auxiliary_flops", digits(totals.auxiliary)},
          {"padding_flops", digits(totals.padding)},
          {"excess_flops", digits(totals.excess_positive - totals.excess_negative)},
          {"unexplained_flops", digits(totals.unexplained_positive - totals.unexplained_negative)}};
}

void AddEvents(const RunReport& report, Json* json) {
  Json lines = Json::array();
  for (const WaterfallLine& line : report.waterfall) {
    lines.push_back({{"cause", line.cause},
                     {"flops", line.flops.ToString()},
                     {"kind", line.physics ? "physics" : "choice"},
                     {"text", CauseMeaning(line.cause)}});
  }
  (*json)["waterfall"] = std::move(lines);
  Json findings = Json::array();
  for (const FindingCount& finding : report.findings) {
    findings.push_back({{"id", finding.id},
                        {"steps", finding.steps},
                        {"worst_ratio", Number(finding.worst_ratio)},
                        {"suspect", finding.suspect}});
  }
  (*json)["findings"] = std::move(findings);
  Json gaps = Json::array();
  for (const CoverageGap& gap : report.gaps) {
    gaps.push_back({{"name", gap.name},
                    {"reason", ToString(gap.reason)},
                    {"launches", gap.launches},
                    {"time_ns", gap.time.ns()}});
  }
  (*json)["gaps"] = std::move(gaps);
  Json losses = Json::array();
  for (const auto& [key, count] : report.totals.dropped) {
    losses.push_back(
        {{"where", ToString(key.first)}, {"reason", ToString(key.second)}, {"count", count}});
  }
  (*json)["losses"] = std::move(losses);
  (*json)["late_records"] = report.totals.late_records;
  (*json)["warnings"] = report.warnings;
}

}  // namespace

std::string WriteJson(const RunReport& report, bool with_steps) {
  Json json = {{"schema_version", kJsonSchemaVersion}, {"type", "report"}};
  json["run"] = Json::parse(RunJson(report.run));
  json["peaks"] = PeaksJson(report);
  json["ranks_given"] = report.ranks.size();
  json["missing_ranks"] = report.missing_ranks;
  json["clock"] = report.logs.shared_clock ? "monotonic" : "wall";
  json.update(RatiosJson(report.ratios));
  json["given_ranks"] =
      report.missing_ranks.empty() ? Json(nullptr) : RatiosJson(report.given_ratios);
  json["window_ns"] = report.window.ns();
  Json counts = Json::object();
  for (int i = 0; i < 3; ++i) counts[std::string(ToString(static_cast<StepResult>(i)))] = 0;
  for (const GlobalStep& step : report.steps) {
    auto& count = counts[std::string(ToString(step.result))];
    count = count.get<std::int64_t>() + 1;
  }
  json["step_counts"] = std::move(counts);
  const StepSpread& spread = report.spread;
  json["step_seconds"] = {{"mean", spread.mean_seconds},
                          {"deviation", spread.deviation_seconds},
                          {"median", spread.median_seconds},
                          {"low", spread.low_seconds},
                          {"high", spread.high_seconds}};
  json["tokens"] = {{"useful", report.totals.useful_tokens},
                    {"padding", report.totals.padding_tokens}};
  json.update(FlopsJson(report));
  Json stragglers = Json::array();
  for (const RankFigures* rank : Stragglers(report)) {
    stragglers.push_back({{"rank", rank->rank},
                          {"over_ratio", rank->own_over_ratio},
                          {"slowest_in_steps", rank->times_slowest}});
  }
  json["stragglers"] = std::move(stragglers);
  json["ranks"] = RanksJson(report);
  json["kernels"] = KernelsJson(report.totals);
  AddEvents(report, &json);
  if (with_steps) {
    Json steps = Json::array();
    for (const GlobalStep& step : report.steps) steps.push_back(StepJson(step));
    json["steps"] = std::move(steps);
  }
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace flopledger::cli
