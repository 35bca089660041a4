#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/log_files.h"
#include "cli/playback.h"
#include "cli/rank_logs.h"
#include "cli/trace_logs.h"

namespace flopledger::cli {
namespace {

struct ServeOptions {
  std::vector<std::string> paths;
  std::vector<std::string> step_names;
  PlaybackOptions playback;
  bool exit_at_end = false;
};

std::int64_t MonotonicNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

/// Waits for SIGINT or SIGTERM, which are blocked, or for the time to pass. True: a signal came.
bool WaitForSignal(const sigset_t& signals, std::optional<DurationNs> limit) {
  if (!limit) {
    int signal = 0;
    sigwait(&signals, &signal);
    return true;
  }
  const timespec wait{.tv_sec = limit->ns() / 1'000'000'000,
                      .tv_nsec = limit->ns() % 1'000'000'000};
  return sigtimedwait(&signals, nullptr, &wait) > 0;
}

Result<std::vector<StepLog>> ReplayLogs(const std::string& path,
                                        const std::vector<std::string>& step_names) {
  Result<ReplayResult> replayed = Replay({path}, {.step_names = step_names});
  if (!replayed) return Fail(replayed.error().code(), replayed.error().message());
  std::vector<RankLog> ranks = LogsOfTraces(*replayed, {}, {});
  std::vector<StepLog> logs;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    StepLog log;
    log.run = std::move(ranks[i].run);
    log.steps = std::move(replayed->traces[i].reports);
    log.has_summary = true;
    logs.push_back(std::move(log));
  }
  return logs;
}

Result<std::vector<StepLog>> ReadLog(const LogFile& file,
                                     const std::vector<std::string>& step_names) {
  Result<std::string> beginning = ReadBeginning(file.parts.front());
  if (!beginning) return Fail(beginning.error().code(), beginning.error().message());
  if (!LooksLikeStepLog(*beginning) && !IsLogName(file.path))
    return ReplayLogs(file.path, step_names);
  Result<std::string> text = ReadLogFile(file);
  if (!text) return Fail(text.error().code(), text.error().message());
  Result<StepLog> log = ReadStepLog(*text);
  if (!log) return Fail(log.error().code(), file.path + ": " + log.error().message());
  std::vector<StepLog> logs;
  logs.push_back(*std::move(log));
  return logs;
}

Result<std::vector<StepLog>> ReadLogs(const std::vector<std::string>& paths,
                                      const std::vector<std::string>& step_names) {
  Result<std::vector<LogFile>> files = FindLogFiles(paths);
  if (!files) return Fail(files.error().code(), files.error().message());
  std::vector<StepLog> logs;
  for (const LogFile& file : *files) {
    Result<std::vector<StepLog>> ranks = ReadLog(file, step_names);
    if (!ranks) return Fail(ranks.error().code(), ranks.error().message());
    for (StepLog& log : *ranks) {
      if (log.steps.empty()) {
        return Fail(StatusCode::kDataLoss, file.path + ": no step in it, nothing to serve");
      }
      logs.push_back(std::move(log));
    }
  }
  return logs;
}

int RunServe(const ServeOptions& options) {
  // Before any thread is made, so that all have it.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  Result<std::vector<StepLog>> logs = ReadLogs(options.paths, options.step_names);
  if (!logs) return Refuse(logs.error());
  const bool whole =
      std::all_of(logs->begin(), logs->end(), [](const StepLog& log) { return log.has_summary; });
  Result<std::unique_ptr<Playback>> playback = Playback::Create(*std::move(logs), options.playback);
  if (!playback) {
    std::cerr << "flopledger: " << playback.error().message() << "\n";
    return playback.error().code() == StatusCode::kInvalidArgument ? kUsage : kMissingCapability;
  }
  for (const std::string& notice : (*playback)->notices()) std::cerr << notice << "\n";
  for (const std::string& address : (*playback)->addresses()) {
    std::cout << "live " << address << "/live  metrics " << address << "/metrics\n";
  }
  std::cout.flush();
  bool stopped = false;
  while (!stopped) {
    const std::optional<DurationNs> wait = (*playback)->PublishDue(MonotonicNs());
    if (!wait) break;
    stopped = WaitForSignal(signals, wait);
  }
  if (!stopped) {
    if (whole) (*playback)->Finish();
    std::cout << "all steps are out" << (options.exit_at_end ? "\n" : "; Ctrl-C ends\n");
    std::cout.flush();
    if (!options.exit_at_end) WaitForSignal(signals, std::nullopt);
  }
  std::cout << "served " << (*playback)->published_steps() << " steps\n";
  return kOk;
}

}  // namespace

void AddServeCommand(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<ServeOptions>();
  CLI::App* command = AddCommand(
      app, "serve",
      "Serves step logs or traces as /metrics and /live, at the pace at which they were made.",
      "  flopledger serve run.jsonl\n"
      "  flopledger serve run.jsonl --speed 10 --loop\n"
      "  flopledger serve logs/ --port 9500 --discovery targets\n"
      "  flopledger serve trace.json.gz --speed 0.1\n"
      "  flopledger serve run.jsonl --speed 0 --exit-at-end");
  command
      ->add_option("FILE", options->paths,
                   "step logs or traces, folders, quoted patterns; each rank has a port of its own")
      ->required();
  AddStepNames(command, &options->step_names);
  command->add_option("--speed", options->playback.speed, "times real time; 0: all steps at once")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  CLI::Option* loop =
      command->add_flag("--loop", options->playback.loop, "begin again after the last step");
  command->add_option("--port", options->playback.base_port, "port of rank 0; 0: any free port")
      ->check(CLI::Range(0, 65535))
      ->capture_default_str();
  command->add_option("--address", options->playback.address, "address to listen on")
      ->capture_default_str();
  command->add_flag("--allow-remote", options->playback.allow_remote,
                    "permit an address that others reach; the pages have no password");
  command->add_option("--discovery", options->playback.discovery_folder,
                      "existing folder for Prometheus' file_sd_configs");
  command->add_flag("--exit-at-end", options->exit_at_end, "end after the last step")
      ->excludes(loop);
  command->callback([options, exit_code] {
    if (options->playback.loop && options->playback.speed <= 0) {
      std::cerr << "flopledger: --loop needs a --speed above 0\n";
      *exit_code = kUsage;
      return;
    }
    *exit_code = RunServe(*options);
  });
}

}  // namespace flopledger::cli
