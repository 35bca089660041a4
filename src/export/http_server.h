#pragma once

#include <memory>
#include <string>
#include <vector>

#include "export/discovery_file.h"
#include "export/http_listener.h"
#include "export/http_loop.h"
#include "export/http_message.h"
#include "flopledger/report_sink.h"
#include "flopledger/status.h"
#include "flopledger/units.h"

namespace flopledger {

struct HttpServerOptions {
  Listener::Options listen;      ///< address, port, fallback, remote
  std::string discovery_folder;  ///< of the file_sd JSON; empty: none
  RunIdentity identity;          ///< names the discovery file
  HttpLimits limits;
  std::vector<HttpRoute> routes;  ///< see routes.h
};

/// Serves the pages of a run from one thread of its own.
///
///     auto server = HttpServer::Create({.listen = {.port = 9410}, .routes = PageRoutes(pages)});
///     log("live at {}", (*server)->address());
///
/// Thread: `Create` and `Stop` by the owner, `CloseInChild` in a forked child, the rest by any.
/// The server's own thread takes no signals. Ownership: of its thread, sockets and discovery file.
/// Fails: `Create` only: kInvalidArgument with the field, kUnavailable with the reason.
class HttpServer {
 public:
  static Result<std::unique_ptr<HttpServer>> Create(HttpServerOptions options);
  /// Stops within a second.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  int port() const { return port_; }
  /// `http://127.0.0.1:9410`.
  const std::string& address() const { return address_; }
  /// What to say once in the log: a taken port, an address that others reach, a discovery file
  /// that could not be written. Empty: nothing.
  const std::string& notice() const { return notice_; }
  HttpCounts counts() const;

  /// Stops taking connections, lets open answers go out for a moment, waits at most `limit`.
  /// False if the thread was still busy; it then ends by itself and what it uses lives as long.
  bool Stop(DurationNs limit = DurationNs(1'000'000'000)) noexcept;

  /// In a forked child: closes the inherited sockets and makes this object inert. `close(2)` only,
  /// so it may be called from a `pthread_atfork` handler.
  void CloseInChild() noexcept;

 private:
  struct Serving;
  HttpServer() = default;

  // Shared with the thread: if it outlives `Stop`, it still has what it uses.
  std::shared_ptr<Serving> serving_;
  std::unique_ptr<DiscoveryFile> discovery_;
  int port_ = 0;
  std::string address_;
  std::string notice_;
};

}  // namespace flopledger
