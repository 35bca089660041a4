#include <iostream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/command_tree.h"
#include "commands.h"
#include "flops/nearest.h"

namespace flopledger::cli {
namespace {

/// Help with the examples, which stand in the footer, in front.
class ExamplesFirst : public CLI::Formatter {
 public:
  std::string make_description(const CLI::App* app) const override {
    return app->get_footer() + "\n\n" + CLI::Formatter::make_description(app);
  }
  std::string make_footer(const CLI::App*) const override { return ""; }
  /// `VALUE=default`: without the checks, whose texts CLI11 would put behind the type.
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_items_expected_max() == 0) return "";
    const OptionWords words = ReadOption(*option);
    std::string text = words.positional ? "" : " " + words.value_name;
    if (!words.choices.empty()) {
      text = " {";
      for (const std::string& choice : words.choices) {
        text += (text.size() > 2 ? "," : "") + choice;
      }
      text += "}";
    }
    if (!words.default_text.empty()) text += "=" + words.default_text;
    if (words.repeats) text += " ...";
    if (words.required) text += " REQUIRED";
    return text;
  }
};

/// Every long option and subcommand that is valid where parsing stopped.
std::vector<std::string> KnownWords(const CLI::App& app, bool options) {
  std::vector<std::string> words;
  if (options) {
    for (const CLI::Option* option : app.get_options()) {
      for (const std::string& name : option->get_lnames()) words.push_back("--" + name);
    }
    return words;
  }
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    words.push_back(command->get_name());
  }
  return words;
}

const CLI::App* ParsedCommand(const CLI::App& app) {
  const std::vector<CLI::App*> parsed = app.get_subcommands();
  return parsed.empty() ? &app : parsed.back();
}

/// Says which word was meant, and returns kUsage.
int RefuseWord(const CLI::App& app, const std::string& word) {
  const CLI::App& command = *ParsedCommand(app);
  const bool is_option = word.rfind("-", 0) == 0;
  const std::vector<std::string> words = KnownWords(command, is_option);
  std::vector<std::string_view> known(words.begin(), words.end());
  const std::string bare = word.substr(0, word.find('='));
  const std::string_view nearest = flops::Nearest(bare, known);
  std::cerr << "flopledger: unknown " << (is_option ? "option" : "argument") << " '" << bare << "'";
  if (!nearest.empty()) std::cerr << "; did you mean '" << nearest << "'?";
  std::cerr << "\nTry 'flopledger" << (&command == &app ? "" : " " + command.get_name())
            << " --help'.\n";
  return kUsage;
}

int Parse(CLI::App& app, int argc, const char* const* argv, const int& exit_code) {
  try {
    app.parse(argc, argv);
    return exit_code;
  } catch (const CLI::Success& success) {
    return app.exit(success);
  } catch (const CLI::ExtrasError&) {
    const std::vector<std::string> extras = app.remaining(true);
    return RefuseWord(app, extras.empty() ? "" : extras.front());
  } catch (const CLI::ParseError& error) {
    const std::vector<std::string> extras = app.remaining(true);
    if (!extras.empty()) return RefuseWord(app, extras.front());
    std::cerr << "flopledger: " << error.what() << "\nTry 'flopledger --help'.\n";
    return kUsage;
  }
}

}  // namespace

CLI::App* AddCommand(CLI::App& app, const char* name, const char* description,
                     const char* examples) {
  CLI::App* command = app.add_subcommand(name, description);
  command->formatter(std::make_shared<ExamplesFirst>());
  command->footer(std::string("Examples:\n") + examples);
  return command;
}

int RunProgram(int argc, const char* const* argv) {
  int exit_code = kOk;
  try {
    CLI::App app(
        "Examples:\n"
        "  flopledger report run.jsonl\n"
        "  flopledger report logs/ --html report.html\n"
        "  flopledger diff before.jsonl after.jsonl\n"
        "  flopledger doctor\n"
        "  flopledger explain --config config.json --batch 8 --seq 4096\n"
        "  flopledger peaks --device 'NVIDIA H100 PCIe'\n\n"
        "Keeps the books on every floating-point operation of a training process.");
    app.name("flopledger");
    app.require_subcommand(1);
    AddExplainCommand(app, &exit_code);
    AddPeaksCommand(app, &exit_code);
    AddPublishedCommand(app, &exit_code);
    AddReplayCommand(app, &exit_code);
    AddReportCommand(app, &exit_code);
    AddDiffCommand(app, &exit_code);
    AddServeCommand(app, &exit_code);
    AddDoctorCommand(app, &exit_code);
    AddRulesCommand(app, &exit_code);
    AddDashboardCommand(app, &exit_code);
    AddCompletionCommand(app, &exit_code);
    AddManualCommand(app, &exit_code);
    AddVersionCommand(app, &exit_code);
    return Parse(app, argc, argv, exit_code);
  } catch (const std::exception& error) {
    std::cerr << "flopledger: internal fault: " << error.what() << "\n";
    return kInternal;
  }
}

}  // namespace flopledger::cli
