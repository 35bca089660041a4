#include "export/jsonl_reader.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>

#include "export/report_json.h"

namespace flopledger {
namespace {

using Json = nlohmann::ordered_json;  // values keep their order

// Thrown and caught in this file: a line either is what it should be or is counted.
struct Unreadable : std::runtime_error {
  using std::runtime_error::runtime_error;
};

template <typename Enum, std::size_t kCount>
Enum Named(std::string_view name) {
  for (std::size_t i = 0; i < kCount; ++i) {
    if (ToString(static_cast<Enum>(i)) == name) return static_cast<Enum>(i);
  }
  throw Unreadable(fmt::format("unknown word '{}'", name));
}

std::string Text(const Json& json, const char* key) { return json.at(key).get<std::string>(); }

Flops FlopsOf(const Json& json) {
  const auto digits = ParseInt128(json.get<std::string>());
  if (!digits) throw Unreadable(digits.error().message());
  return Flops::FromInteger(*digits);
}

std::int64_t Int64Of(const Json& json) { return static_cast<std::int64_t>(FlopsOf(json).count()); }

DurationNs Time(const Json& json, const char* key) {
  return DurationNs(json.at(key).get<std::int64_t>());
}

double NumberOf(const Json& json) {
  if (json.is_number()) return json.get<double>();
  const auto word = json.get<std::string>();
  if (word == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (word == "inf") return std::numeric_limits<double>::infinity();
  if (word == "-inf") return -std::numeric_limits<double>::infinity();
  throw Unreadable(fmt::format("'{}' is no number", word));
}

std::optional<double> OptionalNumber(const Json& json, const char* key) {
  if (json.at(key).is_null()) return std::nullopt;
  return NumberOf(json.at(key));
}

std::uint64_t HashOf(const std::string& hex) {
  std::uint64_t hash = 0;
  const auto [end, error] = std::from_chars(hex.data(), hex.data() + hex.size(), hash, 16);
  if (error != std::errc() || end != hex.data() + hex.size()) throw Unreadable("hash");
  return hash;
}

DType DTypeOf(const Json& json, const char* key) {
  return Named<DType, kAllDTypes.size()>(Text(json, key));
}

RunDescription RunOf(const Json& json) {
  RunDescription run;
  run.identity.run_id = Text(json, "run_id");
  run.identity.rank = json.at("rank").get<int>();
  run.identity.local_rank = json.at("local_rank").get<int>();
  run.identity.world_size = json.at("world_size").get<int>();
  run.identity.rank_source = Text(json, "rank_source");
  run.version = Text(json, "version");
  if (!json.at("model").is_null()) run.model = Text(json, "model");
  run.convention = {Text(json, "convention"), HashOf(Text(json, "convention_hash"))};
  run.peak_dtype = DTypeOf(json, "peak_dtype");
  for (const Json& each : json.at("peaks")) {
    PeakRate peak;
    peak.device_model = Text(each, "device_model");
    peak.dtype = DTypeOf(each, "dtype");
    peak.sparse = each.at("sparse").get<bool>();
    peak.rate = FlopsPerSecond(NumberOf(each.at("flops_per_second")));
    peak.source = Text(each, "source");
    peak.evidence = Named<PeakEvidence, 6>(Text(each, "evidence"));
    peak.spread_low_ratio = OptionalNumber(each, "spread_low_ratio");
    peak.spread_high_ratio = OptionalNumber(each, "spread_high_ratio");
    run.peaks.push_back(std::move(peak));
  }
  return run;
}

void ReadFlops(const Json& json, StepReport* report) {
  ExecutedFlops& executed = report->executed;
  executed.total = FlopsOf(json.at("executed_flops"));
  executed.recomputed = FlopsOf(json.at("recomputed_flops"));
  executed.auxiliary = FlopsOf(json.at("auxiliary_flops"));
  executed.excess = FlopsOf(json.at("excess_flops"));
  report->executed_equivalent = FlopsOf(json.at("executed_equivalent_flops"));
  if (!json.at("useful_flops").is_null()) {
    DeclaredFlops declared;
    declared.useful_forward = FlopsOf(json.at("useful_forward_flops"));
    declared.useful_backward = FlopsOf(json.at("useful_backward_flops"));
    declared.padding = FlopsOf(json.at("padding_flops"));
    report->declared = declared;
  }
  if (const Json& rest = json.at("unexplained_flops"); !rest.is_null()) {
    report->unexplained = FlopsOf(rest);
  }
  if (const Json& peak = json.at("peak_flops"); !peak.is_null()) report->peak_flops = FlopsOf(peak);
  report->peak_dtype = DTypeOf(json, "peak_dtype");
  for (const Json& part : json.at("executed_by")) {
    executed.parts.push_back({DTypeOf(part, "dtype"), Named<FlopSource, 5>(Text(part, "source")),
                              FlopsOf(part.at("flops"))});
  }
  for (const Json& part : json.at("excess_by")) {
    executed.excess_parts.push_back({Text(part, "cause"), FlopsOf(part.at("flops"))});
  }
}

void ReadTimes(const Json& json, StepReport* report) {
  for (const Json& each : json.at("devices")) {
    DeviceTime device;
    device.device = each.at("device").get<std::uint16_t>();
    device.kernel_time_sum = Time(each, "kernel_time_sum_ns");
    for (const auto& [state_name, sections] : each.at("state_section_ns").items()) {
      const auto state =
          static_cast<std::size_t>(Named<DeviceState, kDeviceStateCount>(state_name));
      for (const auto& [section_name, ns] : sections.items()) {
        const auto section = static_cast<std::size_t>(Named<Phase, kPhaseCount>(section_name));
        device.by_state_and_section[state][section] = DurationNs(ns.get<std::int64_t>());
      }
    }
    report->devices.push_back(device);
  }
  for (const auto& [name, ns] : json.at("op_time_by_phase_ns").items()) {
    report->op_time_by_phase[static_cast<std::size_t>(Named<Phase, kPhaseCount>(name))] =
        DurationNs(ns.get<std::int64_t>());
  }
  for (const Json& each : json.at("kernels")) {
    report->kernels.push_back({Named<OpClass, kOpClassCount>(Text(each, "op_class")),
                               Named<CoverageKind, kCoverageKindCount>(Text(each, "coverage")),
                               each.at("launches").get<std::int64_t>(), Time(each, "time_ns")});
  }
  for (const Json& each : json.at("gaps")) {
    report->gaps.push_back({Text(each, "name"),
                            Named<GapReason, kGapReasonCount>(Text(each, "reason")),
                            each.at("launches").get<std::int64_t>(), Time(each, "time_ns")});
  }
}

void ReadRatios(const Json& json, StepReport* report) {
  Utilization& ratios = report->utilization;
  ratios.mfu_ratio = OptionalNumber(json, "mfu_ratio");
  ratios.hfu_low_ratio = OptionalNumber(json, "hfu_low_ratio");
  ratios.hfu_high_ratio = OptionalNumber(json, "hfu_high_ratio");
  ratios.mfu_refusal = Named<RefusalReason, 9>(Text(json, "mfu_refusal"));
  ratios.hfu_refusal = Named<RefusalReason, 9>(Text(json, "hfu_refusal"));
  report->coverage.time_ratio = OptionalNumber(json, "coverage_time_ratio");
  report->coverage.launch_ratio = OptionalNumber(json, "coverage_launch_ratio");
}

void ReadEvents(const Json& json, StepReport* report) {
  for (const Json& each : json.at("findings")) {
    report->findings.push_back(
        {Text(each, "id"), NumberOf(each.at("ratio")), Text(each, "suspect")});
  }
  for (const Json& each : json.at("waterfall")) {
    report->waterfall.push_back(
        {Text(each, "cause"), FlopsOf(each.at("flops")), Text(each, "kind") == "physics"});
  }
  for (const Json& each : json.at("losses")) {
    LossRecord loss;
    loss.where = Named<LossRecord::Where, kLossWhereCount>(Text(each, "where"));
    loss.reason = Named<LossRecord::Reason, kLossReasonCount>(Text(each, "reason"));
    loss.count = each.at("count").get<std::int64_t>();
    report->losses.push_back(loss);
  }
  for (const auto& [name, value] : json.at("values").items()) {
    report->values.push_back({name, NumberOf(value)});
  }
}

// Fields that logs of 0.1 do not have.
void ReadDeviceFields(const Json& json, StepReport* report) {
  if (json.contains("boundary") && Text(json, "boundary") == ToString(StepBoundary::kDevice)) {
    report->boundary = StepBoundary::kDevice;
  }
  if (json.contains("unlaunched_kernels")) {
    report->unlaunched_kernels = json.at("unlaunched_kernels").get<std::int64_t>();
  }
  if (!json.contains("collector_overhead_ns")) return;
  for (const auto& [kind, ns] : json.at("collector_overhead_ns").items()) {
    const auto index =
        static_cast<std::size_t>(Named<OverheadRecord::Kind, kOverheadKindCount>(kind));
    report->collector_overhead[index] = DurationNs(ns.get<std::int64_t>());
  }
}

StepReport StepOf(const Json& json) {
  StepReport report;
  report.step = json.at("step").get<std::int64_t>();
  report.result = Named<StepResult, 3>(Text(json, "result"));
  report.closed_by = Text(json, "closed_by");
  report.start_ns = Int64Of(json.at("start_ns"));
  report.end_ns = Int64Of(json.at("end_ns"));
  report.wall = Time(json, "wall_ns");
  report.excluded_before = Time(json, "excluded_before_ns");
  report.end_unix_seconds = NumberOf(json.at("end_unix_seconds"));
  const Json& tokens = json.at("tokens");
  report.tokens.useful = tokens.at("useful").get<std::int64_t>();
  report.tokens.padded = tokens.at("padded").get<std::int64_t>();
  report.tokens.even_split = tokens.at("even_split").get<bool>();
  ReadRatios(json, &report);
  ReadFlops(json, &report);
  ReadTimes(json, &report);
  ReadEvents(json, &report);
  report.late_records = json.at("late_records").get<std::int64_t>();
  report.overhead = Time(json, "overhead_ns");
  ReadDeviceFields(json, &report);
  report.convention = {Text(json, "convention"), HashOf(Text(json, "convention_hash"))};
  return report;
}

// False: a version that this code cannot know.
bool ReadLine(const std::string& line, std::optional<StepLog>* log) {
  const Json json = Json::parse(line);
  if (json.at("schema_version").get<int>() > kJsonSchemaVersion) return false;
  const std::string type = Text(json, "type");
  if (type == "run") {
    RunDescription run = RunOf(json);
    // A rotated file begins with the run again; another id is another run.
    if (*log && (*log)->run.identity.run_id == run.identity.run_id) return true;
    *log = StepLog();
    (*log)->run = std::move(run);
  } else if (!*log) {
    throw Unreadable("before the run");
  } else if (type == "step") {
    (*log)->steps.push_back(StepOf(json));
    (*log)->totals.Add((*log)->steps.back());
    (*log)->gaps_left_out += json.at("gaps_left_out").get<std::int64_t>();
  } else if (type == "summary") {
    (*log)->has_summary = true;
    // Time that is in no step: only the summary has it.
    for (const auto& [reason, ns] : json.at("excluded_ns").items()) {
      (*log)->totals.excluded[reason] = DurationNs(Int64Of(ns));
    }
  } else {
    throw Unreadable("unknown type");
  }
  return true;
}

}  // namespace

Result<StepLog> ReadStepLog(const std::string& text) {
  std::optional<StepLog> log;
  std::int64_t unreadable = 0;
  std::int64_t first_unreadable = 0;
  std::int64_t number = 0;
  std::size_t begin = 0;
  while (begin < text.size()) {
    const std::size_t end = text.find('\n', begin);
    if (end == std::string::npos) break;
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    if (line.empty()) continue;
    try {
      if (!ReadLine(line, &log)) {
        return Fail(StatusCode::kUnsupported,
                    fmt::format("the step log has a later schema version; this one reads up to {}",
                                kJsonSchemaVersion));
      }
    } catch (const std::exception&) {
      if (++unreadable == 1) first_unreadable = number;
    }
  }
  if (!log) {
    return Fail(StatusCode::kDataLoss,
                fmt::format("no run line in {} bytes; a step log begins with "
                            "{{\"schema_version\":{},\"type\":\"run\"",
                            text.size(), kJsonSchemaVersion));
  }
  log->unreadable_lines = unreadable;
  log->first_unreadable_line = first_unreadable;
  log->has_cut_line = begin < text.size();
  return *std::move(log);
}

}  // namespace flopledger
