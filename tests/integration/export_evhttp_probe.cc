// What libevent's evhttp, with its own limits set, does with the hostile clients of
// export_hostile_client_test: the measurement behind docs/adr/0020. Prints one line per client;
// is no test, since it says something about another program.

#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "integration/raw_client.h"

namespace {

using flopledger::testing_clients::Get;
using flopledger::testing_clients::RawClient;

constexpr int kTimeoutSeconds = 1;
constexpr std::size_t kLargePage = 8 << 20;
const std::string kHead = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n";

std::int64_t ResidentMegabytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE) >> 20;
}

class EvhttpServer {
 public:
  explicit EvhttpServer(int timeout_seconds) : base_(event_base_new()), http_(evhttp_new(base_)) {
    evhttp_set_timeout(http_, timeout_seconds);
    evhttp_set_max_headers_size(http_, 8192);
    evhttp_set_max_body_size(http_, 1024);
    evhttp_set_allowed_methods(http_, EVHTTP_REQ_GET | EVHTTP_REQ_HEAD);
    evhttp_set_cb(
        http_, "/metrics",
        [](evhttp_request* request, void*) {
          evbuffer* body = evbuffer_new();
          evbuffer_add(body, "m 1\n", 4);
          evhttp_send_reply(request, 200, "OK", body);
          evbuffer_free(body);
        },
        nullptr);
    evhttp_set_cb(
        http_, "/large",
        [](evhttp_request* request, void*) {
          static const std::string page(kLargePage, 'x');
          evbuffer* body = evbuffer_new();
          evbuffer_add_reference(body, page.data(), page.size(), nullptr, nullptr);
          evhttp_send_reply(request, 200, "OK", body);
          evbuffer_free(body);
        },
        nullptr);
    evhttp_bound_socket* bound = evhttp_bind_socket_with_handle(http_, "127.0.0.1", 0);
    sockaddr_in address{};
    socklen_t size = sizeof(address);
    getsockname(evhttp_bound_socket_get_fd(bound), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    stop_ = event_new(
        base_, wake_, EV_READ,
        [](evutil_socket_t, short, void* base) {
          event_base_loopbreak(static_cast<event_base*>(base));
        },
        base_);
    event_add(stop_, nullptr);
    thread_ = std::thread([this] { event_base_dispatch(base_); });
  }
  ~EvhttpServer() {
    const std::uint64_t one = 1;
    if (write(wake_, &one, sizeof(one)) < 0) std::perror("eventfd");
    thread_.join();
    event_free(stop_);
    evhttp_free(http_);
    event_base_free(base_);
    close(wake_);
  }
  EvhttpServer(const EvhttpServer&) = delete;
  EvhttpServer& operator=(const EvhttpServer&) = delete;
  int port() const { return port_; }

 private:
  const int wake_ = eventfd(0, EFD_CLOEXEC);
  event_base* base_;
  evhttp* http_;
  event* stop_ = nullptr;
  int port_ = 0;
  std::thread thread_;
};

// A byte each 100 ms for ten times the time limit.
void ByteAtATime(int port) {
  RawClient slow(port);
  pollfd ended{.fd = slow.fd(), .events = POLLIN, .revents = 0};
  int sent = 0;
  while (sent < kTimeoutSeconds * 100 && poll(&ended, 1, 100) == 0 && slow.Send("G")) ++sent;
  std::printf("byte at a time: %d bytes in %.1f s, limit %d s: %s\n", sent, sent * 0.1,
              kTimeoutSeconds, sent >= kTimeoutSeconds * 100 ? "still connected" : "closed");
}

void ManyConnections(int port) {
  std::vector<RawClient> clients;
  for (int i = 0; i < 400; ++i) {
    clients.emplace_back(port);
    clients.back().SendSome(kHead);
  }
  Get(port, "/metrics");
  int open = 0;
  for (RawClient& client : clients) {
    pollfd ended{.fd = client.fd(), .events = POLLIN, .revents = 0};
    if (poll(&ended, 1, 0) == 0) ++open;
  }
  std::printf("400 half-open connections: %d held\n", open);
}

void TalkWithoutReading(int port) {
  const std::int64_t before = ResidentMegabytes();
  RawClient talker(port);
  talker.Send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const std::string block(1 << 16, 't');
  std::size_t sent = 0;
  while (sent < (std::size_t{256} << 20) && talker.Send(block)) sent += block.size();
  std::printf("talks without reading: %zu MiB taken, memory grew by %lld MiB\n", sent >> 20,
              static_cast<long long>(ResidentMegabytes() - before));
}

}  // namespace

int main() {
  std::signal(SIGPIPE, SIG_IGN);  // evhttp writes without MSG_NOSIGNAL
  EvhttpServer server(kTimeoutSeconds);
  EvhttpServer patient(60);
  std::printf("libevent %s, evhttp, timeout %d s, headers 8192, body 1024\n", event_get_version(),
              kTimeoutSeconds);
  ByteAtATime(server.port());
  ManyConnections(patient.port());
  TalkWithoutReading(patient.port());
  std::printf("Host: evil.example: status %d\n",
              Get(server.port(), "/metrics", "evil.example").status);
  return 0;
}
