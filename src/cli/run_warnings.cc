#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "cli/global_steps.h"

namespace flopledger::cli {
namespace {

std::string List(const std::vector<int>& ranks) {
  constexpr std::size_t kShown = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(ranks.size(), kShown); ++i) {
    text += fmt::format("{}{}", i == 0 ? "" : ", ", ranks[i]);
  }
  if (ranks.size() > kShown) text += fmt::format(" and {} more", ranks.size() - kShown);
  return text;
}

void AddLogWarnings(const RankLog& log, std::vector<std::string>* warnings) {
  const std::string& path = log.paths.back();
  if (log.has_cut_line) {
    warnings->push_back(
        fmt::format("{}: the last line is cut (the process was killed while it wrote); the steps "
                    "before it are whole",
                    path));
  } else if (!log.has_summary) {
    warnings->push_back(
        fmt::format("{}: no summary; the run is still going, or it was killed", path));
  }
  if (log.unreadable_lines > 0) {
    warnings->push_back(
        fmt::format("{}: {} lines are not of a step log, the first is line {}; left "
                    "out",
                    path, log.unreadable_lines, log.first_unreadable_line));
  }
  if (log.repeated_steps > 0) {
    warnings->push_back(fmt::format(
        "rank {}: {} steps are there twice (a restart from a checkpoint?); the last one counts",
        log.run.identity.rank, log.repeated_steps));
  }
}

/// Each note once, however many ranks have it.
void AddNotes(const RunReport& report, std::vector<std::string>* warnings) {
  std::vector<std::pair<std::string, std::vector<const RankLog*>>> notes;
  for (const RankLog& log : report.logs.ranks) {
    for (const std::string& note : log.notes) {
      const auto known = std::find_if(notes.begin(), notes.end(),
                                      [&](const auto& other) { return other.first == note; });
      if (known == notes.end()) {
        notes.push_back({note, {&log}});
      } else if (known->second.back() != &log) {
        known->second.push_back(&log);
      }
    }
  }
  for (const auto& [note, logs] : notes) {
    warnings->push_back(logs.size() == 1 ? fmt::format("{}: {}", logs.front()->paths.back(), note)
                                         : fmt::format("{} ranks: {}", logs.size(), note));
  }
}

/// Step numbers that no rank has, between the first and the last.
std::int64_t HolesOf(const RunReport& report) {
  if (report.steps.empty()) return 0;
  return report.steps.back().step - report.steps.front().step + 1 -
         static_cast<std::int64_t>(report.steps.size());
}

}  // namespace

void AddWarnings(RunReport* report) {
  std::vector<std::string>& warnings = report->warnings;
  AddNotes(*report, &warnings);
  for (const RankLog& log : report->logs.ranks) AddLogWarnings(log, &warnings);
  if (!report->missing_ranks.empty()) {
    warnings.push_back(
        fmt::format("ranks {} of {} have no log here: figures of the whole run cannot "
                    "be given",
                    List(report->missing_ranks), report->run.identity.world_size));
  }
  for (const RankFigures& rank : report->ranks) {
    if (rank.missing_steps == 0) continue;
    warnings.push_back(
        fmt::format("rank {} lacks {} steps that other ranks closed; they are left "
                    "out",
                    rank.rank, rank.missing_steps));
  }
  if (const std::int64_t holes = HolesOf(*report); holes > 0) {
    warnings.push_back(fmt::format("{} step numbers between {} and {} are in no log", holes,
                                   report->steps.front().step, report->steps.back().step));
  }
  std::set<std::string> models;
  std::set<int> worlds;
  for (const RankLog& log : report->logs.ranks) {
    models.insert(log.run.model);
    worlds.insert(log.run.identity.world_size);
  }
  if (models.size() > 1) {
    warnings.push_back(
        fmt::format("ranks declare {} different model formulas: right for pipeline stages only",
                    models.size()));
  }
  if (worlds.size() > 1) warnings.emplace_back("ranks disagree about the number of ranks");
  if (!report->logs.shared_clock) {
    warnings.emplace_back(
        "the ranks are on several hosts: step windows are as exact as the hosts' wall clocks");
  }
}

}  // namespace flopledger::cli
