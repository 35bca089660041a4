#include "export/exit_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "export/report_text.h"

namespace flopledger {
namespace {

constexpr int kBarWidth = 30;

using Out = std::back_insert_iterator<std::string>;

void Line(std::string* text, std::string_view name, std::string_view value) {
  fmt::format_to(Out(*text), "  {:<12} {}\n", name, value);
}

std::string RatioText(const std::optional<double>& ratio, std::string_view reason) {
  return ratio ? PercentText(*ratio) : fmt::format("N/A ({})", reason);
}

std::string_view MissingMfu(const RunTotals& totals) {
  if (totals.steps[0] == 0) return "no complete step";
  return totals.eligible_peak.empty() ? "no peak for the dtype" : "no model formula";
}

DurationNs UnknownTime(const RunTotals& totals) {
  DurationNs unknown;
  for (const auto& by_coverage : totals.kernel_time) {
    unknown += by_coverage[static_cast<std::size_t>(CoverageKind::kUnknown)];
  }
  return unknown;
}

// Lower bound, and an upper one where work is uncounted: [low, low + unknown time / wall].
std::string HfuText(const RunTotals& totals) {
  const auto low = totals.HfuLowRatio();
  if (!low) return RatioText(low, MissingMfu(totals));
  DurationNs device_time;
  for (DurationNs time : totals.device_time) device_time += time;
  if (device_time.ns() <= 0) return PercentText(*low);
  return IntervalText(*low, *low + UnknownTime(totals).seconds() / device_time.seconds());
}

void AddTimes(const RunTotals& totals, std::string* text) {
  Line(text, "steps",
       fmt::format("{} complete, {} warmup, {} incomplete", totals.steps[0], totals.steps[1],
                   totals.steps[2]));
  std::string excluded;
  for (const auto& [reason, time] : totals.excluded) {
    fmt::format_to(Out(excluded), "{}{} {}", excluded.empty() ? "; excluded: " : ", ", reason,
                   TimeText(time));
  }
  Line(text, "wall", fmt::format("{} in complete steps{}", TimeText(totals.wall), excluded));
  if (totals.steps[0] > 0) {
    Line(text, "mean step", TimeText(DurationNs(totals.wall.ns() / totals.steps[0])));
  }
  if (totals.useful_tokens > 0 && totals.wall.ns() > 0) {
    Line(text, "tokens",
         fmt::format("{} useful, {} padding; {} useful tok/s",
                     CountText(static_cast<double>(totals.useful_tokens)),
                     CountText(static_cast<double>(totals.padding_tokens)),
                     CountText(static_cast<double>(totals.useful_tokens) / totals.wall.seconds())));
  }
}

void AddRatios(const RunTotals& totals, std::string* text) {
  Line(text, "MFU",
       RatioText(totals.useful_forward.count() + totals.useful_backward.count() > 0
                     ? totals.MfuRatio()
                     : std::nullopt,
                 MissingMfu(totals)));
  Line(text, "HFU", totals.executed.empty() ? "N/A (nothing observed)" : HfuText(totals));
  Line(text, "goodput",
       RatioText(totals.GoodputRatio(), MissingMfu(totals)) +
           " (useful work over everything since the start)");
  Line(text, "coverage", RatioText(totals.CoverageTimeRatio(), "nothing observed"));
  Line(text, "recompute", RatioText(totals.RecomputeRatio(), "nothing observed"));
}

void AddIdentity(const RunTotals& totals, std::string* text) {
  const std::pair<const char*, Flops> lines[] = {
      {"executed E", totals.ExecutedTotal()},
      {"useful U", totals.useful_forward + totals.useful_backward},
      {"recompute R", totals.recomputed},
      {"auxiliary A", totals.auxiliary},
      {"padding P", totals.padding},
      {"excess X", totals.excess_positive - totals.excess_negative},
      {"unexplained e", totals.unexplained_positive - totals.unexplained_negative},
  };
  const bool observed = totals.kernels != RunTotals().kernels;
  *text += "FLOPs, E = U + R + A + P + X + e\n";
  const double executed = totals.ExecutedTotal().ToDouble();
  std::size_t width = 0;
  for (const auto& [name, flops] : lines) width = std::max(width, flops.ToString().size());
  for (const auto& [name, flops] : lines) {
    const std::string_view term = name;
    if (!observed && term != "useful U" && term != "padding P") {
      fmt::format_to(Out(*text), "  {:<13} not observed\n", name);  // unknown is not zero
      continue;
    }
    fmt::format_to(
        Out(*text), "  {:<13} {:>{}}{}\n", name, flops.ToString(), width,
        executed > 0 ? fmt::format("  {:>8}", PercentText(flops.ToDouble() / executed)) : "");
  }
}

void AddWaterfall(const RunTotals& totals, std::string* text) {
  const double peak = totals.PeakTotal().ToDouble();
  if (peak <= 0 || totals.lost_peak.empty()) return;
  std::vector<std::pair<std::string, double>> lines;
  lines.reserve(totals.lost_peak.size());
  for (const auto& [cause, flops] : totals.lost_peak) {
    lines.emplace_back(cause, flops.ToDouble() / peak);
  }
  std::sort(lines.begin(), lines.end(), [](const auto& a, const auto& b) {
    return a.second != b.second ? a.second > b.second : a.first < b.first;
  });
  *text += "where the peak went\n";
  for (const auto& [cause, share] : lines) {
    if (share <= 0) continue;
    const auto filled = static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * kBarWidth + 0.5);
    fmt::format_to(Out(*text), "  {:>8}  {:<{}}  {}: {}\n", PercentText(share),
                   std::string(filled, '#'), kBarWidth, cause, CauseText(cause));
  }
}

void AddGaps(const std::vector<CoverageGap>& gaps, std::string* text) {
  if (gaps.empty()) return;
  *text += "not counted\n";
  for (const CoverageGap& gap : gaps) {
    fmt::format_to(Out(*text), "  {:>10}  {} launches  {} ({})\n", TimeText(gap.time), gap.launches,
                   KernelText(gap.name), ToString(gap.reason));
  }
}

void AddProvenance(const RunDescription& run, const RunTotals& totals, std::string* text) {
  *text += "how\n";
  bool has_peak = false;
  for (const PeakRate& peak : run.peaks) {
    if (peak.dtype != run.peak_dtype || peak.sparse) continue;
    has_peak = true;
    std::string spread;
    if (peak.spread_low_ratio && peak.spread_high_ratio) {
      spread = fmt::format(", spread {} to {}", PercentText(*peak.spread_low_ratio),
                           PercentText(*peak.spread_high_ratio));
    }
    Line(text, "peak",
         fmt::format("{} {} on {}, {}: {}{}", RateText(peak.rate.value()), ToString(peak.dtype),
                     peak.device_model, ToString(peak.evidence), peak.source, spread));
  }
  if (!has_peak) Line(text, "peak", fmt::format("unknown for {}", ToString(run.peak_dtype)));
  Line(text, "convention", fmt::format("{} ({:016x})", run.convention.name, run.convention.hash));
  Line(text, "model", run.model.empty() ? "no formula" : run.model);
  std::string losses;
  for (const auto& [key, count] : totals.dropped) {
    fmt::format_to(Out(losses), "{}{} {} ({})", losses.empty() ? "" : ", ", count,
                   ToString(key.first), ToString(key.second));
  }
  Line(text, "lost records", losses.empty() ? "none" : losses);
  if (totals.late_records > 0) Line(text, "late records", fmt::format("{}", totals.late_records));
  if (totals.wall.ns() > 0) {
    Line(text, "own time",
         fmt::format("{} beside the training ({} of wall time)", TimeText(totals.overhead),
                     PercentText(totals.overhead.seconds() / totals.wall.seconds())));
  }
}

}  // namespace

std::string RenderSummary(const RunDescription& run, const RunTotals& totals,
                          const std::vector<CoverageGap>& gaps) {
  std::string text = fmt::format("flopledger {}: run {}, rank {} of {}\n", run.version,
                                 run.identity.run_id, run.identity.rank, run.identity.world_size);
  AddTimes(totals, &text);
  AddRatios(totals, &text);
  AddIdentity(totals, &text);
  AddWaterfall(totals, &text);
  AddGaps(gaps, &text);
  AddProvenance(run, totals, &text);
  return text;
}

}  // namespace flopledger
