#pragma once

#include <string>

#include "flopledger/status.h"

namespace flopledger {

/// A bound and listening socket, closed with the object unless it is released.
///
///     auto listener = Listener::Create({.address = "127.0.0.1", .port = 9410});
///
/// Thread: a value of one owner. Fails: kInvalidArgument (address, port), kUnavailable (taken, not
/// permitted); the message says which.
class Listener {
 public:
  struct Options {
    std::string address = "127.0.0.1";  ///< IPv4, IPv6 or `localhost`
    int port = 0;                       ///< 0: any free port
    bool fallback_to_any = true;        ///< a taken port: take a free one
    bool allow_remote = false;          ///< permit an address other than loopback
  };
  static Result<Listener> Create(const Options& options);
  ~Listener();
  Listener(Listener&& other) noexcept;
  Listener& operator=(Listener&&) = delete;

  int port() const { return port_; }
  bool loopback() const { return loopback_; }
  /// `127.0.0.1:9410`, `[::1]:9410`.
  const std::string& host_and_port() const { return host_and_port_; }
  /// What the owner should say once: that another port was taken, or that the world can read.
  const std::string& notice() const { return notice_; }
  int Release();

 private:
  Listener() = default;
  int fd_ = -1;
  int port_ = 0;
  bool loopback_ = true;
  std::string host_and_port_;
  std::string notice_;
};

}  // namespace flopledger
