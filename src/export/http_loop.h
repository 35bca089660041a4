#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "export/http_message.h"
#include "flopledger/status.h"
#include "flopledger/units.h"

struct bufferevent;
struct event;
struct event_base;
struct evconnlistener;

namespace flopledger {

/// What a client may take. The defaults fit a page that a few people and one Prometheus read.
struct HttpLimits {
  std::size_t head_bytes = 8192;             ///< request line and headers
  std::size_t ignored_bytes = 1 << 20;       ///< of a body, which nobody reads
  int connections = 32;                      ///< 1 to 64; one more closes the oldest
  DurationNs request_time{5'000'000'000};    ///< accept to the last byte of the answer, absolute
  DurationNs lingering_time{1'000'000'000};  ///< for the client to take the answer and hang up
};

/// What has happened, for tests and for the log at exit.
struct HttpCounts {
  std::int64_t accepted = 0;
  std::int64_t answered = 0;   ///< requests that got a status
  std::int64_t evicted = 0;    ///< closed to make room
  std::int64_t timed_out = 0;  ///< over `request_time`
  std::int64_t open = 0;
  std::int64_t accept_errors = 0;  ///< the process had no descriptor left
};

/// The event loop of the server: one request per connection, GET and HEAD, no bodies. Every limit
/// is absolute, so that a slow client is not told from a busy one by its next byte.
///
/// Thread: `Run` on one thread; `RequestStop`, `counts` from any; `CloseInChild` in a forked child
/// only. Ownership: of the listening socket. Fails: `Create` only.
class HttpLoop {
 public:
  static constexpr int kMaxConnections = 64;

  struct Options {
    HttpLimits limits;
    std::vector<HttpRoute> routes;
    std::vector<std::string> hosts;  ///< accepted Host headers, lower case; empty: any
  };
  static Result<std::unique_ptr<HttpLoop>> Create(int listen_fd, Options options);
  ~HttpLoop();
  HttpLoop(const HttpLoop&) = delete;
  HttpLoop& operator=(const HttpLoop&) = delete;

  /// Serves until `RequestStop`, then lets open answers go out for a moment.
  void Run();
  void RequestStop() noexcept;
  /// Closes what the child inherited, and nothing else: the loop's thread and its epoll set belong
  /// to the parent. Only `close(2)`.
  void CloseInChild() noexcept;
  HttpCounts counts() const;

 private:
  struct Connection;
  using Connections = std::list<std::unique_ptr<Connection>>;

  HttpLoop(int listen_fd, Options options);
  bool Start();
  void Accept(int fd);
  void MakeRoom();
  void Read(Connection* connection);
  void Answer(Connection* connection, const ParsedRequest& parsed);
  HttpResponse Route(const ParsedRequest& parsed) const;
  void Send(Connection* connection, const HttpResponse& response, bool with_body);
  void Written(Connection* connection);
  void Failed(Connection* connection, short what);
  void TimedOut(Connection* connection);
  void Close(Connection* connection);
  void PauseAccepting();
  void BeginStop();

  const Options options_;
  std::atomic<int> listen_fd_;
  std::atomic<int> wake_fd_{-1};
  // Descriptors of open connections for `CloseInChild`. A slot is emptied before its descriptor is
  // closed, so that a child can never close a stranger.
  std::array<std::atomic<int>, kMaxConnections> connection_fds_;
  event_base* base_ = nullptr;
  evconnlistener* listener_ = nullptr;
  event* wake_event_ = nullptr;
  event* resume_event_ = nullptr;
  event* stop_event_ = nullptr;
  Connections connections_;  // oldest first
  bool stopping_ = false;
  std::atomic<std::int64_t> accepted_{0}, answered_{0}, evicted_{0}, timed_out_{0}, open_{0},
      accept_errors_{0};
};

}  // namespace flopledger
