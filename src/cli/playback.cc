#include "cli/playback.h"

#include <algorithm>
#include <ctime>
#include <utility>

#include "export/routes.h"

namespace flopledger::cli {
namespace {

double UnixSeconds() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Wall clock minus monotonic clock, from the first step: places ranks of several hosts.
std::int64_t OffsetOf(const StepLog& log) {
  const StepReport& first = log.steps.front();
  if (first.end_unix_seconds == 0) return 0;  // a trace: its ranks have one clock
  return static_cast<std::int64_t>(static_cast<long double>(first.end_unix_seconds) * 1e9L) -
         first.end_ns;
}

}  // namespace

struct Playback::Rank {
  StepLog log;
  RunTotals totals;
  std::unique_ptr<PrometheusSink> metrics;
  std::unique_ptr<LiveSink> live;
  std::unique_ptr<HttpServer> server;

  template <typename Call>
  void Each(const Call& call) {
    for (ReportSink* sink :
         {static_cast<ReportSink*>(metrics.get()), static_cast<ReportSink*>(live.get())}) {
      call(*sink);
    }
  }
};

Playback::Playback(const PlaybackOptions& options) : options_(options) {}
Playback::~Playback() = default;

Result<std::unique_ptr<Playback>> Playback::Create(std::vector<StepLog> logs,
                                                   const PlaybackOptions& options) {
  std::unique_ptr<Playback> playback(new Playback(options));
  for (StepLog& log : logs) {
    auto rank = std::make_unique<Rank>();
    rank->log = std::move(log);
    auto metrics = PrometheusSink::Create();
    if (!metrics) return Fail(metrics.error().code(), metrics.error().message());
    auto live = LiveSink::Create();
    if (!live) return Fail(live.error().code(), live.error().message());
    rank->metrics = *std::move(metrics);
    rank->live = *std::move(live);
    const RunIdentity& identity = rank->log.run.identity;
    HttpServerOptions serving;
    serving.listen = {.address = options.address,
                      .port = options.base_port == 0 ? 0 : options.base_port + identity.rank,
                      .fallback_to_any = true,
                      .allow_remote = options.allow_remote};
    serving.discovery_folder = options.discovery_folder;
    serving.identity = identity;
    serving.routes = PageRoutes(rank->metrics->page(), rank->live->page());
    auto server = HttpServer::Create(std::move(serving));
    if (!server) return Fail(server.error().code(), server.error().message());
    rank->server = *std::move(server);
    SessionState state;
    state.collector = SessionState::Collector::kCounting;
    state.capabilities = {{.name = "step_log", .available = true, .reason = "ok"}};
    rank->Each([&](ReportSink& sink) {
      sink.Open(rank->log.run);
      sink.Announce(state);
    });
    playback->ranks_.push_back(std::move(rank));
  }
  playback->Schedule();
  return playback;
}

void Playback::Schedule() {
  std::int64_t first_ns = INT64_MAX;
  std::int64_t last_ns = INT64_MIN;
  std::int64_t first_step = INT64_MAX;
  std::int64_t last_step = INT64_MIN;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const StepLog& log = ranks_[i]->log;
    if (log.steps.empty()) continue;
    const std::int64_t offset = OffsetOf(log);
    for (std::size_t j = 0; j < log.steps.size(); ++j) {
      const StepReport& step = log.steps[j];
      events_.push_back({i, j, step.end_ns + offset});
      first_ns = std::min(first_ns, step.start_ns + offset);
      last_ns = std::max(last_ns, step.end_ns + offset);
      first_step = std::min(first_step, step.step);
      last_step = std::max(last_step, step.step);
    }
  }
  if (events_.empty()) return;
  for (Event& event : events_) event.at_ns -= first_ns;
  std::stable_sort(events_.begin(), events_.end(),
                   [](const Event& a, const Event& b) { return a.at_ns < b.at_ns; });
  span_ns_ = std::max<std::int64_t>(last_ns - first_ns, 1);
  span_steps_ = last_step - first_step + 1;
}

void Playback::Publish(const Event& event, double unix_seconds) {
  Rank& rank = *ranks_[event.rank];
  StepReport report = rank.log.steps[event.step];
  report.step += rounds_ * span_steps_;
  report.start_ns += rounds_ * span_ns_;
  report.end_ns += rounds_ * span_ns_;
  report.end_unix_seconds = unix_seconds;  // an alert on a stall looks at its age
  if (rounds_ > 0) report.excluded_before = DurationNs(0);
  rank.totals.Add(report);
  rank.Each([&](ReportSink& sink) { sink.Publish(report, rank.totals); });
  ++published_;
}

std::optional<DurationNs> Playback::PublishDue(std::int64_t now_ns) {
  if (events_.empty()) return std::nullopt;
  if (began_ns_ < 0) began_ns_ = now_ns;
  while (true) {
    if (next_ == events_.size()) {
      if (!options_.loop) return std::nullopt;
      next_ = 0;
      ++rounds_;
    }
    const Event& event = events_[next_];
    const std::int64_t at_ns = event.at_ns + rounds_ * span_ns_;
    if (options_.speed > 0) {
      const auto due =
          began_ns_ + static_cast<std::int64_t>(static_cast<double>(at_ns) / options_.speed);
      if (due > now_ns) return DurationNs(due - now_ns);
    }
    Publish(event, UnixSeconds());
    ++next_;
  }
}

void Playback::Finish() {
  for (const auto& rank : ranks_) {
    rank->Each([&](ReportSink& sink) { sink.Finish(rank->totals); });
  }
}

std::vector<std::string> Playback::addresses() const {
  std::vector<std::string> addresses;
  addresses.reserve(ranks_.size());
  for (const auto& rank : ranks_) addresses.push_back(rank->server->address());
  return addresses;
}

std::vector<std::string> Playback::notices() const {
  std::vector<std::string> notices;
  for (const auto& rank : ranks_) {
    if (!rank->server->notice().empty()) notices.push_back(rank->server->notice());
  }
  return notices;
}

}  // namespace flopledger::cli
