// Commands about the program itself: its completion scripts and its manual.
#include <iostream>
#include <memory>
#include <string>

#include "cli/command_tree.h"
#include "cli/commands.h"

namespace flopledger::cli {

void AddCompletionCommand(CLI::App& app, int* exit_code) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command = AddCommand(app, "completion", "Prints a completion script for a shell.",
                                 "  source <(flopledger completion bash)\n"
                                 "  flopledger completion zsh > _flopledger\n"
                                 "  flopledger completion fish > flopledger.fish");
  command->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember({"bash", "zsh", "fish"}));
  command->callback([&app, shell, exit_code] {
    const std::vector<CommandWords> commands = ReadCommandTree(app);
    std::cout << (*shell == "bash"  ? WriteBashCompletion(commands)
                  : *shell == "zsh" ? WriteZshCompletion(commands)
                                    : WriteFishCompletion(commands));
    *exit_code = kOk;
  });
}

void AddManualCommand(CLI::App& app, int* exit_code) {
  CLI::App* command = AddCommand(app, "man", "Prints the manual page.",
                                 "  flopledger man > flopledger.1\n"
                                 "  flopledger man | man -l -");
  command->callback([&app, exit_code] {
    std::cout << WriteManual(ReadCommandTree(app));
    *exit_code = kOk;
  });
}

}  // namespace flopledger::cli
