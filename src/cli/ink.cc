#include "cli/ink.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

namespace flopledger::cli {

Ink Ink::ForStandardOutput() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool refused = no_color != nullptr && *no_color != '\0';
  const bool dumb = terminal != nullptr && std::string_view(terminal) == "dumb";
  return Ink(isatty(STDOUT_FILENO) == 1 && !refused && !dumb);
}

std::string Ink::Wrap(const char* code, std::string_view text) const {
  return on_ ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

std::string Printable(std::string_view text) {
  std::string printable;
  printable.reserve(text.size());
  for (const char each : text) {
    const auto byte = static_cast<unsigned char>(each);
    if (byte < 0x20 || byte == 0x7f) {
      printable += fmt::format("\\x{:02x}", byte);
    } else {
      printable += each;
    }
  }
  return printable;
}

}  // namespace flopledger::cli
