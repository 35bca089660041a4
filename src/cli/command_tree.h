#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace flopledger::cli {

/// An option as completions and the manual show it.
struct OptionWords {
  std::string name;  ///< `--json`, or the name of a positional
  bool positional = false;
  bool takes_value = false;
  bool repeats = false;
  bool required = false;
  std::string description;
  std::string value_name;            ///< `FILE`, `INT`
  std::vector<std::string> choices;  ///< of a closed set
  std::string default_text;
};

/// A subcommand, read from the tree that parses the command line, so that there is one list.
struct CommandWords {
  std::string name;
  std::string description;
  std::vector<std::string> examples;
  std::vector<OptionWords> options;
};

OptionWords ReadOption(const CLI::Option& option);

/// Every subcommand, in the order of `--help`. Thread: any.
std::vector<CommandWords> ReadCommandTree(const CLI::App& app);

/// Completion scripts. Names of files complete where a positional or a path is wanted.
std::string WriteBashCompletion(const std::vector<CommandWords>& commands);
std::string WriteZshCompletion(const std::vector<CommandWords>& commands);
std::string WriteFishCompletion(const std::vector<CommandWords>& commands);

/// The manual page, for man(1).
std::string WriteManual(const std::vector<CommandWords>& commands);

}  // namespace flopledger::cli
