#include "export/http_server.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

namespace flopledger {

struct HttpServer::Serving {
  std::unique_ptr<HttpLoop> loop;
  std::thread thread;
  std::mutex mutex;
  std::condition_variable ended;
  bool has_ended = false;
  // Keeps this alive until `Stop`; in a forked child nothing ever stops it.
  std::shared_ptr<Serving> self;
};

namespace {

// The thread inherits the mask: signals of the host go to the host's threads, and a client that
// hangs up while we write costs an EPIPE instead of the process.
class AllSignalsBlocked {
 public:
  AllSignalsBlocked() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~AllSignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  AllSignalsBlocked(const AllSignalsBlocked&) = delete;
  AllSignalsBlocked& operator=(const AllSignalsBlocked&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace

Result<std::unique_ptr<HttpServer>> HttpServer::Create(HttpServerOptions options) {
  Result<Listener> listener = Listener::Create(options.listen);
  if (!listener) return tl::unexpected(listener.error());
  std::unique_ptr<HttpServer> server(new HttpServer());
  server->port_ = listener->port();
  server->address_ = "http://" + listener->host_and_port();
  server->notice_ = listener->notice();

  HttpLoop::Options loop_options;
  loop_options.limits = options.limits;
  loop_options.routes = std::move(options.routes);
  if (listener->loopback()) {
    loop_options.hosts = {"localhost", "127.0.0.1", "[::1]"};
    const std::string& name = listener->host_and_port();
    loop_options.hosts.push_back(name.substr(0, name.rfind(':')));
  }
  auto loop = HttpLoop::Create(listener->Release(), std::move(loop_options));
  if (!loop) return tl::unexpected(loop.error());

  if (!options.discovery_folder.empty()) {
    auto file = DiscoveryFile::Create(options.discovery_folder, options.identity,
                                      listener->host_and_port());
    if (file) {
      server->discovery_ = std::move(*file);
    } else {
      server->notice_ += (server->notice_.empty() ? "" : "; ") + file.error().message();
    }
  }

  auto serving = std::make_shared<Serving>();
  serving->loop = std::move(*loop);
  try {
    AllSignalsBlocked blocked;
    serving->thread = std::thread([serving] {
      pthread_setname_np(pthread_self(), "flopledger-http");
      serving->loop->Run();
      std::lock_guard<std::mutex> lock(serving->mutex);
      serving->has_ended = true;
      serving->ended.notify_all();
    });
  } catch (const std::system_error& error) {
    return Fail(StatusCode::kUnavailable,
                fmt::format("the server's thread cannot be started: {}", error.what()));
  }
  serving->self = serving;
  server->serving_ = std::move(serving);
  return server;
}

HttpServer::~HttpServer() { Stop(); }

HttpCounts HttpServer::counts() const {
  return serving_ == nullptr ? HttpCounts{} : serving_->loop->counts();
}

bool HttpServer::Stop(DurationNs limit) noexcept {
  discovery_.reset();
  if (serving_ == nullptr || !serving_->thread.joinable()) return true;
  serving_->loop->RequestStop();
  bool ended = false;
  {
    std::unique_lock<std::mutex> lock(serving_->mutex);
    ended = serving_->ended.wait_for(lock, std::chrono::nanoseconds(limit.ns()),
                                     [this] { return serving_->has_ended; });
  }
  if (ended) {
    serving_->thread.join();
  } else {
    serving_->thread.detach();
  }
  serving_->self.reset();
  return ended;
}

void HttpServer::CloseInChild() noexcept {
  if (serving_ == nullptr) return;
  serving_->loop->CloseInChild();
  if (discovery_ != nullptr) discovery_->Disown();
  // Not destroyed, since it refers to itself: its thread does not exist in the child, and freeing
  // the loop would take the parent's descriptors out of the epoll set that both share.
  serving_.reset();
}

}  // namespace flopledger
