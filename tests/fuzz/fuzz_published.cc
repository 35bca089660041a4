// Hostile tables of published figures: every row is judged, or the file is refused.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "cli/published_report.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto rows = flopledger::cli::ReadPublishedTable(text);
  if (!rows.has_value()) return 0;
  std::vector<flopledger::cli::RowOutcome> outcomes;
  for (const auto& row : *rows) {
    outcomes.push_back(flopledger::cli::JudgeRow(row));
    if (outcomes.back().behaves != outcomes.back().fault.empty()) std::abort();
  }
  (void)flopledger::cli::WriteText(outcomes);
  (void)flopledger::cli::WriteJson(outcomes);
  (void)flopledger::cli::WriteMarkdown(outcomes);
  return 0;
}
