#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/doctor.h"
#include "cli/ink.h"
#include "flops/nearest.h"

namespace flopledger::cli {
namespace {

using Json = nlohmann::ordered_json;

struct DoctorCommandOptions {
  DoctorOptions doctor;
  std::vector<std::string> required;
  bool json = false;
};

void PrintText(const std::vector<DoctorCheck>& checks, const Ink& ink) {
  for (const DoctorCheck& check : checks) {
    std::cout << (check.ok ? ink.Good("ok") : ink.Warn("no"))
              << fmt::format("  {:<18}  {}\n", check.name, Printable(check.found));
    if (!check.fix.empty()) std::cout << fmt::format("{:24}fix: {}\n", "", check.fix);
  }
  std::cout << ink.Bold("rungs of evidence that would be reached here") << "\n";
  for (const std::string& rung : ReachedRungs(checks)) std::cout << "  " << rung << "\n";
}

void PrintJson(const std::vector<DoctorCheck>& checks) {
  Json json = {{"schema_version", 1}, {"type", "doctor"}};
  Json list = Json::array();
  for (const DoctorCheck& check : checks) {
    list.push_back({{"name", check.name},
                    {"ok", check.ok},
                    {"found", check.found},
                    {"fix", check.fix.empty() ? Json(nullptr) : Json(check.fix)}});
  }
  json["checks"] = std::move(list);
  json["rungs"] = ReachedRungs(checks);
  std::cout << json.dump(1, ' ', false, Json::error_handler_t::replace) << "\n";
}

int RunDoctorCommand(const DoctorCommandOptions& options) {
  const std::vector<std::string> names = DoctorCheckNames();
  for (const std::string& name : options.required) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::vector<std::string_view> known(names.begin(), names.end());
    std::cerr << "flopledger: --require is '" << name << "'; did you mean '"
              << flops::Nearest(name, known) << "'? accepted:";
    for (const std::string& each : names) std::cerr << " " << each;
    std::cerr << "\n";
    return kUsage;
  }
  const std::vector<DoctorCheck> checks = RunDoctor(options.doctor);
  if (options.json) {
    PrintJson(checks);
  } else {
    PrintText(checks, Ink::ForStandardOutput());
  }
  int exit_code = kOk;
  for (const DoctorCheck& check : checks) {
    const bool required = std::find(options.required.begin(), options.required.end(), check.name) !=
                          options.required.end();
    if (!required || check.ok) continue;
    std::cerr << "flopledger: required, but missing: " << check.name << " (" << check.found
              << ")\n";
    exit_code = kMissingCapability;
  }
  return exit_code;
}

}  // namespace

void AddDoctorCommand(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<DoctorCommandOptions>();
  options->doctor.variable = [](const char* name) { return std::getenv(name); };
  CLI::App* command = AddCommand(
      app, "doctor", "Says what would work on this machine, what would not, and how to mend it.",
      "  flopledger doctor\n"
      "  flopledger doctor --python .venv/bin/python --log-folder logs\n"
      "  flopledger doctor --require port --require log_folder\n"
      "  flopledger doctor --json");
  command->add_option("--require", options->required,
                      "exit 4 if this check fails: driver, gpu, cupti, counters, counter_lock, "
                      "nvtx, cuda_injection, port, log_folder, python, torch, jax, "
                      "flopledger_package; repeatable");
  command->add_option("--python", options->doctor.python, "the Python to ask")
      ->capture_default_str();
  command->add_option("--port", options->doctor.port, "the port to try")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command->add_option("--log-folder", options->doctor.log_folder, "where the step log would be")
      ->capture_default_str();
  command->add_flag("--json", options->json, "one object for programs, see docs/cli.md");
  command->callback([options, exit_code] { *exit_code = RunDoctorCommand(*options); });
}

}  // namespace flopledger::cli
