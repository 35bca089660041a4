#include "cli/command_tree.h"

#include <algorithm>
#include <sstream>

namespace flopledger::cli {
namespace {

/// CLI11 writes a closed set into the name of the type: `TEXT:{fleet,training}`.
std::vector<std::string> ChoicesIn(const std::string& type_name) {
  std::vector<std::string> choices;
  const std::size_t open = type_name.find('{');
  const std::size_t close = type_name.find('}', open);
  if (open == std::string::npos || close == std::string::npos) return choices;
  std::istringstream list(type_name.substr(open + 1, close - open - 1));
  for (std::string choice; std::getline(list, choice, ',');) choices.push_back(choice);
  return choices;
}

std::vector<std::string> ExamplesIn(const std::string& footer) {
  std::vector<std::string> examples;
  std::istringstream lines(footer);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t at = line.find("flopledger");
    if (at != std::string::npos) examples.push_back(line.substr(at));
  }
  return examples;
}

}  // namespace

OptionWords ReadOption(const CLI::Option& option) {
  OptionWords words;
  words.positional = option.nonpositional() == false;
  words.name = words.positional
                   ? option.get_single_name()
                   : (option.get_lnames().empty() ? "-" + option.get_snames().front()
                                                  : "--" + option.get_lnames().front());
  words.takes_value = option.get_items_expected_max() > 0;
  words.repeats = option.get_items_expected_max() > 1;
  words.required = option.get_required();
  words.description = option.get_description();
  const std::string type_name = option.get_type_name();
  words.choices = ChoicesIn(type_name);
  words.value_name = type_name.substr(0, type_name.find(':'));
  if (words.value_name == "TEXT" || words.value_name.empty() || words.value_name[0] == '{') {
    words.value_name = "VALUE";
  }
  words.default_text = option.get_default_str();
  return words;
}

std::vector<CommandWords> ReadCommandTree(const CLI::App& app) {
  std::vector<CommandWords> commands;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    CommandWords words;
    words.name = command->get_name();
    words.description = command->get_description();
    words.examples = ExamplesIn(command->get_footer());
    for (const CLI::Option* option : command->get_options()) {
      words.options.push_back(ReadOption(*option));
    }
    commands.push_back(std::move(words));
  }
  return commands;
}

}  // namespace flopledger::cli
