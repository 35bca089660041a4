#include "session/outlets.h"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "export/http_server.h"
#include "export/jsonl_sink.h"
#include "export/live_sink.h"
#include "export/prometheus_sink.h"
#include "export/routes.h"

namespace flopledger {

Outlets::Outlets(Log& log) : log_(log) {}

Outlets::~Outlets() = default;

Result<std::unique_ptr<Outlets>> Outlets::Create(SessionOptions& options, const RunIdentity& run,
                                                 Log& log) {
  std::unique_ptr<Outlets> outlets(new Outlets(log));
  if (std::optional<Status> wrong = outlets->AddPages(options, run)) {
    return tl::unexpected(*std::move(wrong));
  }
  if (std::optional<Status> wrong = outlets->AddStepLog(options)) {
    return tl::unexpected(*std::move(wrong));
  }
  int number = 0;
  for (std::unique_ptr<ReportSink>& sink : options.sinks) {
    if (sink) {
      outlets->slots_.push_back({.name = fmt::format("sink_{}", number), .sink = std::move(sink)});
    }
    ++number;
  }
  options.sinks.clear();
  return outlets;
}

std::optional<Status> Outlets::AddPages(const SessionOptions& options, const RunIdentity& run) {
  if (!options.http.enabled) {
    capabilities_.push_back({.name = "http", .available = false, .reason = "not_wanted"});
    return std::nullopt;
  }
  auto metrics = PrometheusSink::Create({.window_steps = options.window_steps});
  if (!metrics) return metrics.error();
  auto live = LiveSink::Create();
  if (!live) return live.error();

  const int wanted = options.http.base_port;
  HttpServerOptions serving;
  serving.listen = {.address = options.http.address,
                    .port = wanted == 0 ? 0 : wanted + run.local_rank,
                    .fallback_to_any = options.http.fallback_to_any,
                    .allow_remote = options.http.allow_remote};
  serving.discovery_folder = options.http.discovery_folder;
  serving.identity = run;
  serving.routes = PageRoutes((*metrics)->page(), (*live)->page());
  auto server = HttpServer::Create(std::move(serving));
  slots_.push_back({.name = "prometheus", .sink = *std::move(metrics)});
  slots_.push_back({.name = "live", .sink = *std::move(live)});
  if (!server) {
    // Wrong options are the caller's to mend; a port that is taken is not.
    if (server.error().code() == StatusCode::kInvalidArgument) return server.error();
    log_.Warn("no metrics page, the training goes on: " + server.error().message());
    capabilities_.push_back({.name = "http", .available = false, .reason = "bind_failed"});
    return std::nullopt;
  }
  server_ = *std::move(server);
  address_ = server_->address();
  if (!server_->notice().empty()) log_.Warn(server_->notice());
  const bool moved = wanted != 0 && server_->port() != wanted + run.local_rank;
  capabilities_.push_back(
      {.name = "http", .available = true, .reason = moved ? "port_taken" : "ok"});
  return std::nullopt;
}

std::optional<Status> Outlets::AddStepLog(const SessionOptions& options) {
  if (options.jsonl_path.empty()) return std::nullopt;
  auto sink = JsonlSink::Create(
      {.path = options.jsonl_path, .on_failure = [this](const Status& status) {
         log_.Warn("step log: " + status.message());
         failures_.push_back({.name = "jsonl", .available = false, .reason = "write_failed"});
       }});
  if (!sink) return sink.error();
  slots_.push_back({.name = "jsonl", .sink = *std::move(sink)});
  capabilities_.push_back({.name = "jsonl", .available = true, .reason = "ok"});
  return std::nullopt;
}

template <typename Call>
void Outlets::Each(const Call& call) {
  for (Slot& slot : slots_) {
    if (slot.failed) continue;
    std::string why = "unknown exception";
    try {
      call(*slot.sink);
      continue;
    } catch (const std::exception& error) {
      why = error.what();
    } catch (...) {
    }
    slot.failed = true;
    log_.Warn(fmt::format("{} threw and is not called again: {}", slot.name, why));
    failures_.push_back({.name = slot.name, .available = false, .reason = "sink_threw"});
  }
}

void Outlets::Open(const RunDescription& run) {
  Each([&](ReportSink& sink) { sink.Open(run); });
}

void Outlets::Announce(const SessionState& state) {
  Each([&](ReportSink& sink) { sink.Announce(state); });
}

void Outlets::Publish(const StepReport& report, const RunTotals& totals) {
  Each([&](ReportSink& sink) { sink.Publish(report, totals); });
}

void Outlets::Finish(const RunTotals& totals) {
  Each([&](ReportSink& sink) { sink.Finish(totals); });
}

void Outlets::Flush(DurationNs limit) {
  Each([&](ReportSink& sink) { sink.Flush(limit); });
}

std::vector<Capability> Outlets::TakeFailures() { return std::exchange(failures_, {}); }

void Outlets::StopServing() {
  if (server_) server_->Stop();
}

void Outlets::CloseInChild() noexcept {
  if (server_) server_->CloseInChild();
}

}  // namespace flopledger
