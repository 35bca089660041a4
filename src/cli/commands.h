#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "cli/rank_logs.h"
#include "flopledger/status.h"

namespace flopledger::cli {

/// What the program returns: DESIGN section 9, `docs/`.
enum ExitCode : int {
  kOk = 0,
  kFinding = 1,
  kUsage = 2,
  kBadInput = 3,
  kMissingCapability = 4,
  kInternal = 70,
};

/// Each adds one subcommand; its callback leaves the exit code in `exit_code`, which outlives the
/// application.
void AddPublishedCommand(CLI::App& app, int* exit_code);
void AddPeaksCommand(CLI::App& app, int* exit_code);
void AddExplainCommand(CLI::App& app, int* exit_code);
void AddReplayCommand(CLI::App& app, int* exit_code);
void AddReportCommand(CLI::App& app, int* exit_code);
void AddDiffCommand(CLI::App& app, int* exit_code);
void AddServeCommand(CLI::App& app, int* exit_code);
void AddDoctorCommand(CLI::App& app, int* exit_code);
void AddRulesCommand(CLI::App& app, int* exit_code);
void AddDashboardCommand(CLI::App& app, int* exit_code);
void AddCompletionCommand(CLI::App& app, int* exit_code);
void AddManualCommand(CLI::App& app, int* exit_code);
void AddVersionCommand(CLI::App& app, int* exit_code);

/// A subcommand whose help begins with its examples.
CLI::App* AddCommand(CLI::App& app, const char* name, const char* description,
                     const char* examples);

/// `--steps FIRST:LAST`, into options that outlive the application.
void AddStepRange(CLI::App* command, RunLogOptions* options);

/// `--step-name PATTERN`: which ranges of a trace are steps.
void AddStepNames(CLI::App* command, std::vector<std::string>* names);

/// Says why an input is refused, and returns kBadInput.
int Refuse(const Status& status);

/// Writes a file, or standard output for `-`; what went wrong, or nothing.
std::optional<Status> WriteFile(const std::string& path, const std::string& text);

/// Parses and runs; texts go to standard output and standard error. Never throws.
int RunProgram(int argc, const char* const* argv);

}  // namespace flopledger::cli
