// Serves a run that never was: `flopledger_fake_run [port [steps [ms-per-step [jsonl]]]]`. Prints
// its address first; serves until SIGTERM. A negative number of steps: the first one never comes.

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

#include "export/exit_summary.h"
#include "export/gap_totals.h"
#include "export/http_server.h"
#include "export/jsonl_sink.h"
#include "export/log_line.h"
#include "export/routes.h"
#include "fakes/fake_run.h"

namespace {

volatile std::sig_atomic_t stopped = 0;

int Argument(int count, char** arguments, int index, int otherwise) {
  return count > index ? std::atoi(arguments[index]) : otherwise;
}

}  // namespace

int main(int count, char** arguments) {
  using namespace flopledger;
  std::signal(SIGTERM, [](int) { stopped = 1; });
  std::signal(SIGINT, [](int) { stopped = 1; });
  const int steps = Argument(count, arguments, 2, 200);
  const int milliseconds = Argument(count, arguments, 3, 500);

  fakes::FakeRun run;
  auto metrics = PrometheusSink::Create();
  auto live = LiveSink::Create();
  std::vector<ReportSink*> sinks = {metrics->get(), live->get()};
  Result<std::unique_ptr<JsonlSink>> jsonl = std::unique_ptr<JsonlSink>();
  if (count > 4) {
    jsonl = JsonlSink::Create({.path = arguments[4]});
    if (!jsonl) {
      std::fprintf(stderr, "%s\n", jsonl.error().message().c_str());
      return 2;
    }
    sinks.push_back(jsonl->get());
  }
  HttpServerOptions options;
  options.listen.port = Argument(count, arguments, 1, 9410);
  options.routes = PageRoutes((*metrics)->page(), (*live)->page());
  auto server = HttpServer::Create(std::move(options));
  if (!server) {
    std::fprintf(stderr, "%s\n", server.error().message().c_str());
    return 2;
  }
  std::printf("%s/live\n", (*server)->address().c_str());
  std::fflush(stdout);

  RunTotals totals;
  GapTotals gaps;
  StepWindow window(20);
  for (ReportSink* sink : sinks) sink->Open(run.description());
  for (ReportSink* sink : sinks) sink->Announce(run.state());
  for (int i = 0; i < steps && stopped == 0; ++i) {
    const StepReport report = run.NextStep();
    totals.Add(report);
    gaps.Add(report);
    window.Add(report);
    for (ReportSink* sink : sinks) sink->Publish(report, totals);
    if (i % 10 == 0) std::printf("%s\n", RenderLogLine(report, window.Ratios()).c_str());
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  }
  for (ReportSink* sink : sinks) {
    if (steps >= 0) sink->Finish(totals);
  }
  std::printf("%s", RenderSummary(run.description(), totals, gaps.Largest(5)).c_str());
  std::fflush(stdout);
  while (stopped == 0) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  return 0;
}
