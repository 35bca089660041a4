#include "export/http_loop.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/listener.h>
#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>

namespace flopledger {
namespace {

constexpr std::string_view kHeadEnd = "\r\n\r\n";
constexpr DurationNs kResumeAccepting{200'000'000};
constexpr DurationNs kStopGrace{200'000'000};

timeval ToTimeval(DurationNs time) {
  return {.tv_sec = time.ns() / 1'000'000'000, .tv_usec = time.ns() % 1'000'000'000 / 1000};
}

void AddTimer(event* timer, DurationNs time) {
  const timeval tv = ToTimeval(time);
  event_add(timer, &tv);
}

// Nothing may leave a callback of C code. A connection that an exception hit meets its time limit.
template <typename Action>
void Guarded(Action action) noexcept {
  try {
    action();
  } catch (...) {  // out of memory
  }
}

void DeleteBody(const void* /*data*/, std::size_t /*size*/, void* holder) {
  delete static_cast<std::shared_ptr<const std::string>*>(holder);
}

}  // namespace

struct HttpLoop::Connection {
  enum class State { kReading, kWriting, kLingering };
  HttpLoop* loop;
  bufferevent* stream = nullptr;
  event* timer = nullptr;
  Connections::iterator self;
  int slot = 0;
  State state = State::kReading;
  bool peer_done = false;
  std::size_t searched = 0;  // bytes of the head that hold no end
  std::size_t ignored_bytes = 0;
};

Result<std::unique_ptr<HttpLoop>> HttpLoop::Create(int listen_fd, Options options) {
  if (options.limits.connections < 1 || options.limits.connections > kMaxConnections) {
    close(listen_fd);
    return InvalidArgument(fmt::format("http connections is {}; accepted: 1 to {}",
                                       options.limits.connections, kMaxConnections));
  }
  std::unique_ptr<HttpLoop> loop(new HttpLoop(listen_fd, std::move(options)));
  if (!loop->Start()) {
    return Fail(StatusCode::kUnavailable, "the event loop cannot be made (out of descriptors?)");
  }
  return loop;
}

HttpLoop::HttpLoop(int listen_fd, Options options)
    : options_(std::move(options)), listen_fd_(listen_fd) {
  for (auto& fd : connection_fds_) fd = -1;
}

bool HttpLoop::Start() {
  event_config* config = event_config_new();
  if (config == nullptr) return false;
  // One thread owns the loop, so it has no locks and asks for no global threading mode.
  event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK);
  event_config_set_flag(config, EVENT_BASE_FLAG_IGNORE_ENV);
  base_ = event_base_new_with_config(config);
  event_config_free(config);
  wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (base_ == nullptr || wake_fd_ < 0) return false;
  listener_ = evconnlistener_new(
      base_,
      [](evconnlistener*, evutil_socket_t fd, sockaddr*, int, void* loop) {
        Guarded([&] { static_cast<HttpLoop*>(loop)->Accept(fd); });
      },
      this, LEV_OPT_CLOSE_ON_EXEC, /*backlog: it listens already*/ 0, listen_fd_);
  wake_event_ = event_new(
      base_, wake_fd_, EV_READ,
      [](evutil_socket_t, short, void* loop) { static_cast<HttpLoop*>(loop)->BeginStop(); }, this);
  resume_event_ = evtimer_new(
      base_,
      [](evutil_socket_t, short, void* loop) {
        auto* self = static_cast<HttpLoop*>(loop);
        if (self->listener_ != nullptr) evconnlistener_enable(self->listener_);
      },
      this);
  stop_event_ = evtimer_new(
      base_,
      [](evutil_socket_t, short, void* loop) {
        event_base_loopbreak(static_cast<HttpLoop*>(loop)->base_);
      },
      this);
  if (listener_ == nullptr || wake_event_ == nullptr || resume_event_ == nullptr ||
      stop_event_ == nullptr) {
    return false;
  }
  evconnlistener_set_error_cb(listener_, [](evconnlistener*, void* loop) {
    static_cast<HttpLoop*>(loop)->PauseAccepting();
  });
  return event_add(wake_event_, nullptr) == 0;
}

HttpLoop::~HttpLoop() {
  while (!connections_.empty()) Close(connections_.front().get());
  if (listener_ != nullptr) evconnlistener_free(listener_);
  for (event* each : {wake_event_, resume_event_, stop_event_}) {
    if (each != nullptr) event_free(each);
  }
  if (base_ != nullptr) event_base_free(base_);
  for (std::atomic<int>* fd : {&listen_fd_, &wake_fd_}) {
    if (const int open = fd->exchange(-1); open >= 0) close(open);
  }
}

void HttpLoop::Run() { event_base_dispatch(base_); }

void HttpLoop::RequestStop() noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = write(wake_fd_, &one, sizeof(one));
}

void HttpLoop::CloseInChild() noexcept {
  if (const int fd = listen_fd_.exchange(-1); fd >= 0) close(fd);
  for (auto& slot : connection_fds_) {
    if (const int fd = slot.exchange(-1); fd >= 0) close(fd);
  }
}

HttpCounts HttpLoop::counts() const {
  return {accepted_, answered_, evicted_, timed_out_, open_, accept_errors_};
}

void HttpLoop::BeginStop() {
  stopping_ = true;
  evconnlistener_free(listener_);
  listener_ = nullptr;
  if (const int fd = listen_fd_.exchange(-1); fd >= 0) close(fd);
  if (connections_.empty()) {
    event_base_loopbreak(base_);
  } else {
    AddTimer(stop_event_, kStopGrace);
  }
}

// The process has no descriptor left: the waiting connection would wake the loop without end.
void HttpLoop::PauseAccepting() {
  ++accept_errors_;
  evconnlistener_disable(listener_);
  AddTimer(resume_event_, kResumeAccepting);
}

void HttpLoop::MakeRoom() {
  if (connections_.size() < static_cast<std::size_t>(options_.limits.connections)) return;
  // An honest client is done within milliseconds, so the oldest one is the one to go.
  ++evicted_;
  Close(connections_.front().get());
}

void HttpLoop::Accept(int fd) {
  ++accepted_;
  MakeRoom();
  auto connection = std::make_unique<Connection>();
  connection->loop = this;
  connection->timer = evtimer_new(
      base_,
      [](evutil_socket_t, short, void* arg) {
        auto* self = static_cast<Connection*>(arg);
        Guarded([&] { self->loop->TimedOut(self); });
      },
      connection.get());
  connection->stream = bufferevent_socket_new(base_, fd, BEV_OPT_CLOSE_ON_FREE);
  if (connection->timer == nullptr || connection->stream == nullptr) {
    if (connection->timer != nullptr) event_free(connection->timer);
    if (connection->stream != nullptr) bufferevent_free(connection->stream);
    if (connection->stream == nullptr) close(fd);
    return;
  }
  const auto free_slot = std::find(connection_fds_.begin(), connection_fds_.end(), -1);
  connection->slot = static_cast<int>(free_slot - connection_fds_.begin());
  *free_slot = fd;
  bufferevent_setcb(
      connection->stream,
      [](bufferevent*, void* arg) {
        auto* self = static_cast<Connection*>(arg);
        Guarded([&] { self->loop->Read(self); });
      },
      [](bufferevent*, void* arg) {
        auto* self = static_cast<Connection*>(arg);
        self->loop->Written(self);
      },
      [](bufferevent*, short what, void* arg) {
        auto* self = static_cast<Connection*>(arg);
        self->loop->Failed(self, what);
      },
      connection.get());
  // Reading stops here until the loop has looked: a client cannot fill the memory.
  bufferevent_setwatermark(connection->stream, EV_READ, 0, options_.limits.head_bytes + 1024);
  AddTimer(connection->timer, options_.limits.request_time);
  bufferevent_enable(connection->stream, EV_READ | EV_WRITE);
  connections_.push_back(std::move(connection));
  connections_.back()->self = std::prev(connections_.end());
  ++open_;
}

void HttpLoop::Read(Connection* connection) {
  evbuffer* input = bufferevent_get_input(connection->stream);
  if (connection->state != Connection::State::kReading) {
    connection->ignored_bytes += evbuffer_get_length(input);
    evbuffer_drain(input, evbuffer_get_length(input));
    if (connection->ignored_bytes > options_.limits.ignored_bytes) Close(connection);
    return;
  }
  const std::size_t length = evbuffer_get_length(input);
  evbuffer_ptr from{};
  evbuffer_ptr_set(input, &from, connection->searched, EVBUFFER_PTR_SET);
  const evbuffer_ptr end = evbuffer_search(input, kHeadEnd.data(), kHeadEnd.size(), &from);
  const std::size_t head_bytes =
      end.pos < 0 ? length : static_cast<std::size_t>(end.pos) + kHeadEnd.size();
  if (head_bytes > options_.limits.head_bytes) {
    const evbuffer_ptr line = evbuffer_search(input, "\r\n", 2, nullptr);
    Answer(connection, {line.pos < 0 ? 414 : 431, {}});
    return;
  }
  if (end.pos < 0) {
    connection->searched = length < kHeadEnd.size() ? 0 : length - kHeadEnd.size() + 1;
    return;
  }
  std::string head(head_bytes, '\0');
  evbuffer_remove(input, head.data(), head.size());
  Answer(connection, ParseRequestHead(head));
}

HttpResponse HttpLoop::Route(const ParsedRequest& parsed) const {
  if (parsed.status != 200) return PlainResponse(parsed.status);
  const HttpRequest& request = parsed.request;
  // A page of another site that had its name rebound to loopback still sends its own name.
  const auto& hosts = options_.hosts;
  if (!hosts.empty() && !request.host.empty() &&
      std::find(hosts.begin(), hosts.end(), request.host) == hosts.end()) {
    return PlainResponse(421,
                         "This host name is not served here; accepted: localhost, 127.0.0.1, "
                         "[::1]\n");
  }
  for (const HttpRoute& route : options_.routes) {
    if (route.path != request.path) continue;
    if (request.method != "GET" && request.method != "HEAD") return PlainResponse(405);
    return route.handler(request);
  }
  return PlainResponse(404);
}

void HttpLoop::Answer(Connection* connection, const ParsedRequest& parsed) {
  HttpResponse response;
  try {
    response = Route(parsed);
  } catch (...) {
    response = PlainResponse(500);
  }
  ++answered_;
  Send(connection, response, parsed.request.method != "HEAD");
}

void HttpLoop::Send(Connection* connection, const HttpResponse& response, bool with_body) {
  connection->state = Connection::State::kWriting;
  evbuffer* input = bufferevent_get_input(connection->stream);
  evbuffer_drain(input, evbuffer_get_length(input));
  evbuffer* output = bufferevent_get_output(connection->stream);
  const std::string head = RenderResponseHead(response);
  bool sent = evbuffer_add(output, head.data(), head.size()) == 0;
  if (with_body && response.body != nullptr && !response.body->empty()) {
    auto* holder = new std::shared_ptr<const std::string>(response.body);
    if (evbuffer_add_reference(output, response.body->data(), response.body->size(), DeleteBody,
                               holder) != 0) {
      delete holder;
      sent = false;
    }
  }
  if (!sent) Close(connection);
}

void HttpLoop::Written(Connection* connection) {
  if (connection->state != Connection::State::kWriting) return;
  if (connection->peer_done) {
    Close(connection);
    return;
  }
  // Closing now, with bytes of the client unread, would reset the connection and could take the
  // answer with it: say that we are done and wait for the client to hang up.
  connection->state = Connection::State::kLingering;
  shutdown(bufferevent_getfd(connection->stream), SHUT_WR);
  AddTimer(connection->timer, options_.limits.lingering_time);
}

void HttpLoop::Failed(Connection* connection, short what) {
  const bool half_closed = (what & BEV_EVENT_EOF) != 0 && (what & BEV_EVENT_READING) != 0;
  if (half_closed && connection->state == Connection::State::kWriting) {
    connection->peer_done = true;
    return;
  }
  Close(connection);
}

void HttpLoop::TimedOut(Connection* connection) {
  if (connection->state != Connection::State::kLingering) ++timed_out_;
  if (connection->state != Connection::State::kReading) {
    Close(connection);
    return;
  }
  AddTimer(connection->timer, options_.limits.lingering_time);
  Answer(connection, {408, {}});
}

void HttpLoop::Close(Connection* connection) {
  connection_fds_[static_cast<std::size_t>(connection->slot)] = -1;
  // A forked child may hold the same socket: the client has to see the end all the same.
  shutdown(bufferevent_getfd(connection->stream), SHUT_RDWR);
  bufferevent_free(connection->stream);
  event_free(connection->timer);
  connections_.erase(connection->self);
  --open_;
  if (stopping_ && connections_.empty()) event_base_loopbreak(base_);
}

}  // namespace flopledger
