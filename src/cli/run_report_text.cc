#include "cli/run_report_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "export/report_text.h"

namespace flopledger::cli {
namespace {

constexpr int kBarWidth = 30;
constexpr std::size_t kRanksShown = 16;
constexpr std::size_t kGapsShown = 10;
constexpr std::size_t kWarningsShown = 12;

using Out = std::back_insert_iterator<std::string>;

void Line(std::string* text, std::string_view name, std::string_view value) {
  fmt::format_to(Out(*text), "  {:<12} {}\n", name, value);
}

std::string RatioText(const std::optional<double>& ratio, std::string_view otherwise) {
  return ratio ? PercentText(*ratio) : std::string(otherwise);
}

std::string HfuText(const RunRatios& ratios) {
  if (!ratios.hfu_low) return "N/A (nothing observed, or no peak)";
  return IntervalText(*ratios.hfu_low, ratios.hfu_high);
}

void AddHead(const RunReport& report, const Ink& ink, std::string* text) {
  std::int64_t counts[3] = {0, 0, 0};
  for (const GlobalStep& step : report.steps) ++counts[static_cast<int>(step.result)];
  *text += ink.Bold(fmt::format("run {}, {} of {} ranks", Printable(report.run.identity.run_id),
                                report.ranks.size(), report.run.identity.world_size));
  if (!report.steps.empty()) {
    fmt::format_to(Out(*text), ", steps {} to {}: {} complete, {} warmup, {} incomplete",
                   report.steps.front().step, report.steps.back().step, counts[0], counts[1],
                   counts[2]);
  }
  *text += "\n";
}

void AddRatios(const RunReport& report, const Ink& ink, std::string* text) {
  const RunRatios& ratios = report.ratios;
  const RunRatios& given = report.given_ratios;
  std::string mfu =
      ratios.mfu ? ink.Bold(PercentText(*ratios.mfu)) : fmt::format("N/A ({})", ratios.refusal);
  if (!ratios.mfu && given.mfu) {
    mfu += fmt::format("; of the ranks given: {}", PercentText(*given.mfu));
  }
  Line(text, "MFU", mfu);
  Line(
      text, "HFU",
      ratios.hfu_low || !given.hfu_low ? HfuText(ratios) : "of the ranks given: " + HfuText(given));
  Line(text, "coverage", RatioText(ratios.coverage_time, "N/A (nothing observed)"));
  Line(text, "recompute", RatioText(ratios.recompute, "N/A (nothing observed)"));
  const StepSpread& spread = report.spread;
  if (spread.steps > 0) {
    Line(text, "step",
         fmt::format("{} mean, {} median, {} to {} for 9 in 10",
                     TimeText(DurationNs(static_cast<std::int64_t>(spread.mean_seconds * 1e9))),
                     TimeText(DurationNs(static_cast<std::int64_t>(spread.median_seconds * 1e9))),
                     TimeText(DurationNs(static_cast<std::int64_t>(spread.low_seconds * 1e9))),
                     TimeText(DurationNs(static_cast<std::int64_t>(spread.high_seconds * 1e9)))));
    Line(text, "window",
         fmt::format("{} in complete steps, first start to last end over the ranks",
                     TimeText(report.window)));
  }
  if (report.totals.useful_tokens > 0 && report.window.ns() > 0) {
    const auto useful = static_cast<double>(report.totals.useful_tokens);
    const auto padding = static_cast<double>(report.totals.padding_tokens);
    Line(text, "tokens",
         fmt::format("{} useful tok/s, {} padding", CountText(useful / report.window.seconds()),
                     PercentText(padding / (useful + padding))));
  }
}

void AddPeaks(const RunReport& report, std::string* text) {
  for (const SharedPeak& shared : report.peaks) {
    std::string peak = fmt::format("unknown for {}", ToString(shared.dtype));
    if (shared.peak) {
      peak = fmt::format("{} {} on {}, {}: {}", RateText(shared.peak->rate.value()),
                         ToString(shared.dtype), Printable(shared.peak->device_model),
                         ToString(shared.peak->evidence), Printable(shared.peak->source));
    }
    Line(text, "peak", report.ranks.size() < 2 ? peak : fmt::format("{} x {}", shared.ranks, peak));
  }
  Line(text, "convention",
       fmt::format("{} ({:016x})", report.run.convention.name, report.run.convention.hash));
  Line(text, "model", report.run.model.empty() ? "no formula" : Printable(report.run.model));
}

void AddRanks(const RunReport& report, const Ink& ink, std::string* text) {
  if (report.ranks.size() < 2) return;
  std::vector<const RankFigures*> shown;
  shown.reserve(report.ranks.size());
  for (const RankFigures& rank : report.ranks) shown.push_back(&rank);
  if (shown.size() > kRanksShown) {
    std::stable_sort(shown.begin(), shown.end(), [](const auto* a, const auto* b) {
      return a->own_over_ratio > b->own_over_ratio;
    });
    shown.resize(kRanksShown);
  }
  *text += ink.Bold("ranks") + "\n";
  fmt::format_to(Out(*text), "  {:>5}  {:>8}  {:>8}  {:>8}  {:>9}  {:>10}  {}\n", "rank", "MFU",
                 "HFU", "coverage", "own time", "slowest in", "device");
  for (const RankFigures* rank : shown) {
    const std::string over = fmt::format("{:+.1f} %", rank->own_over_ratio * 100);
    const std::string padded = fmt::format("{:>9}", over);
    fmt::format_to(Out(*text), "  {:>5}  {:>8}  {:>8}  {:>8}  {}  {:>10}  {}\n", rank->rank,
                   RatioText(rank->ratios.mfu, "-"), RatioText(rank->ratios.hfu_low, "-"),
                   RatioText(rank->ratios.coverage_time, "-"),
                   rank->own_over_ratio >= kStragglerRatio ? ink.Warn(padded) : padded,
                   rank->times_slowest, Printable(rank->device_model));
  }
  if (shown.size() < report.ranks.size()) {
    fmt::format_to(Out(*text), "  and {} more that are faster; --json has all\n",
                   report.ranks.size() - shown.size());
  }
  *text +=
      "  own time: wall minus exposed communication, against the middle one of the other "
      "ranks\n";
  const auto slow = Stragglers(report);
  for (std::size_t i = 0; i < std::min<std::size_t>(slow.size(), 3); ++i) {
    fmt::format_to(Out(*text),
                   "  {} rank {} is {} slower than the others, slowest in {} of {} "
                   "steps\n",
                   ink.Warn("straggler:"), slow[i]->rank, PercentText(slow[i]->own_over_ratio),
                   slow[i]->times_slowest, report.spread.steps);
  }
}

void AddWaterfall(const RunReport& report, const Ink& ink, std::string* text) {
  const double peak = report.peak.ToDouble();
  if (report.waterfall.empty() || peak <= 0) return;
  *text += ink.Bold("where the peak went") + "\n";
  for (const WaterfallLine& line : report.waterfall) {
    const double share = line.flops.ToDouble() / peak;
    if (line.flops.count() == 0) continue;
    const auto filled = static_cast<std::size_t>(std::clamp(share, 0.0, 1.0) * kBarWidth + 0.5);
    fmt::format_to(Out(*text), "  {:>8}  {:<{}}  {}: {}\n", PercentText(share),
                   std::string(filled, '#'), kBarWidth, line.cause, CauseMeaning(line.cause));
  }
}

void AddGaps(const RunReport& report, const Ink& ink, std::string* text) {
  if (report.gaps.empty()) return;
  *text += ink.Bold("not counted") + "\n";
  for (std::size_t i = 0; i < std::min(report.gaps.size(), kGapsShown); ++i) {
    const CoverageGap& gap = report.gaps[i];
    fmt::format_to(Out(*text), "  {:>10}  {} launches  {} ({})\n", TimeText(gap.time), gap.launches,
                   Printable(gap.name), ToString(gap.reason));
  }
  if (report.gaps.size() > kGapsShown) {
    fmt::format_to(Out(*text), "  and {} more names\n", report.gaps.size() - kGapsShown);
  }
}

void AddNotes(const RunReport& report, const Ink& ink, std::string* text) {
  std::string lost;
  for (const auto& [key, count] : report.totals.dropped) {
    fmt::format_to(Out(lost), "{}{} {} ({})", lost.empty() ? "" : ", ", count, ToString(key.first),
                   ToString(key.second));
  }
  Line(text, "lost records", lost.empty() ? "none" : lost);
  if (!report.findings.empty()) *text += ink.Bold("findings") + "\n";
  for (const FindingCount& finding : report.findings) {
    fmt::format_to(Out(*text), "  {} in {} steps, ratio {:.4g}: {}\n", ink.Warn(finding.id),
                   finding.steps, finding.worst_ratio, Printable(finding.suspect));
  }
  if (!report.warnings.empty()) *text += ink.Bold("about the input") + "\n";
  for (std::size_t i = 0; i < std::min(report.warnings.size(), kWarningsShown); ++i) {
    fmt::format_to(Out(*text), "  {}\n", Printable(report.warnings[i]));
  }
  if (report.warnings.size() > kWarningsShown) {
    fmt::format_to(Out(*text), "  and {} more; --json has all\n",
                   report.warnings.size() - kWarningsShown);
  }
}

}  // namespace

std::string CauseMeaning(std::string_view cause) {
  if (cause == kRankSkew) return "a rank was in no step of its own while others were";
  return CauseText(cause);
}

std::string WriteText(const RunReport& report, const Ink& ink) {
  std::string text;
  AddHead(report, ink, &text);
  AddRatios(report, ink, &text);
  AddPeaks(report, &text);
  AddRanks(report, ink, &text);
  AddWaterfall(report, ink, &text);
  AddGaps(report, ink, &text);
  AddNotes(report, ink, &text);
  return text;
}

}  // namespace flopledger::cli
