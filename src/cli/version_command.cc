#include <iostream>

#include "commands.h"
#include "flopledger/version.h"

namespace flopledger::cli {

void AddVersionCommand(CLI::App& app, int* exit_code) {
  CLI::App* command =
      AddCommand(app, "version", "Prints the version of the program.", "  flopledger version");
  command->callback([exit_code] {
    std::cout << "flopledger " << FLOPLEDGER_VERSION << "\n";
    *exit_code = kOk;
  });
}

}  // namespace flopledger::cli
