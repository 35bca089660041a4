#include <iostream>
#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/shipped_files.h"

namespace flopledger::cli {

std::string_view ShippedFile(std::string_view name) {
  for (const LiveAsset& file : ShippedFiles()) {
    if (file.name == name) return file.content;
  }
  return {};
}

void AddRulesCommand(CLI::App& app, int* exit_code) {
  auto tests = std::make_shared<bool>(false);
  CLI::App* command =
      AddCommand(app, "rules", "Prints the recording rules and alerts for Prometheus.",
                 "  flopledger rules > flopledger.rules.yml\n"
                 "  flopledger rules --tests > flopledger.rules.test.yml");
  command->add_flag("--tests", *tests, "their unit tests instead, for promtool test rules");
  command->callback([tests, exit_code] {
    std::cout << ShippedFile(*tests ? "flopledger.rules.test.yml" : "flopledger.rules.yml");
    *exit_code = kOk;
  });
}

void AddDashboardCommand(CLI::App& app, int* exit_code) {
  auto board = std::make_shared<std::string>("training");
  CLI::App* command = AddCommand(app, "dashboard", "Prints a dashboard for Grafana.",
                                 "  flopledger dashboard > flopledger-training.json\n"
                                 "  flopledger dashboard fleet > flopledger-fleet.json");
  command->add_option("BOARD", *board, "training: one or a few runs; fleet: a line for each run")
      ->check(CLI::IsMember({"training", "fleet"}))
      ->capture_default_str();
  command->callback([board, exit_code] {
    std::cout << ShippedFile(*board + ".json");
    *exit_code = kOk;
  });
}

}  // namespace flopledger::cli
