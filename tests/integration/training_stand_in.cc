// Stands for a training process in tests of what ends one: it keeps books while it is told to fork,
// to end by a signal, or to live with a sink that never comes back.
//
//     training_stand_in MODE JSONL_PATH

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>

#include "flopledger/session.h"

namespace {

using flopledger::Session;
using flopledger::SessionOptions;

/// Says that it was called, and never returns.
struct StuckSink final : flopledger::ReportSink {
  void Publish(const flopledger::StepReport&, const flopledger::RunTotals&) override {
    std::puts("stuck");
    std::fflush(stdout);
    for (;;) pause();
  }
};

SessionOptions Options(const std::string& jsonl) {
  SessionOptions options;
  options.identity.run_id = "stand-in";
  options.jsonl_path = jsonl;
  options.warmup_steps = 0;
  options.log_every_steps = 0;
  options.http.base_port = 0;
  return options;
}

std::unique_ptr<Session> Start(SessionOptions options) {
  auto session = Session::Create(std::move(options));
  if (!session) {
    std::fprintf(stderr, "%s\n", session.error().message().c_str());
    std::exit(70);
  }
  return *std::move(session);
}

void RunSteps(Session& session, int count) {
  for (int i = 0; i < count; ++i) {
    auto step = session.Step();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    step.Tokens({.useful = 4});
  }
}

int ListeningSockets() {
  int found = 0;
  for (int fd = 3; fd < 256; ++fd) {
    int listening = 0;
    socklen_t size = sizeof(listening);
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) == 0 && listening != 0) {
      ++found;
    }
  }
  return found;
}

/// Trains until a signal ends it.
int UntilSignal(Session& session) {
  RunSteps(session, 5);
  std::puts("ready");
  std::fflush(stdout);
  for (;;) RunSteps(session, 1);
}

int Fork(Session& session) {
  RunSteps(session, 3);
  int failures = ListeningSockets() == 1 ? 0 : 1;
  for (int kind = 0; kind < 4; ++kind) {
    const pid_t child = fork();
    if (child == 0) {
      if (ListeningSockets() != 0) _exit(99);
      RunSteps(session, 2);  // does nothing here
      if (kind == 0) std::exit(0);
      if (kind == 1) _exit(0);
      if (kind == 2) {
        raise(SIGTERM);
        _exit(98);
      }
      execl("/bin/sh", "sh", "-c", "exit 5", nullptr);
      _exit(97);
    }
    int status = 0;
    waitpid(child, &status, 0);
    const bool natural = kind == 2   ? WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM
                         : kind == 3 ? WIFEXITED(status) && WEXITSTATUS(status) == 5
                                     : WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (!natural) {
      std::fprintf(stderr, "child %d ended with status %d\n", kind, status);
      ++failures;
    }
  }
  RunSteps(session, 3);
  session.Close();
  return failures;
}

int Stuck(const std::string& jsonl, bool wait_for_signal) {
  SessionOptions options = Options(jsonl);
  options.sinks.push_back(std::make_unique<StuckSink>());
  auto session = Start(std::move(options));
  RunSteps(*session, 20);
  if (wait_for_signal) return UntilSignal(*session);
  session->Close(flopledger::DurationNs(100'000'000));
  session.reset();
  std::puts("trained to the end");
  std::fflush(stdout);
  std::_Exit(0);  // static destructors would meet the stuck thread
}

void OwnHandler(int) { _exit(42); }

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const std::string mode = argv[1];
  const std::string jsonl = argv[2];
  if (mode == "stuck") return Stuck(jsonl, false);
  if (mode == "stuck-signal") return Stuck(jsonl, true);
  if (mode == "own-handler") signal(SIGTERM, &OwnHandler);
  if (mode == "ignored") signal(SIGTERM, SIG_IGN);
  auto session = Start(Options(jsonl));
  if (mode == "fork") return Fork(*session);
  if (mode == "ignored") {
    RunSteps(*session, 5);
    raise(SIGTERM);
    RunSteps(*session, 5);
    session->Close();
    return 0;
  }
  return UntilSignal(*session);
}
