#include "cli/replay_json.h"

#include <concepts>
#include <nlohmann/json.hpp>

namespace flopledger::cli {
namespace {

/// Writes JSON with integers of 128 bits, which nlohmann's values cannot hold.
class Writer {
 public:
  void Open(char bracket) {
    Separate();
    text_ += bracket;
    first_ = true;
  }
  void Close(char bracket) {
    text_ += bracket;
    first_ = false;
  }
  Writer& Key(std::string_view key) {
    Separate();
    text_ += Quoted(key) + ": ";
    after_key_ = true;
    return *this;
  }
  void Value(std::string_view text) { Raw(Quoted(text)); }
  void Value(Flops flops) { Raw(flops.ToString()); }
  void Value(std::integral auto number) { Raw(ToString(Int128{number})); }
  void Value(bool truth) { Raw(truth ? "true" : "false"); }
  void Value(double number) { Raw(nlohmann::json(number).dump()); }  // null if not finite
  template <typename T>
  void Value(const std::optional<T>& value) {
    if (value) {
      Value(*value);
    } else {
      Raw("null");
    }
  }
  template <typename T>
  void Field(std::string_view key, const T& value) {
    Key(key).Value(value);
  }
  std::string Take() { return std::move(text_) + "\n"; }

 private:
  static std::string Quoted(std::string_view text) {
    return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
  void Separate() {
    if (!after_key_ && !first_) text_ += ", ";
    first_ = false;
    after_key_ = false;
  }
  void Raw(const std::string& raw) {
    Separate();
    text_ += raw;
  }

  std::string text_;
  bool first_ = true;
  bool after_key_ = false;
};

std::int64_t LengthOf(const TimeSpan& span) { return span.end_ns - span.start_ns; }

void WriteStep(Writer& out, const ReplayStep& step) {
  const StepActivity& activity = step.activity;
  std::optional<std::int64_t> window;
  if (activity.device_window) window = LengthOf(*activity.device_window);
  const auto in_window = [&window](std::int64_t value) {
    return window ? std::optional(value) : std::nullopt;
  };
  out.Open('{');
  out.Field("name", std::string_view(step.name));
  out.Field("number", activity.step);
  out.Field("host_start_ns", activity.host.start_ns);
  out.Field("host_wall_ns", LengthOf(activity.host));
  out.Field("launched_kernels", activity.launched_kernels);
  out.Field("launched_kernel_time_sum_ns", activity.launched_kernel_time_sum_ns);
  out.Field("launched_work", activity.launched_work);
  out.Field("last_launched_end_ns", activity.last_end_ns);
  out.Field("started_kernels", activity.started_kernels);
  out.Field("busy_clipped_ns", activity.busy_clipped_ns);
  out.Field("exposed_communication_clipped_ns", activity.exposed_communication_clipped_ns);
  out.Field("flops", step.flops.all_pairs);
  out.Field("recomputed_flops", step.flops.recomputed_all_pairs);
  out.Field("executed_flops", step.flops.executed);
  out.Field("device_window_ns", window);
  out.Field("device_busy_ns", in_window(activity.device_busy_ns));
  out.Field("device_idle_ns", in_window(activity.device_idle_ns));
  out.Field("device_communication_ns", in_window(activity.device_communication_ns));
  out.Field("device_exposed_communication_ns", in_window(activity.device_exposed_communication_ns));
  out.Close('}');
}

void WriteSums(Writer& out, const ReplayDevice& device) {
  const DeviceActivity& activity = device.activity;
  out.Field("kernels", activity.kernels);
  out.Field("memcpys", activity.memcpys);
  out.Field("memsets", activity.memsets);
  out.Field("unlaunched", activity.unlaunched);
  out.Field("unlaunched_ns", activity.unlaunched_ns);
  out.Field("untimed", activity.untimed);
  out.Field("kernel_time_sum_ns", activity.kernel_time_sum_ns);
  out.Field("busy_kernels_ns", activity.busy_kernels_ns);
  out.Field("busy_all_ns", activity.busy_all_ns);
  out.Field("first_start_ns", activity.span.start_ns);
  out.Field("span_ns", LengthOf(activity.span));
  out.Field("idle_ns", activity.idle_ns);
  out.Field("communication_union_ns", activity.communication_union_ns);
  out.Field("compute_union_ns", activity.compute_union_ns);
  out.Field("exposed_communication_ns", activity.exposed_communication_ns);
  out.Field("flops_counted", device.flops.all_pairs);
  out.Field("recomputed_flops", device.flops.recomputed_all_pairs);
  out.Field("executed_flops", device.flops.executed);
  out.Field("counted_kernel_time_ns", device.counted_kernel_time_ns);
  out.Key("steps").Open('[');
  for (const ReplayStep& step : device.steps) WriteStep(out, step);
  out.Close(']');
}

void WriteBooks(Writer& out, const std::vector<StepReport>& reports) {
  out.Key("books").Open('[');
  for (const StepReport& report : reports) {
    out.Open('{');
    out.Field("step", report.step);
    out.Field("result", ToString(report.result));
    out.Field("closed_by", std::string_view(report.closed_by));
    out.Field("start_ns", report.start_ns);
    out.Field("wall_ns", report.wall.ns());
    out.Field("executed_flops", report.executed.total);
    out.Field("recomputed_flops", report.executed.recomputed);
    out.Field("coverage_time_ratio", report.coverage.time_ratio);
    out.Field("coverage_launch_ratio", report.coverage.launch_ratio);
    out.Field("mfu_ratio", report.utilization.mfu_ratio);
    out.Field("hfu_low_ratio", report.utilization.hfu_low_ratio);
    out.Field("hfu_high_ratio", report.utilization.hfu_high_ratio);
    out.Close('}');
  }
  out.Close(']');
}

void WriteRemarks(Writer& out, const TraceDescription& trace) {
  out.Key("warnings").Open('[');
  for (const TraceWarning& warning : trace.warnings) {
    out.Open('{');
    out.Field("kind", std::string_view(warning.kind));
    out.Field("count", warning.count);
    out.Field("text", std::string_view(warning.text));
    out.Close('}');
  }
  out.Close(']');
  out.Key("gaps").Open('[');
  for (const TraceGap& gap : trace.gaps) {
    out.Open('{');
    out.Field("kind", std::string_view(gap.kind));
    out.Field("count", gap.count);
    out.Field("time_ns", gap.time.ns());
    out.Field("text", std::string_view(gap.text));
    out.Close('}');
  }
  out.Close(']');
  out.Key("counters").Open('[');
  for (const TraceCounter& counter : trace.counters) {
    out.Open('{');
    out.Field("name", std::string_view(counter.name));
    out.Field("sum", counter.sum);
    out.Field("ranges", counter.ranges);
    out.Close('}');
  }
  out.Close(']');
}

void WriteTrace(Writer& out, const ReplayTrace& trace) {
  out.Open('{');
  out.Field("file", std::string_view(trace.file));
  out.Field("part", std::string_view(trace.description.name));
  out.Field("format", std::string_view(trace.description.format));
  out.Field("rank", trace.description.rank);
  out.Field("world_size", trace.description.world_size);
  out.Field("events", trace.description.events);
  out.Field("cut", trace.description.cut);
  WriteSums(out, trace.total);
  out.Key("devices").Open('[');
  for (const ReplayDevice& device : trace.devices) {
    out.Open('{');
    out.Field("device", device.description.device);
    out.Field("device_name", std::string_view(device.description.name));
    WriteSums(out, device);
    out.Close('}');
  }
  out.Close(']');
  WriteRemarks(out, trace.description);
  WriteBooks(out, trace.reports);
  out.Close('}');
}

void WriteGlobalStep(Writer& out, const GlobalStep& step) {
  out.Open('{');
  out.Field("name", std::string_view(step.name));
  out.Field("start_ns", step.window.start_ns);
  out.Field("window_ns", LengthOf(step.window));
  out.Field("flops", step.all_pairs);
  out.Key("ranks").Open('[');
  for (const GlobalStep::Rank& rank : step.ranks) {
    out.Open('{');
    out.Field("trace", std::string_view(rank.trace));
    out.Field("rank", rank.rank);
    out.Field("start_offset_ns", rank.host.start_ns - step.window.start_ns);
    out.Field("end_offset_ns", rank.host.end_ns - step.window.start_ns);
    out.Field("host_wall_ns", LengthOf(rank.host));
    out.Field("flops", rank.all_pairs);
    out.Close('}');
  }
  out.Close(']');
  out.Close('}');
}

}  // namespace

std::string WriteJson(const ReplayResult& result) {
  Writer out;
  out.Open('{');
  out.Field("schema_version", 1);
  out.Key("files").Open('[');
  for (const ReplayTrace& trace : result.traces) WriteTrace(out, trace);
  out.Close(']');
  out.Key("global_steps").Open('[');
  for (const GlobalStep& step : result.global_steps) WriteGlobalStep(out, step);
  out.Close(']');
  out.Close('}');
  return out.Take();
}

}  // namespace flopledger::cli
