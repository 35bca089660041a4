#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/run_diff.h"
#include "cli/run_report_text.h"
#include "export/report_json.h"
#include "export/report_text.h"

namespace flopledger::cli {
namespace {

using Json = nlohmann::ordered_json;
using Out = std::back_insert_iterator<std::string>;

constexpr double kTokensShown = 1000;
constexpr std::size_t kNamesShown = 5;

/// Times of a token are shown for a thousand.
double Shown(const RunDiff& diff, double seconds) {
  return diff.unit == DiffUnit::kToken ? seconds * kTokensShown : seconds;
}

std::string UnitText(const RunDiff& diff) {
  return diff.unit == DiffUnit::kToken ? "1000 useful tokens" : "step";
}

std::string Seconds(double seconds) {
  return TimeText(DurationNs(static_cast<std::int64_t>(std::llround(seconds * 1e9))));
}

std::string SignedSeconds(double seconds) {
  return (seconds < 0 ? "-" : "+") + Seconds(std::abs(seconds));
}

std::string SignedPercent(double ratio) { return fmt::format("{:+.1f} %", ratio * 100); }

std::string RatioText(const std::optional<double>& ratio) {
  return ratio ? PercentText(*ratio) : "N/A";
}

std::string_view Name(SpeedVerdict verdict) {
  switch (verdict) {
    case SpeedVerdict::kFaster:
      return "faster";
    case SpeedVerdict::kSlower:
      return "slower";
    case SpeedVerdict::kWithinNoise:
      return "within_noise";
    case SpeedVerdict::kUnknown:
      break;
  }
  return "unknown";
}

void AddVerdict(const RunDiff& diff, const Ink& ink, std::string* text) {
  const std::string noise = fmt::format("noise {:.1f} %", diff.noise_ratio * 100);
  switch (diff.verdict) {
    case SpeedVerdict::kFaster:
      *text += ink.Good(fmt::format("B is faster: {} time for {}",
                                    SignedPercent(diff.change_ratio()), UnitText(diff)));
      break;
    case SpeedVerdict::kSlower:
      *text += ink.Bad(fmt::format("B is slower: {} time for {}",
                                   SignedPercent(diff.change_ratio()), UnitText(diff)));
      break;
    case SpeedVerdict::kWithinNoise:
      *text += fmt::format("no change of speed beyond the noise: {} time for {}",
                           SignedPercent(diff.change_ratio()), UnitText(diff));
      break;
    case SpeedVerdict::kUnknown:
      *text += "speed cannot be compared: a run has fewer than two complete steps\n";
      return;
  }
  fmt::format_to(Out(*text), " ({}; single steps scatter by {:.1f} % in A, {:.1f} % in B)\n", noise,
                 diff.before_step_deviation_ratio * 100, diff.after_step_deviation_ratio * 100);
}

void AddTerms(const RunDiff& diff, const Ink& ink, std::string* text) {
  if (diff.terms.empty()) return;
  *text += ink.Warn("what is counted differs") + "; this moves ratios and is no change of speed\n";
  for (const ChangedTerm& term : diff.terms) {
    fmt::format_to(Out(*text), "  {:<11} A {}\n  {:<11} B {}\n", term.what, Printable(term.before),
                   "", Printable(term.after));
  }
}

void AddFactors(const RunDiff& diff, std::string* text) {
  if (!diff.mfu_factor || !diff.speed_factor || !diff.work_factor || !diff.peak_factor) return;
  fmt::format_to(
      Out(*text), "MFU x {:.3f} = speed x {:.3f}, FLOPs for {} x {:.3f}, peak x {:.3f}\n",
      *diff.mfu_factor, *diff.speed_factor, UnitText(diff), *diff.work_factor, *diff.peak_factor);
}

void AddTable(const RunDiff& diff, const RunReport& before, const RunReport& after,
              std::string* text) {
  const auto row = [text](std::string_view name, const std::string& a, const std::string& b,
                          const std::string& change) {
    std::string line = fmt::format("  {:<32} {:>10}  {:>12}  {:>12}", name, a, b, change);
    line.erase(line.find_last_not_of(' ') + 1);
    *text += line + "\n";
  };
  row("", "A", "B", "change");
  row("time for " + UnitText(diff), Seconds(Shown(diff, diff.before_seconds)),
      Seconds(Shown(diff, diff.after_seconds)), SignedPercent(diff.change_ratio()));
  row("mean step", Seconds(before.spread.mean_seconds), Seconds(after.spread.mean_seconds), "");
  const auto ratio = [&](std::string_view name, const std::optional<double>& a,
                         const std::optional<double>& b) {
    row(name, RatioText(a), RatioText(b),
        a && b ? fmt::format("{:+.1f} points", (*b - *a) * 100) : "");
  };
  ratio("MFU", before.given_ratios.mfu, after.given_ratios.mfu);
  ratio("HFU, lower bound", before.given_ratios.hfu_low, after.given_ratios.hfu_low);
  ratio("coverage", before.ratios.coverage_time, after.ratios.coverage_time);
  ratio("recompute", before.ratios.recompute, after.ratios.recompute);
}

void AddCauses(const RunDiff& diff, const Ink& ink, std::string* text) {
  if (diff.causes.empty()) return;
  *text += ink.Bold(fmt::format("where the time of {} changed", UnitText(diff)));
  *text += diff.by_waterfall ? "\n" : " (by state of the devices: no peak)\n";
  for (const CauseChange& change : diff.causes) {
    if (change.before_seconds == 0 && change.after_seconds == 0) continue;
    fmt::format_to(Out(*text), "  {:>11}  {:>10} -> {:>10}  {}: {}\n",
                   SignedSeconds(Shown(diff, change.change_seconds())),
                   Seconds(Shown(diff, change.before_seconds)),
                   Seconds(Shown(diff, change.after_seconds)), change.cause,
                   change.cause == kMatmulWork
                       ? "matmuls, useful or not; the runs have different peaks"
                       : CauseMeaning(change.cause));
  }
}

void AddKernels(const RunDiff& diff, const Ink& ink, std::string* text) {
  if (!diff.classes.empty()) *text += ink.Bold("kernel time by class, of one rank") + "\n";
  for (const ClassChange& change : diff.classes) {
    fmt::format_to(Out(*text), "  {:>11}  {:>10} -> {:>10}  {}\n",
                   SignedSeconds(Shown(diff, change.after_seconds - change.before_seconds)),
                   Seconds(Shown(diff, change.before_seconds)),
                   Seconds(Shown(diff, change.after_seconds)), ToString(change.op_class));
  }
  const auto names = [text](const char* what, const std::vector<std::string>& list) {
    if (list.empty()) return;
    fmt::format_to(Out(*text), "{}:", what);
    for (std::size_t i = 0; i < std::min(list.size(), kNamesShown); ++i) {
      fmt::format_to(Out(*text), "{} {}", i == 0 ? "" : ",", Printable(list[i]));
    }
    if (list.size() > kNamesShown) {
      fmt::format_to(Out(*text), " and {} more", list.size() - kNamesShown);
    }
    *text += "\n";
  };
  names("not counted in B only", diff.new_gaps);
  names("not counted in A only", diff.gone_gaps);
}

std::string Head(const RunReport& report) {
  return fmt::format("{} ({} ranks, {} complete steps)", Printable(report.run.identity.run_id),
                     report.ranks.size(), report.spread.steps);
}

Json Number(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

Json SideJson(const RunReport& report, double seconds) {
  return {{"run_id", report.run.identity.run_id},
          {"ranks", report.ranks.size()},
          {"steps", report.spread.steps},
          {"seconds_per_unit", seconds},
          {"step_seconds_mean", report.spread.mean_seconds},
          {"step_seconds_deviation", report.spread.deviation_seconds},
          {"mfu_ratio", Number(report.given_ratios.mfu)},
          {"hfu_low_ratio", Number(report.given_ratios.hfu_low)},
          {"coverage_time_ratio", Number(report.ratios.coverage_time)},
          {"recompute_ratio", Number(report.ratios.recompute)},
          {"warnings", report.warnings}};
}

}  // namespace

std::string WriteText(const RunDiff& diff, const RunReport& before, const RunReport& after,
                      const Ink& ink) {
  std::string text = fmt::format("A {}\nB {}\n", Head(before), Head(after));
  AddVerdict(diff, ink, &text);
  AddTerms(diff, ink, &text);
  AddFactors(diff, &text);
  AddTable(diff, before, after, &text);
  AddCauses(diff, ink, &text);
  AddKernels(diff, ink, &text);
  for (const auto& [name, report] : {std::pair{'A', &before}, std::pair{'B', &after}}) {
    for (const std::string& warning : report->warnings) {
      fmt::format_to(Out(text), "about {}: {}\n", name, Printable(warning));
    }
  }
  return text;
}

std::string WriteJson(const RunDiff& diff, const RunReport& before, const RunReport& after) {
  Json json = {{"schema_version", kJsonSchemaVersion}, {"type", "diff"}};
  json["unit"] = diff.unit == DiffUnit::kToken ? "useful_token" : "step";
  json["before"] = SideJson(before, diff.before_seconds);
  json["after"] = SideJson(after, diff.after_seconds);
  json["verdict"] = Name(diff.verdict);
  json["change_ratio"] = diff.change_ratio();
  json["noise_ratio"] = diff.noise_ratio;
  json["mfu_factor"] = Number(diff.mfu_factor);
  json["speed_factor"] = Number(diff.speed_factor);
  json["work_factor"] = Number(diff.work_factor);
  json["peak_factor"] = Number(diff.peak_factor);
  Json terms = Json::array();
  for (const ChangedTerm& term : diff.terms) {
    terms.push_back({{"what", term.what}, {"before", term.before}, {"after", term.after}});
  }
  json["changed_terms"] = std::move(terms);
  json["causes_by"] = diff.by_waterfall ? "waterfall" : "device_state";
  Json causes = Json::array();
  for (const CauseChange& change : diff.causes) {
    causes.push_back({{"cause", change.cause},
                      {"before_seconds", change.before_seconds},
                      {"after_seconds", change.after_seconds},
                      {"change_seconds", change.change_seconds()}});
  }
  json["causes"] = std::move(causes);
  Json classes = Json::array();
  for (const ClassChange& change : diff.classes) {
    classes.push_back({{"op_class", ToString(change.op_class)},
                       {"before_seconds", change.before_seconds},
                       {"after_seconds", change.after_seconds}});
  }
  json["kernel_classes"] = std::move(classes);
  json["new_gaps"] = diff.new_gaps;
  json["gone_gaps"] = diff.gone_gaps;
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace flopledger::cli
