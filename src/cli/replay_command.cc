#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/html_report.h"
#include "cli/ink.h"
#include "cli/replay_json.h"
#include "cli/replay_text.h"
#include "cli/trace_logs.h"
#include "session/replay.h"

namespace flopledger::cli {
namespace {

struct ReplayArguments {
  std::vector<std::string> files;
  std::string html_path;
  bool json = false;
  bool lenient = false;
  std::int64_t max_inflated_gib = 16;
  std::vector<std::string> step_names;
  std::string config;
  std::int64_t rows = 0;
  std::int64_t row_length = 0;
  std::string peak;
  std::string dtype = "bf16";
  std::string convention = "house";
};

/// One line on the terminal that is overwritten; nothing where standard error is none.
class ProgressLine {
 public:
  ProgressLine() : on_(isatty(STDERR_FILENO) == 1) {}
  ~ProgressLine() {
    if (shown_ >= 0) std::fputs("\r\033[K", stderr);
  }
  void Show(std::uint64_t done, std::uint64_t total) {
    if (!on_ || total == 0) return;
    const int percent = static_cast<int>(done * 100 / total);
    if (percent == shown_) return;
    shown_ = percent;
    const std::string bar(static_cast<std::size_t>(percent) * 40 / 100, '=');
    std::fputs(fmt::format("\r[{:<40}] {:>3} %", bar, percent).c_str(), stderr);
    std::fflush(stderr);
  }

 private:
  const bool on_;
  int shown_ = -1;
};

Result<ModelFlops> ReadModel(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  if (file) content << file.rdbuf();
  if (!file || file.bad()) return InvalidArgument(path + ": cannot be read");
  Result<ModelFlops> model = ModelFlops::FromHfConfig(content.str());
  if (!model.has_value()) return Fail(model.error().code(), path + ": " + model.error().message());
  return model;
}

/// The options as the replay takes them; kUsage for those that contradict each other.
Result<ReplayOptions> OptionsOf(const ReplayArguments& arguments) {
  ReplayOptions options;
  options.lenient = arguments.lenient;
  options.max_inflated_bytes = static_cast<std::uint64_t>(arguments.max_inflated_gib) << 30;
  options.step_names = arguments.step_names;
  const std::optional<DType> dtype = ParseDType(arguments.dtype);
  if (!dtype) {
    return InvalidArgument("--dtype is '" + arguments.dtype +
                           "'; accepted: fp64 fp32 tf32 fp16 bf16 fp8 fp4 int8");
  }
  options.dtype = *dtype;
  const Result<FlopConvention> convention = FindConvention(arguments.convention);
  if (!convention.has_value()) return tl::unexpected<Status>(convention.error());
  options.convention = *convention;
  if (!arguments.peak.empty()) {
    const Result<FlopsPerSecond> rate = ParsePeakRate(arguments.peak);
    if (!rate.has_value()) {
      return InvalidArgument("--peak: " + rate.error().message());
    }
    options.peaks = {{.dtype = *dtype, .rate = *rate, .source = "--peak"}};
  }
  const bool rows = arguments.rows > 0;
  const bool length = arguments.row_length > 0;
  if (rows != length || rows == arguments.config.empty()) {
    return InvalidArgument(
        "--config needs --batch and --seq (rows of a step on one rank, tokens of each), and they "
        "need --config");
  }
  options.rows = arguments.rows;
  options.row_length = arguments.row_length;
  return options;
}

int RunReplay(const ReplayArguments& arguments) {
  Result<ReplayOptions> options = OptionsOf(arguments);
  if (!options.has_value()) {
    std::cerr << "flopledger: " << options.error().message() << "\n";
    return kUsage;
  }
  if (!arguments.config.empty()) {
    Result<ModelFlops> model = ReadModel(arguments.config);
    if (!model.has_value()) return Refuse(model.error());
    options->model = *std::move(model);
  }
  Result<ReplayResult> result = [&] {
    ProgressLine line;
    options->progress = [&line](std::uint64_t done, std::uint64_t total) {
      line.Show(done, total);
    };
    return Replay(arguments.files, *options);
  }();
  if (!result.has_value()) return Refuse(result.error());
  if (!arguments.html_path.empty()) {
    Result<RunLogs> logs = JoinRanks(LogsOfTraces(*result, options->convention, {}), {});
    if (!logs.has_value()) return Refuse(logs.error());
    const std::optional<Status> fault =
        WriteFile(arguments.html_path, WriteHtml(BuildRunReport(*std::move(logs))));
    if (fault) return Refuse(*fault);
    if (arguments.html_path == "-") return kOk;
  }
  std::cout << (arguments.json ? WriteJson(*result) : WriteText(*result, Ink::ForStandardOutput()));
  return kOk;
}

}  // namespace

void AddReplayCommand(CLI::App& app, int* exit_code) {
  auto arguments = std::make_shared<ReplayArguments>();
  CLI::App* command = AddCommand(
      app, "replay", "Keeps the books of a recorded trace, as a live run would.",
      "  flopledger replay worker0.pt.trace.json.gz\n"
      "  flopledger replay trace.json.gz --html trace.html\n"
      "  flopledger replay --json ranks.tar.gz | jq '.global_steps'\n"
      "  flopledger replay --lenient cut.json.gz\n"
      "  flopledger replay --config config.json --batch 8 --seq 4096 --dtype bf16 trace.json.gz");
  command
      ->add_option("FILE", arguments->files,
                   "PyTorch Kineto JSON (plain, gzip, or a tar of ranks), Nsight Systems sqlite, "
                   "XPlane, or a capture")
      ->required();
  command->add_flag("--json", arguments->json,
                    "one object for programs; its schema is docs/replay.schema.json");
  command->add_option("--html", arguments->html_path,
                      "write one page with pictures to this file; - is standard output");
  command->add_flag("--lenient", arguments->lenient,
                    "read what can be read of a broken file, and say what is lost");
  command
      ->add_option("--max-inflated", arguments->max_inflated_gib,
                   "GiB that a compressed file may inflate to")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  AddStepNames(command, &arguments->step_names);
  command->add_option("--config", arguments->config, "the model's config.json: declares its work");
  command->add_option("--batch", arguments->rows, "sequences of a step on one rank")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--seq", arguments->row_length, "tokens of each")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--convention", arguments->convention, "of the declared work")
      ->capture_default_str();
  command->add_option("--peak", arguments->peak,
                      "of one device, for --dtype: '312 TFLOP/s'; else by the device's name");
  command->add_option("--dtype", arguments->dtype, "of the declared matmuls")
      ->capture_default_str();
  command->callback([arguments, exit_code] { *exit_code = RunReplay(*arguments); });
}

}  // namespace flopledger::cli
