#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "export/http_server.h"
#include "export/jsonl_reader.h"
#include "export/live_sink.h"
#include "export/prometheus_sink.h"
#include "flopledger/run_totals.h"
#include "flopledger/status.h"

namespace flopledger::cli {

struct PlaybackOptions {
  double speed = 1;  ///< times real time; 0: all steps at once
  bool loop = false;
  std::string address = "127.0.0.1";
  int base_port = 9410;  ///< port = base_port + rank; 0: any free port
  bool allow_remote = false;
  std::string discovery_folder;
};

/// Step logs as the pages of a run that is going on: one server a rank, the steps published at the
/// pace at which they once ended.
///
///     auto playback = Playback::Create(std::move(logs), options);
///     while (auto wait = (*playback)->PublishDue(now_ns)) WaitFor(*wait);
///
/// Thread: of one owner. Ownership: of its servers. Fails: `Create` only, as `HttpServer::Create`.
class Playback {
 public:
  static Result<std::unique_ptr<Playback>> Create(std::vector<StepLog> logs,
                                                  const PlaybackOptions& options);
  ~Playback();

  /// Publishes every step whose time has come; `now_ns` is of a monotonic clock. Gives the time
  /// until the next one, or nothing after the last.
  std::optional<DurationNs> PublishDue(std::int64_t now_ns);
  /// The runs end in good order.
  void Finish();

  std::int64_t published_steps() const { return published_; }
  std::vector<std::string> addresses() const;
  std::vector<std::string> notices() const;

 private:
  struct Rank;
  struct Event {
    std::size_t rank = 0;
    std::size_t step = 0;
    std::int64_t at_ns = 0;  ///< after the first start
  };
  explicit Playback(const PlaybackOptions& options);
  void Schedule();
  void Publish(const Event& event, double unix_seconds);

  const PlaybackOptions options_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::vector<Event> events_;
  std::size_t next_ = 0;
  std::int64_t rounds_ = 0;
  std::int64_t span_ns_ = 0;     ///< of one round
  std::int64_t span_steps_ = 0;  ///< by which step numbers rise from round to round
  std::int64_t began_ns_ = -1;
  std::int64_t published_ = 0;
};

}  // namespace flopledger::cli
