#pragma once

#include <CLI/CLI.hpp>

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
void AddRulesCommand(CLI::App& app, int* exit_code);
void AddDashboardCommand(CLI::App& app, int* exit_code);
void AddVersionCommand(CLI::App& app, int* exit_code);

/// A subcommand whose help begins with its examples.
CLI::App* AddCommand(CLI::App& app, const char* name, const char* description,
                     const char* examples);

/// Parses and runs; texts go to standard output and standard error. Never throws.
int RunProgram(int argc, const char* const* argv);

}  // namespace flopledger::cli
