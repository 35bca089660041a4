#include "export/report_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "export/report_text.h"

namespace flopledger {
namespace {

// Keys stay in the order in which they are written, for people who read the file.
using Json = nlohmann::ordered_json;

Json Number(double value) {
  if (std::isfinite(value)) return value;
  if (std::isnan(value)) return "nan";
  return value > 0 ? "inf" : "-inf";
}

Json Number(const std::optional<double>& value) { return value ? Number(*value) : Json(nullptr); }

Json Digits(Flops flops) { return flops.ToString(); }

Json Digits(std::int64_t ns) { return std::to_string(ns); }

std::string Dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json Header(std::string_view type, const RunIdentity& identity) {
  return {{"schema_version", kJsonSchemaVersion},
          {"type", type},
          {"run_id", identity.run_id},
          {"rank", identity.rank}};
}

std::string Hash(const ConventionId& convention) { return fmt::format("{:016x}", convention.hash); }

Json PeaksJson(const std::vector<PeakRate>& peaks) {
  Json list = Json::array();
  for (const PeakRate& peak : peaks) {
    list.push_back({{"device_model", peak.device_model},
                    {"dtype", ToString(peak.dtype)},
                    {"sparse", peak.sparse},
                    {"flops_per_second", Number(peak.rate.value())},
                    {"source", peak.source},
                    {"evidence", ToString(peak.evidence)},
                    {"spread_low_ratio", Number(peak.spread_low_ratio)},
                    {"spread_high_ratio", Number(peak.spread_high_ratio)}});
  }
  return list;
}

Json UtilizationJson(const StepReport& report) {
  const Utilization& ratios = report.utilization;
  return {{"mfu_ratio", Number(ratios.mfu_ratio)},
          {"hfu_low_ratio", Number(ratios.hfu_low_ratio)},
          {"hfu_high_ratio", Number(ratios.hfu_high_ratio)},
          {"mfu_refusal", ToString(ratios.mfu_refusal)},
          {"hfu_refusal", ToString(ratios.hfu_refusal)},
          {"coverage_time_ratio", Number(report.coverage.time_ratio)},
          {"coverage_launch_ratio", Number(report.coverage.launch_ratio)},
          {"recompute_ratio", Number(report.RecomputeRatio())}};
}

Json FlopsJson(const StepReport& report) {
  Json flops = {{"executed_flops", Digits(report.executed.total)},
                {"executed_equivalent_flops", Digits(report.executed_equivalent)},
                {"recomputed_flops", Digits(report.executed.recomputed)},
                {"auxiliary_flops", Digits(report.executed.auxiliary)},
                {"excess_flops", Digits(report.executed.excess)}};
  const auto& declared = report.declared;
  flops["useful_flops"] = declared ? Digits(declared->useful()) : Json(nullptr);
  flops["useful_forward_flops"] = declared ? Digits(declared->useful_forward) : Json(nullptr);
  flops["useful_backward_flops"] = declared ? Digits(declared->useful_backward) : Json(nullptr);
  flops["padding_flops"] = declared ? Digits(declared->padding) : Json(nullptr);
  flops["unexplained_flops"] = report.unexplained ? Digits(*report.unexplained) : Json(nullptr);
  flops["peak_flops"] = report.peak_flops.count() > 0 ? Digits(report.peak_flops) : Json(nullptr);
  flops["peak_dtype"] = ToString(report.peak_dtype);
  Json executed = Json::array();
  for (const ExecutedPart& part : report.executed.parts) {
    executed.push_back({{"dtype", ToString(part.dtype)},
                        {"source", ToString(part.source)},
                        {"flops", Digits(part.flops)}});
  }
  flops["executed_by"] = std::move(executed);
  Json excess = Json::array();
  for (const ExcessPart& part : report.executed.excess_parts) {
    excess.push_back({{"cause", part.cause}, {"flops", Digits(part.flops)}});
  }
  flops["excess_by"] = std::move(excess);
  return flops;
}

Json DevicesJson(const StepReport& report) {
  Json devices = Json::array();
  for (const DeviceTime& device : report.devices) {
    Json states = Json::object();
    for (std::size_t i = 0; i < kDeviceStateCount; ++i) {
      const auto state = static_cast<DeviceState>(i);
      states[std::string(ToString(state))] = device.InState(state).ns();
    }
    Json cells = Json::object();
    for (std::size_t i = 0; i < kDeviceStateCount; ++i) {
      Json sections = Json::object();
      for (std::size_t j = 0; j < kPhaseCount; ++j) {
        const DurationNs time = device.by_state_and_section[i][j];
        if (time.ns() != 0) sections[std::string(ToString(static_cast<Phase>(j)))] = time.ns();
      }
      if (!sections.empty()) {
        cells[std::string(ToString(static_cast<DeviceState>(i)))] = std::move(sections);
      }
    }
    devices.push_back({{"device", device.device},
                       {"state_ns", std::move(states)},
                       {"state_section_ns", std::move(cells)},
                       {"kernel_time_sum_ns", device.kernel_time_sum.ns()}});
  }
  return devices;
}

Json GapsJson(const std::vector<CoverageGap>& gaps, std::size_t max_gaps, std::size_t* left_out) {
  std::vector<const CoverageGap*> sorted;
  sorted.reserve(gaps.size());
  for (const CoverageGap& gap : gaps) sorted.push_back(&gap);
  std::sort(sorted.begin(), sorted.end(), [](const CoverageGap* a, const CoverageGap* b) {
    return a->time != b->time ? a->time > b->time : a->name < b->name;
  });
  Json list = Json::array();
  for (const CoverageGap* gap : sorted) {
    if (list.size() >= max_gaps) break;
    list.push_back({{"name", gap->name},
                    {"reason", ToString(gap->reason)},
                    {"launches", gap->launches},
                    {"time_ns", gap->time.ns()}});
  }
  *left_out = gaps.size() - list.size();
  return list;
}

Json KernelsJson(const StepReport& report) {
  Json list = Json::array();
  for (const KernelTime& kernel : report.kernels) {
    list.push_back({{"op_class", ToString(kernel.op_class)},
                    {"coverage", ToString(kernel.coverage)},
                    {"launches", kernel.launches},
                    {"time_ns", kernel.time.ns()}});
  }
  return list;
}

void AddEvents(const StepReport& report, Json* step) {
  Json findings = Json::array();
  for (const Finding& finding : report.findings) {
    findings.push_back(
        {{"id", finding.id}, {"ratio", Number(finding.ratio)}, {"suspect", finding.suspect}});
  }
  Json waterfall = Json::array();
  for (const WaterfallLine& line : report.waterfall) {
    waterfall.push_back({{"cause", line.cause},
                         {"flops", Digits(line.flops)},
                         {"kind", line.physics ? "physics" : "choice"},
                         {"text", CauseText(line.cause)}});
  }
  Json losses = Json::array();
  for (const LossRecord& loss : report.losses) {
    losses.push_back({{"where", ToString(loss.where)},
                      {"reason", ToString(loss.reason)},
                      {"count", loss.count}});
  }
  Json values = Json::object();
  for (const TrainingValue& value : report.values) values[value.name] = Number(value.value);
  (*step)["findings"] = std::move(findings);
  (*step)["waterfall"] = std::move(waterfall);
  (*step)["losses"] = std::move(losses);
  (*step)["values"] = std::move(values);
}

Json OverheadJson(const std::array<DurationNs, kOverheadKindCount>& overhead) {
  Json json = Json::object();
  for (std::size_t i = 0; i < kOverheadKindCount; ++i) {
    if (overhead[i].ns() == 0) continue;
    json[std::string(ToString(static_cast<OverheadRecord::Kind>(i)))] = overhead[i].ns();
  }
  return json;
}

Json TokensJson(const TokenCount& tokens) {
  return {{"useful", tokens.useful}, {"padded", tokens.padded}, {"even_split", tokens.even_split}};
}

}  // namespace

std::string RunJson(const RunDescription& run) {
  Json json = Header("run", run.identity);
  json["version"] = run.version;
  json["local_rank"] = run.identity.local_rank;
  json["world_size"] = run.identity.world_size;
  json["rank_source"] = run.identity.rank_source;
  json["model"] = run.model.empty() ? Json(nullptr) : Json(run.model);
  json["convention"] = run.convention.name;
  json["convention_hash"] = Hash(run.convention);
  json["peak_dtype"] = ToString(run.peak_dtype);
  json["peaks"] = PeaksJson(run.peaks);
  return Dump(json);
}

std::string StateJson(const SessionState& state) {
  constexpr std::array<std::string_view, 4> kStates = {"counting", "timing_only", "steps_only",
                                                       "disabled"};
  Json capabilities = Json::array();
  for (const Capability& capability : state.capabilities) {
    capabilities.push_back({{"name", capability.name},
                            {"available", capability.available},
                            {"reason", capability.reason}});
  }
  Json devices = Json::array();
  for (const ObservedDevice& device : state.devices) {
    devices.push_back({{"device", device.device},
                       {"name", device.name},
                       {"pci_bus_id", device.pci_bus_id},
                       {"uuid", device.uuid},
                       {"multiprocessors", device.multiprocessors},
                       {"memory_bytes", device.memory_bytes}});
  }
  return Dump({{"collector", kStates[static_cast<std::size_t>(state.collector)]},
               {"rung", state.rung},
               {"devices", std::move(devices)},
               {"run_finished", state.run_finished},
               {"capabilities", std::move(capabilities)}});
}

std::string StepJson(const StepReport& report, const RunIdentity& identity, std::size_t max_gaps) {
  Json step = Header("step", identity);
  step["step"] = report.step;
  step["result"] = ToString(report.result);
  step["closed_by"] = report.closed_by;
  step["boundary"] = ToString(report.boundary);
  step["start_ns"] = Digits(report.start_ns);
  step["end_ns"] = Digits(report.end_ns);
  step["wall_ns"] = report.wall.ns();
  step["excluded_before_ns"] = report.excluded_before.ns();
  step["end_unix_seconds"] = Number(report.end_unix_seconds);
  step["tokens"] = TokensJson(report.tokens);
  step.update(UtilizationJson(report));
  step.update(FlopsJson(report));
  step["devices"] = DevicesJson(report);
  Json phases = Json::object();
  for (std::size_t i = 0; i < kPhaseCount; ++i) {
    if (report.op_time_by_phase[i].ns() == 0) continue;
    phases[std::string(ToString(static_cast<Phase>(i)))] = report.op_time_by_phase[i].ns();
  }
  step["op_time_by_phase_ns"] = std::move(phases);
  step["kernels"] = KernelsJson(report);
  std::size_t left_out = 0;
  step["gaps"] = GapsJson(report.gaps, max_gaps, &left_out);
  step["gaps_left_out"] = left_out;
  AddEvents(report, &step);
  step["late_records"] = report.late_records;
  step["unlaunched_kernels"] = report.unlaunched_kernels;
  step["overhead_ns"] = report.overhead.ns();
  step["collector_overhead_ns"] = OverheadJson(report.collector_overhead);
  step["convention"] = report.convention.name;
  step["convention_hash"] = Hash(report.convention);
  return Dump(step);
}

std::string SummaryJson(const RunTotals& totals, const RunIdentity& identity) {
  Json json = Header("summary", identity);
  Json steps = Json::object();
  for (std::size_t i = 0; i < totals.steps.size(); ++i) {
    steps[std::string(ToString(static_cast<StepResult>(i)))] = totals.steps[i];
  }
  json["steps"] = std::move(steps);
  json["wall_ns"] = Digits(totals.wall.ns());
  Json excluded = Json::object();
  for (const auto& [reason, time] : totals.excluded) excluded[reason] = Digits(time.ns());
  json["excluded_ns"] = std::move(excluded);
  json["mfu_ratio"] = Number(totals.MfuRatio());
  json["hfu_low_ratio"] = Number(totals.HfuLowRatio());
  json["goodput_ratio"] = Number(totals.GoodputRatio());
  json["coverage_time_ratio"] = Number(totals.CoverageTimeRatio());
  json["recompute_ratio"] = Number(totals.RecomputeRatio());
  json["useful_forward_flops"] = Digits(totals.useful_forward);
  json["useful_backward_flops"] = Digits(totals.useful_backward);
  json["useful_in_warmup_flops"] = Digits(totals.useful_in_warmup);
  json["executed_flops"] = Digits(totals.ExecutedTotal());
  json["executed_equivalent_flops"] = Digits(totals.executed_equivalent);
  json["recomputed_flops"] = Digits(totals.recomputed);
  json["auxiliary_flops"] = Digits(totals.auxiliary);
  json["padding_flops"] = Digits(totals.padding);
  json["excess_positive_flops"] = Digits(totals.excess_positive);
  json["excess_negative_flops"] = Digits(totals.excess_negative);
  json["unexplained_positive_flops"] = Digits(totals.unexplained_positive);
  json["unexplained_negative_flops"] = Digits(totals.unexplained_negative);
  json["peak_flops"] = Digits(totals.PeakTotal());
  Json lost = Json::object();
  for (const auto& [cause, flops] : totals.lost_peak) lost[cause] = Digits(flops);
  json["waterfall"] = std::move(lost);
  Json devices = Json::object();
  for (std::size_t i = 0; i < kDeviceStateCount; ++i) {
    devices[std::string(ToString(static_cast<DeviceState>(i)))] =
        Digits(totals.device_time[i].ns());
  }
  json["device_ns"] = std::move(devices);
  Json kernels = Json::object();
  for (std::size_t i = 0; i < kCoverageKindCount; ++i) {
    kernels[std::string(ToString(static_cast<CoverageKind>(i)))] = totals.kernels[i];
  }
  json["kernels"] = std::move(kernels);
  json["tokens"] = {{"useful", totals.useful_tokens}, {"padding", totals.padding_tokens}};
  Json losses = Json::array();
  for (const auto& [key, count] : totals.dropped) {
    losses.push_back(
        {{"where", ToString(key.first)}, {"reason", ToString(key.second)}, {"count", count}});
  }
  json["losses"] = std::move(losses);
  json["late_records"] = totals.late_records;
  json["unlaunched_kernels"] = totals.unlaunched_kernels;
  json["overhead_ns"] = Digits(totals.overhead.ns());
  json["collector_overhead_ns"] = OverheadJson(totals.collector_overhead);
  return Dump(json);
}

std::string StepPointJson(const StepReport& report) {
  Json point = {{"step", report.step},
                {"result", ToString(report.result)},
                {"wall_ns", report.wall.ns()},
                {"end_unix_seconds", Number(report.end_unix_seconds)},
                {"useful_tokens", report.tokens.useful}};
  point.update(UtilizationJson(report));
  Json values = Json::object();
  for (const TrainingValue& value : report.values) values[value.name] = Number(value.value);
  point["values"] = std::move(values);
  return Dump(point);
}

std::string ConventionsJson(const RunDescription& run) {
  return Dump({{"schema_version", kJsonSchemaVersion},
               {"convention", run.convention.name},
               {"convention_hash", Hash(run.convention)},
               {"multiply_add_flops", 2},
               {"model", run.model.empty() ? Json(nullptr) : Json(run.model)},
               {"peak_dtype", ToString(run.peak_dtype)},
               {"peaks", PeaksJson(run.peaks)}});
}

}  // namespace flopledger
