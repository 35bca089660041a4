#include "export/http_listener.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

namespace flopledger {
namespace {

constexpr int kBacklog = 128;

std::string ErrorText(int error) { return std::generic_category().message(error); }

struct BindAddress {
  sockaddr_storage storage{};
  socklen_t size = 0;
  bool v6 = false;
  bool loopback = false;

  void SetPort(int port) {
    const auto network = htons(static_cast<std::uint16_t>(port));
    if (v6) {
      reinterpret_cast<sockaddr_in6*>(&storage)->sin6_port = network;
    } else {
      reinterpret_cast<sockaddr_in*>(&storage)->sin_port = network;
    }
  }
};

std::optional<BindAddress> ParseAddress(const std::string& text) {
  BindAddress address;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  if (inet_pton(AF_INET, text == "localhost" ? "127.0.0.1" : text.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    address.size = sizeof(sockaddr_in);
    address.loopback = (ntohl(v4->sin_addr.s_addr) >> 24) == 127;
    return address;
  }
  const bool bracketed = text.size() > 2 && text.front() == '[' && text.back() == ']';
  const std::string bare = bracketed ? text.substr(1, text.size() - 2) : text;
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (inet_pton(AF_INET6, bare.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    address.size = sizeof(sockaddr_in6);
    address.v6 = true;
    address.loopback = IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
    return address;
  }
  return std::nullopt;
}

// A listening socket or -1 with errno.
int OpenSocket(BindAddress address, int port) {
  address.SetPort(port);
  const int fd =
      socket(address.v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return -1;
  const int on = 1;
  // Lets a restarted run take its port back from connections in TIME_WAIT, not from a listener.
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (address.v6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
  if (bind(fd, reinterpret_cast<const sockaddr*>(&address.storage), address.size) == 0 &&
      listen(fd, kBacklog) == 0) {
    return fd;
  }
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

std::pair<std::string, int> NameOf(int fd) {
  sockaddr_storage storage{};
  socklen_t size = sizeof(storage);
  getsockname(fd, reinterpret_cast<sockaddr*>(&storage), &size);
  char text[INET6_ADDRSTRLEN] = {};
  if (storage.ss_family == AF_INET6) {
    const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&storage);
    inet_ntop(AF_INET6, &v6->sin6_addr, text, sizeof(text));
    const int port = ntohs(v6->sin6_port);
    return {fmt::format("[{}]:{}", text, port), port};
  }
  const auto* v4 = reinterpret_cast<const sockaddr_in*>(&storage);
  inet_ntop(AF_INET, &v4->sin_addr, text, sizeof(text));
  const int port = ntohs(v4->sin_port);
  return {fmt::format("{}:{}", text, port), port};
}

}  // namespace

Result<Listener> Listener::Create(const Options& options) {
  const std::optional<BindAddress> address = ParseAddress(options.address);
  if (!address) {
    return InvalidArgument(fmt::format(
        "http address is '{}'; accepted: an IPv4 or IPv6 address or localhost", options.address));
  }
  if (options.port < 0 || options.port > 65535) {
    return InvalidArgument(
        fmt::format("http port is {}; accepted: 0 (any free port) to 65535", options.port));
  }
  if (!address->loopback && !options.allow_remote) {
    return InvalidArgument(fmt::format(
        "http address is '{}', which other machines can reach, and there is no password; accepted: "
        "a loopback address (127.0.0.1, ::1), or allow_remote",
        options.address));
  }
  Listener listener;
  listener.loopback_ = address->loopback;
  listener.fd_ = OpenSocket(*address, options.port);
  if (listener.fd_ < 0) {
    const int error = errno;
    const bool other_port_helps = error == EADDRINUSE || error == EACCES;
    const std::string why = fmt::format("cannot listen on {} port {}: {}", options.address,
                                        options.port, ErrorText(error));
    if (!other_port_helps || !options.fallback_to_any || options.port == 0) {
      return Fail(StatusCode::kUnavailable, why);
    }
    listener.fd_ = OpenSocket(*address, 0);
    if (listener.fd_ < 0) {
      return Fail(StatusCode::kUnavailable,
                  fmt::format("{}; nor on any free port: {}", why, ErrorText(errno)));
    }
    listener.notice_ = why;
  }
  std::tie(listener.host_and_port_, listener.port_) = NameOf(listener.fd_);
  if (!listener.notice_.empty()) {
    listener.notice_ += fmt::format("; serving on port {} instead", listener.port_);
  }
  if (!address->loopback) {
    listener.notice_ += fmt::format("{}{} can be read by every machine that reaches it",
                                    listener.notice_.empty() ? "" : "; ", listener.host_and_port_);
  }
  return listener;
}

Listener::Listener(Listener&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      port_(other.port_),
      loopback_(other.loopback_),
      host_and_port_(std::move(other.host_and_port_)),
      notice_(std::move(other.notice_)) {}

Listener::~Listener() {
  if (fd_ >= 0) close(fd_);
}

int Listener::Release() { return std::exchange(fd_, -1); }

}  // namespace flopledger
