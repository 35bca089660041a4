#include <algorithm>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "commands.h"
#include "published_report.h"

namespace flopledger::cli {
namespace {

struct PublishedOptions {
  std::string path;
  bool json = false;
  bool markdown = false;
};

int RunPublished(const PublishedOptions& options) {
  std::ifstream file(options.path, std::ios::binary);
  std::ostringstream content;
  if (file) content << file.rdbuf();
  if (!file || file.bad()) {
    std::cerr << "flopledger: cannot read '" << options.path << "'\n";
    return kBadInput;
  }
  Result<std::vector<PublishedRow>> rows = ReadPublishedTable(content.str());
  if (!rows.has_value()) {
    std::cerr << "flopledger: " << options.path << ": " << rows.error().message() << "\n";
    return kBadInput;
  }
  std::vector<RowOutcome> outcomes;
  for (const PublishedRow& row : *rows) outcomes.push_back(JudgeRow(row));
  if (options.json) {
    std::cout << WriteJson(outcomes);
  } else {
    std::cout << (options.markdown ? WriteMarkdown(outcomes) : WriteText(outcomes));
  }
  const bool behaves = std::all_of(outcomes.begin(), outcomes.end(),
                                   [](const RowOutcome& outcome) { return outcome.behaves; });
  return behaves ? kOk : kFinding;
}

}  // namespace

void AddPublishedCommand(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<PublishedOptions>();
  CLI::App* command = AddCommand(
      app, "published", "Evaluates published utilisation figures from their printed inputs.",
      "  flopledger published table.csv\n"
      "  flopledger published table.csv --json");
  command->add_option("FILE", options->path, "table of figures, comma-separated")->required();
  CLI::Option* json = command->add_flag("--json", options->json, "one object for programs");
  command->add_flag("--markdown", options->markdown, "tables by source and of what differs")
      ->excludes(json);
  command->callback([options, exit_code] { *exit_code = RunPublished(*options); });
}

}  // namespace flopledger::cli
