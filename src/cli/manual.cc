#include <fmt/format.h>

#include <string>

#include "cli/command_tree.h"
#include "flopledger/version.h"

namespace flopledger::cli {
namespace {

/// Text for roff: hyphens that are meant, no line that begins with a request.
std::string Roff(const std::string& text) {
  std::string escaped;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char each = text[i];
    if (each == '-') {
      escaped += "\\-";
    } else if (each == '\\') {
      escaped += "\\e";
    } else if ((each == '.' || each == '\'') && (i == 0 || text[i - 1] == '\n')) {
      escaped += std::string("\\&") + each;
    } else {
      escaped += each;
    }
  }
  return escaped;
}

std::string Synopsis(const CommandWords& command) {
  std::string text = fmt::format("\\fBflopledger {}\\fR", Roff(command.name));
  for (const OptionWords& option : command.options) {
    if (option.name == "--help") continue;
    std::string part =
        option.positional ? fmt::format("\\fI{}\\fR", Roff(option.name))
        : option.takes_value
            ? fmt::format("\\fB{}\\fR \\fI{}\\fR", Roff(option.name), Roff(option.value_name))
            : fmt::format("\\fB{}\\fR", Roff(option.name));
    if (option.repeats) part += "...";
    text += option.required ? " " + part : fmt::format(" [{}]", part);
  }
  return text;
}

void AddCommand(const CommandWords& command, std::string* text) {
  *text += fmt::format(".SS {}\n{}\n.PP\n{}\n", Roff(command.name), Roff(command.description),
                       Synopsis(command));
  for (const OptionWords& option : command.options) {
    if (option.name == "--help") continue;
    const std::string value = option.positional || !option.takes_value
                                  ? ""
                                  : fmt::format(" \\fI{}\\fR", Roff(option.value_name));
    *text +=
        fmt::format(".TP\n\\fB{}\\fR{}\n{}", Roff(option.name), value, Roff(option.description));
    if (!option.choices.empty()) {
      *text += "; one of:";
      for (const std::string& choice : option.choices) *text += " " + Roff(choice);
    }
    if (!option.default_text.empty()) {
      *text += fmt::format(" (default: {})", Roff(option.default_text));
    }
    *text += "\n";
  }
  *text += ".PP\n.nf\n.RS 4\n";
  for (const std::string& example : command.examples) *text += Roff(example) + "\n";
  *text += ".RE\n.fi\n";
}

constexpr const char* kEnd = R"(.SH EXIT STATUS
.TP
.B 0
All is well.
.TP
.B 1
Something was found: a check failed, a peak is refused, a figure does not reproduce.
.TP
.B 2
The command line is wrong; the message names the word that was probably meant.
.TP
.B 3
An input is wrong; the message names the file and the place.
.TP
.B 4
A capability is missing: a required check of
.BR "flopledger doctor" ,
a port.
.TP
.B 70
A fault of flopledger itself.
.SH ENVIRONMENT
.TP
.B NO_COLOR
No colours, on terminals either. There are none in files and pipes.
.TP
.BR CUDA_HOME ", " CUDA_PATH ", " LD_LIBRARY_PATH ", " NVTX_INJECTION64_PATH ", " CUDA_INJECTION64_PATH
Looked at by
.BR "flopledger doctor" .
.SH SEE ALSO
.BR promtool (1),
.BR prometheus (1)
)";

}  // namespace

std::string WriteManual(const std::vector<CommandWords>& commands) {
  std::string text = fmt::format(
      ".TH FLOPLEDGER 1 \"\" \"flopledger {}\" \"User Commands\"\n"
      ".SH NAME\nflopledger \\- books of every floating\\-point operation of a training process\n"
      ".SH SYNOPSIS\n\\fBflopledger\\fR \\fICOMMAND\\fR [\\fIOPTION\\fR]...\n"
      ".SH DESCRIPTION\n"
      "Reports, compares and serves what a training process has logged: MFU, HFU, coverage and "
      "what\n"
      "part of the peak was lost to what. \\fBflopledger\\fR \\fICOMMAND\\fR \\fB\\-\\-help\\fR "
      "begins with examples.\n"
      ".SH COMMANDS\n",
      Roff(FLOPLEDGER_VERSION));
  for (const CommandWords& command : commands) AddCommand(command, &text);
  return text + kEnd;
}

}  // namespace flopledger::cli
