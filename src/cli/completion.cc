#include <fmt/format.h>

#include <string>

#include "cli/command_tree.h"

namespace flopledger::cli {
namespace {

std::string Join(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string CommandNames(const std::vector<CommandWords>& commands, const char* between) {
  std::string text;
  for (const CommandWords& command : commands) {
    text += (text.empty() ? "" : between) + command.name;
  }
  return text;
}

/// What may stand where a positional is wanted.
const OptionWords* PositionalOf(const CommandWords& command) {
  for (const OptionWords& option : command.options) {
    if (option.positional) return &option;
  }
  return nullptr;
}

/// Within single quotes of a shell.
std::string Quoted(const std::string& text) {
  std::string quoted;
  for (const char each : text) {
    if (each == '\'') {
      quoted += "'\\''";
    } else {
      quoted += each;
    }
  }
  return quoted;
}

/// Within a specification of zsh's _arguments.
std::string ZshText(const std::string& text) {
  std::string escaped;
  for (const char each : text) {
    if (each == '[' || each == ']' || each == ':' || each == '\\') escaped += '\\';
    escaped += each;
  }
  return Quoted(escaped);
}

std::string ZshAction(const OptionWords& option) {
  return option.choices.empty() ? "_files" : fmt::format("({})", Join(option.choices));
}

}  // namespace

std::string WriteBashCompletion(const std::vector<CommandWords>& commands) {
  std::string text = fmt::format(
      "# flopledger completion bash > ~/.local/share/bash-completion/completions/flopledger\n"
      "_flopledger() {{\n"
      "  local current=\"${{COMP_WORDS[COMP_CWORD]}}\" previous=\"${{COMP_WORDS[COMP_CWORD-1]}}\"\n"
      "  local command=\"\" word\n"
      "  for word in \"${{COMP_WORDS[@]:1:COMP_CWORD-1}}\"; do\n"
      "    case \"$word\" in\n"
      "      {}) command=\"$word\"; break ;;\n"
      "    esac\n"
      "  done\n"
      "  COMPREPLY=()\n"
      "  case \"$command\" in\n"
      "    '') COMPREPLY=($(compgen -W '{} --help' -- \"$current\")) ;;\n",
      CommandNames(commands, "|"), CommandNames(commands, " "));
  for (const CommandWords& command : commands) {
    std::string names;
    std::string values;
    for (const OptionWords& option : command.options) {
      if (option.positional) continue;
      names += (names.empty() ? "" : " ") + option.name;
      if (!option.takes_value) continue;
      if (option.value_name != "VALUE" && option.choices.empty()) {  // a number
        values += fmt::format("        {}) return ;;\n", option.name);
        continue;
      }
      values +=
          option.choices.empty()
              ? fmt::format("        {}) COMPREPLY=($(compgen -f -- \"$current\")); return ;;\n",
                            option.name)
              : fmt::format(
                    "        {}) COMPREPLY=($(compgen -W '{}' -- \"$current\")); "
                    "return ;;\n",
                    option.name, Join(option.choices));
    }
    text += fmt::format("    {})\n", command.name);
    if (!values.empty()) {
      text += fmt::format("      case \"$previous\" in\n{}      esac\n", values);
    }
    const OptionWords* positional = PositionalOf(command);
    std::string rest = "COMPREPLY=()";
    if (positional != nullptr) {
      rest = positional->choices.empty()
                 ? "COMPREPLY=($(compgen -f -- \"$current\"))"
                 : fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$current\"))",
                               Join(positional->choices));
    } else {
      rest = fmt::format("COMPREPLY=($(compgen -W '{}' -- \"$current\"))", names);
    }
    text += fmt::format(
        "      if [[ \"$current\" == -* ]]; then\n"
        "        COMPREPLY=($(compgen -W '{}' -- \"$current\"))\n"
        "      else\n"
        "        {}\n"
        "      fi ;;\n",
        names, rest);
  }
  return text + "  esac\n}\ncomplete -o filenames -F _flopledger flopledger\n";
}

std::string WriteZshCompletion(const std::vector<CommandWords>& commands) {
  std::string text =
      "#compdef flopledger\n"
      "# flopledger completion zsh > \"${fpath[1]}/_flopledger\"\n"
      "_flopledger() {\n"
      "  local -a commands\n"
      "  commands=(\n";
  for (const CommandWords& command : commands) {
    text += fmt::format("    '{}:{}'\n", command.name, ZshText(command.description));
  }
  text +=
      "  )\n"
      "  if (( CURRENT == 2 )); then\n"
      "    _describe command commands\n"
      "    return\n"
      "  fi\n"
      "  local command=${words[2]}\n"
      "  words=(\"flopledger ${words[2]}\" \"${(@)words[3,-1]}\")\n"
      "  (( CURRENT-- ))\n"
      "  case $command in\n";
  for (const CommandWords& command : commands) {
    text += fmt::format("    {}) _arguments -S", command.name);
    for (const OptionWords& option : command.options) {
      if (option.positional) {
        text += fmt::format(" \\\n      '{}:{}:{}'", option.repeats ? "*" : "",
                            ZshText(option.name), ZshAction(option));
      } else if (option.takes_value) {
        text +=
            fmt::format(" \\\n      '{}{}=[{}]:{}:{}'", option.repeats ? "*" : "", option.name,
                        ZshText(option.description), ZshText(option.value_name), ZshAction(option));
      } else {
        text += fmt::format(" \\\n      '{}[{}]'", option.name, ZshText(option.description));
      }
    }
    text += " ;;\n";
  }
  return text +
         "  esac\n"
         "}\n"
         "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then\n"
         "  _flopledger \"$@\"\n"
         "else\n"
         "  compdef _flopledger flopledger\n"
         "fi\n";
}

std::string WriteFishCompletion(const std::vector<CommandWords>& commands) {
  std::string text = "# flopledger completion fish > ~/.config/fish/completions/flopledger.fish\n";
  const std::string names = CommandNames(commands, " ");
  for (const CommandWords& command : commands) {
    text += fmt::format(
        "complete -c flopledger -n 'not __fish_seen_subcommand_from {}' -f -a {} -d '{}'\n", names,
        command.name, Quoted(command.description));
  }
  for (const CommandWords& command : commands) {
    for (const OptionWords& option : command.options) {
      const std::string when = fmt::format("-n '__fish_seen_subcommand_from {}'", command.name);
      if (option.positional) {
        if (option.choices.empty()) continue;
        text += fmt::format("complete -c flopledger {} -f -a '{}'\n", when, Join(option.choices));
        continue;
      }
      text += fmt::format("complete -c flopledger {} {} {}", when,
                          option.name.rfind("--", 0) == 0 ? "-l" : "-s",
                          option.name.substr(option.name.find_first_not_of('-')));
      if (option.takes_value) text += " -r";
      if (!option.choices.empty()) text += fmt::format(" -f -a '{}'", Join(option.choices));
      text += fmt::format(" -d '{}'\n", Quoted(option.description));
    }
  }
  return text;
}

}  // namespace flopledger::cli
