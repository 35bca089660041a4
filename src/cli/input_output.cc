#include <fmt/format.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iostream>
#include <optional>
#include <string>

#include "cli/commands.h"

namespace flopledger::cli {
namespace {

std::optional<std::int64_t> StepNumber(std::string_view text, std::int64_t otherwise) {
  if (text.empty()) return otherwise;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

}  // namespace

int Refuse(const Status& status) {
  std::cerr << "flopledger: " << status.message() << "\n";
  return kBadInput;
}

std::optional<Status> WriteFile(const std::string& path, const std::string& text) {
  if (path == "-") {
    std::cout << text;
    return std::nullopt;
  }
  errno = 0;
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  if (!file) {
    return Status(StatusCode::kUnavailable,
                  fmt::format("{}: cannot be written ({})", path,
                              errno != 0 ? std::strerror(errno) : "unknown reason"));
  }
  return std::nullopt;
}

void AddStepRange(CLI::App* command, RunLogOptions* options) {
  command
      ->add_option_function<std::string>(
          "--steps",
          [options](const std::string& text) {
            const std::size_t colon = text.find(':');
            const std::string_view all = text;
            const auto first = StepNumber(all.substr(0, colon), 0);
            const auto last =
                colon == std::string::npos ? first : StepNumber(all.substr(colon + 1), INT64_MAX);
            if (!first || !last || *first > *last) {
              throw CLI::ValidationError("--steps", "is '" + text +
                                                        "'; accepted: FIRST:LAST, FIRST:, :LAST or "
                                                        "one number");
            }
            options->first_step = *first;
            options->last_step = *last;
          },
          "only these steps, as FIRST:LAST")
      ->type_name("FIRST:LAST");
}

void AddStepNames(CLI::App* command, std::vector<std::string>* names) {
  command->add_option("--step-name", *names,
                      "pattern (* ?) of the ranges of a trace that are steps, repeatable");
}

}  // namespace flopledger::cli
