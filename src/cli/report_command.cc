#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/html_report.h"
#include "cli/run_report.h"
#include "cli/run_report_text.h"

namespace flopledger::cli {
namespace {

struct ReportOptions {
  std::vector<std::string> paths;
  RunLogOptions logs;
  std::string html_path;
  bool json = false;
  bool check = false;
};

int RunReportCommand(const ReportOptions& options) {
  Result<RunLogs> logs = ReadRunLogs(options.paths, options.logs);
  if (!logs.has_value()) return Refuse(logs.error());
  const RunReport report = BuildRunReport(*std::move(logs));
  if (!options.html_path.empty()) {
    const std::optional<Status> fault = WriteFile(options.html_path, WriteHtml(report));
    if (fault) return Refuse(*fault);
  }
  if (options.json) {
    std::cout << WriteJson(report, /*with_steps=*/true);
  } else if (options.html_path != "-") {
    std::cout << WriteText(report, Ink::ForStandardOutput());
  }
  const bool clean = report.findings.empty() && report.missing_ranks.empty() &&
                     report.totals.dropped.empty() && Stragglers(report).empty() &&
                     report.spread.steps > 0;
  return options.check && !clean ? kFinding : kOk;
}

}  // namespace

void AddReportCommand(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<ReportOptions>();
  CLI::App* command =
      AddCommand(app, "report", "Reports on a run from its step logs, over one or many ranks.",
                 "  flopledger report run.jsonl\n"
                 "  flopledger report 'logs/rank*.jsonl'\n"
                 "  flopledger report logs/ --html report.html\n"
                 "  flopledger report logs/ --steps 100:200 --json\n"
                 "  flopledger report logs/ --check");
  command
      ->add_option("FILE", options->paths,
                   "step logs (JSONL) or traces, folders of logs, quoted patterns")
      ->required();
  command->add_option("--run", options->logs.run_id, "id of the run, of files with several runs");
  AddStepRange(command, &options->logs);
  AddStepNames(command, &options->logs.step_names);
  command->add_option("--html", options->html_path,
                      "write one page with pictures to this file; - is standard output");
  command->add_flag("--json", options->json, "one object for programs, see docs/cli.md");
  command->add_flag("--check", options->check,
                    "exit 1 if there is a finding, a loss, a straggler or a missing rank");
  command->callback([options, exit_code] { *exit_code = RunReportCommand(*options); });
}

}  // namespace flopledger::cli
