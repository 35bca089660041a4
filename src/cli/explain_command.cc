#include "commands.h"
namespace flopledger::cli {
void AddExplainCommand(CLI::App&, int*) {}
}  // namespace flopledger::cli
