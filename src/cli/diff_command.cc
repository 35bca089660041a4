#include <iostream>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/run_diff.h"

namespace flopledger::cli {
namespace {

struct DiffOptions {
  std::string before;
  std::string after;
  RunLogOptions logs;
  double tolerance_percent = 2;
  bool json = false;
  bool check = false;
};

int RunDiffCommand(const DiffOptions& options) {
  Result<RunLogs> before = ReadRunLogs({options.before}, options.logs);
  if (!before.has_value()) return Refuse(before.error());
  Result<RunLogs> after = ReadRunLogs({options.after}, options.logs);
  if (!after.has_value()) return Refuse(after.error());
  const RunReport a = BuildRunReport(*std::move(before));
  const RunReport b = BuildRunReport(*std::move(after));
  const RunDiff diff = CompareRuns(a, b);
  std::cout << (options.json ? WriteJson(diff, a, b)
                             : WriteText(diff, a, b, Ink::ForStandardOutput()));
  const bool slower = diff.verdict == SpeedVerdict::kSlower &&
                      diff.change_ratio() * 100 > options.tolerance_percent;
  const bool comparable = diff.verdict != SpeedVerdict::kUnknown;
  return options.check && (slower || !comparable) ? kFinding : kOk;
}

}  // namespace

void AddDiffCommand(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<DiffOptions>();
  CLI::App* command =
      AddCommand(app, "diff", "Compares two runs: what changed, in which cause, by how much.",
                 "  flopledger diff before.jsonl after.jsonl\n"
                 "  flopledger diff before/ after/ --steps 20: --json\n"
                 "  flopledger diff before.json.gz after.json.gz\n"
                 "  flopledger diff main.jsonl branch.jsonl --check --tolerance 2");
  command
      ->add_option("A", options->before,
                   "the run before: step log, folder of logs, quoted pattern or trace")
      ->required();
  command->add_option("B", options->after, "the run after")->required();
  AddStepRange(command, &options->logs);
  AddStepNames(command, &options->logs.step_names);
  command->add_flag("--json", options->json, "one object for programs, see docs/cli.md");
  CLI::Option* check = command->add_flag(
      "--check", options->check, "exit 1 if B is slower beyond the noise and the tolerance");
  command
      ->add_option("--tolerance", options->tolerance_percent, "how much slower is accepted, in %")
      ->check(CLI::Range(0.0, 1000.0))
      ->capture_default_str()
      ->needs(check);
  command->callback([options, exit_code] { *exit_code = RunDiffCommand(*options); });
}

}  // namespace flopledger::cli
