#include "integration/raw_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <utility>

namespace flopledger::testing_clients {

RawClient::RawClient(int port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (fd_ >= 0 && connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) != 0) {
    close(fd_);
    fd_ = -1;
  }
}

RawClient::~RawClient() {
  if (fd_ >= 0) close(fd_);
}

RawClient::RawClient(RawClient&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

bool RawClient::Send(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return true;
}

std::size_t RawClient::SendSome(std::string_view bytes) {
  const ssize_t sent = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  return sent > 0 ? static_cast<std::size_t>(sent) : 0;
}

void RawClient::HalfClose() { shutdown(fd_, SHUT_WR); }

void RawClient::Reset() {
  const linger reset{.l_onoff = 1, .l_linger = 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
  close(std::exchange(fd_, -1));
}

std::optional<std::string> RawClient::ReadToEnd(int limit_ms) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(limit_ms);
  std::string all;
  char buffer[16384];
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - std::chrono::steady_clock::now());
    pollfd readable{.fd = fd_, .events = POLLIN, .revents = 0};
    if (left.count() <= 0 || poll(&readable, 1, static_cast<int>(left.count())) <= 0) return {};
    const ssize_t count = recv(fd_, buffer, sizeof(buffer), 0);
    if (count <= 0) return all;  // end or reset: over either way
    all.append(buffer, static_cast<std::size_t>(count));
  }
}

Answer ParseAnswer(const std::optional<std::string>& bytes) {
  Answer answer;
  if (!bytes || !bytes->starts_with("HTTP/1.1 ")) return answer;
  answer.status = std::atoi(bytes->c_str() + 9);
  const std::size_t end = bytes->find("\r\n\r\n");
  if (end == std::string::npos) return answer;
  answer.head = bytes->substr(0, end + 2);
  answer.body = bytes->substr(end + 4);
  return answer;
}

Answer Request(int port, const std::string& bytes) {
  RawClient client(port);
  if (!client.connected() || !client.Send(bytes)) return {};
  return ParseAnswer(client.ReadToEnd());
}

Answer Get(int port, const std::string& path, const std::string& host) {
  return Request(port, "GET " + path + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
}

}  // namespace flopledger::testing_clients
