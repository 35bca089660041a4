#include "cli/replay_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "export/report_text.h"

namespace flopledger::cli {
namespace {

std::string Share(std::int64_t part, std::int64_t whole) {
  if (whole <= 0) return "-";
  return PercentText(static_cast<double>(part) / static_cast<double>(whole));
}

std::string Milliseconds(std::int64_t ns) {
  return fmt::format("{:.3f} ms", static_cast<double>(ns) * 1e-6);
}

std::int64_t LengthOf(const TimeSpan& span) { return span.end_ns - span.start_ns; }

// A sum of nothing is a zero only where nothing was left out of it.
bool MayMissFlops(const TraceDescription& trace) {
  return std::any_of(trace.gaps.begin(), trace.gaps.end(), [](const TraceGap& gap) {
    return gap.kind == "no_shapes" || gap.kind == "no_op";
  });
}

std::string FlopsText(const Flops& flops, bool may_miss) {
  return flops.count() == 0 && may_miss ? "unknown" : flops.ToString();
}

void AddDevice(std::string& text, const ReplayDevice& device, bool may_miss) {
  const DeviceActivity& at = device.activity;
  const std::int64_t span = LengthOf(at.span);
  const std::string name =
      device.description.name.empty() ? "name not recorded" : Printable(device.description.name);
  text += fmt::format("\n  device {} ({})\n", device.description.device, name);
  const auto line = [&text](std::string_view label, const std::string& value) {
    text += fmt::format("    {:<24} {}\n", label, value);
  };
  line("work", fmt::format("{} kernels, {} copies, {} fills", at.kernels, at.memcpys, at.memsets));
  line("first to last", Milliseconds(span));
  line("busy", fmt::format("{}  {}  (kernels alone {})", Milliseconds(at.busy_all_ns),
                           Share(at.busy_all_ns, span), Milliseconds(at.busy_kernels_ns)));
  line("idle", fmt::format("{}  {}", Milliseconds(at.idle_ns), Share(at.idle_ns, span)));
  line("kernel time, summed", Milliseconds(at.kernel_time_sum_ns));
  line("communication",
       fmt::format("{}, of which exposed {}  {}", Milliseconds(at.communication_union_ns),
                   Milliseconds(at.exposed_communication_ns),
                   Share(at.exposed_communication_ns, span)));
  const std::string counted = FlopsText(device.flops.all_pairs, may_miss);
  line("FLOPs counted", device.flops.all_pairs == device.flops.executed
                            ? counted
                            : fmt::format("{}  (causal masks respected: {})", counted,
                                          device.flops.executed.ToString()));
  if (device.flops.recomputed.count() > 0) {
    line("of them recomputed", device.flops.recomputed_all_pairs.ToString());
  }
  line("in ops with a rule",
       fmt::format("{}  {} of kernel time", Milliseconds(device.counted_kernel_time_ns),
                   Share(device.counted_kernel_time_ns, at.kernel_time_sum_ns)));
  if (at.unlaunched > 0) {
    line("launch not recorded",
         fmt::format("{} pieces, {}", at.unlaunched, Milliseconds(at.unlaunched_ns)));
  }
}

void AddSteps(std::string& text, const std::vector<ReplayStep>& steps, bool may_miss) {
  if (steps.empty()) return;
  std::size_t width = 4;
  for (const ReplayStep& step : steps) width = std::max(width, step.name.size());
  text += fmt::format("\n    {:<{}}  {:>14}  {:>14}  {:>14}  {:>8}  {:>20}\n", "step", width,
                      "host", "device window", "device busy", "kernels", "FLOPs");
  for (const ReplayStep& step : steps) {
    const StepActivity& at = step.activity;
    const bool window = at.device_window.has_value();
    text += fmt::format("    {:<{}}  {:>14}  {:>14}  {:>14}  {:>8}  {:>20}\n", Printable(step.name),
                        width, Milliseconds(LengthOf(at.host)),
                        window ? Milliseconds(LengthOf(*at.device_window)) : "-",
                        window ? Milliseconds(at.device_busy_ns) : "-", at.launched_kernels,
                        FlopsText(step.flops.all_pairs, may_miss));
  }
}

void AddBooks(std::string& text, const ReplayTrace& trace) {
  const bool any = std::any_of(trace.reports.begin(), trace.reports.end(), [](const StepReport& r) {
    return r.utilization.mfu_ratio || r.utilization.hfu_low_ratio;
  });
  if (!any) {
    if (!trace.peak_refusal.empty()) {
      text += fmt::format("\n    no MFU, no HFU: {}\n", Printable(trace.peak_refusal));
      text += "    --dtype names another element type, --peak gives a rate\n";
    }
    return;
  }
  text += "\n    the books of a live run, from device completion to device completion\n";
  for (const StepReport& report : trace.reports) {
    const Utilization& use = report.utilization;
    text += fmt::format(
        "    step {:<8} wall {:>14}  MFU {:>8}  HFU {:>18}\n", report.step,
        Milliseconds(report.wall.ns()), use.mfu_ratio ? PercentText(*use.mfu_ratio) : "-",
        use.hfu_low_ratio ? IntervalText(*use.hfu_low_ratio, use.hfu_high_ratio) : "-");
  }
}

void AddRemarks(std::string& text, const TraceDescription& trace, const Ink& ink) {
  if (!trace.counters.empty()) text += "\n  hardware counters, summed over their ranges\n";
  for (const TraceCounter& counter : trace.counters) {
    text += fmt::format("    {:>18}  {} ({} ranges)\n", counter.sum, Printable(counter.name),
                        counter.ranges);
  }
  if (!trace.gaps.empty()) text += "\n  gaps\n";
  for (const TraceGap& gap : trace.gaps) {
    text += fmt::format("    {} {}: {}{}\n", ink.Warn(gap.kind), gap.count,
                        gap.time.ns() > 0 ? Milliseconds(gap.time.ns()) + ", " : "",
                        Printable(gap.text));
  }
  if (!trace.warnings.empty()) text += "\n  warnings\n";
  for (const TraceWarning& warning : trace.warnings) {
    text += fmt::format("    {} {}: {}\n", ink.Warn(warning.kind), warning.count,
                        Printable(warning.text));
  }
}

void AddGlobalStep(std::string& text, const GlobalStep& step) {
  text += fmt::format("\n  {}: {} from the first begin to the last end, {} FLOPs\n",
                      Printable(step.name), Milliseconds(LengthOf(step.window)),
                      step.all_pairs.ToString());
  for (const GlobalStep::Rank& rank : step.ranks) {
    text +=
        fmt::format("    {:<10} {:>14} to {:>14}  {}\n",
                    rank.rank ? fmt::format("rank {}", *rank.rank) : "rank ?",
                    Milliseconds(rank.host.start_ns - step.window.start_ns),
                    Milliseconds(rank.host.end_ns - step.window.start_ns), Printable(rank.trace));
  }
}

}  // namespace

std::string WriteText(const ReplayResult& result, const Ink& ink) {
  std::string text;
  for (const ReplayTrace& trace : result.traces) {
    const TraceDescription& about = trace.description;
    const bool may_miss = MayMissFlops(about);
    text += ink.Bold(Printable(trace.file));
    if (!about.name.empty()) text += " " + Printable(about.name);
    text += fmt::format("  {}, {} events", about.format, about.events);
    if (about.rank) text += fmt::format(", rank {}", *about.rank);
    if (about.world_size) text += fmt::format(" of {}", *about.world_size);
    text += "\n";
    for (const ReplayDevice& device : trace.devices) {
      AddDevice(text, device, may_miss);
      AddSteps(text, device.steps, may_miss);
    }
    if (trace.devices.empty()) AddSteps(text, trace.total.steps, may_miss);
    AddBooks(text, trace);
    AddRemarks(text, about, ink);
    text += "\n";
  }
  if (!result.global_steps.empty()) text += ink.Bold("all ranks") + "\n";
  for (const GlobalStep& step : result.global_steps) AddGlobalStep(text, step);
  return text;
}

}  // namespace flopledger::cli
