#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace flopledger::testing_clients {

/// A TCP client without manners: what it sends is what the test says, byte by byte. Every wait is
/// bounded, so that a server that never answers fails a test instead of stopping it.
class RawClient {
 public:
  /// Connects to 127.0.0.1; `connected()` says if it worked.
  explicit RawClient(int port);
  ~RawClient();
  RawClient(RawClient&& other) noexcept;
  RawClient& operator=(RawClient&&) = delete;

  bool connected() const { return fd_ >= 0; }
  int fd() const { return fd_; }
  /// False if the peer has closed.
  bool Send(std::string_view bytes);
  /// As many bytes as the socket takes now, without waiting.
  std::size_t SendSome(std::string_view bytes);
  void HalfClose();
  /// Closes with a reset instead of an end.
  void Reset();
  /// Everything up to the end of the stream, or nothing if it does not end within the limit.
  std::optional<std::string> ReadToEnd(int limit_ms = 20'000);
  /// True once the peer has closed or reset, false after the limit.
  bool WaitClosed(int limit_ms = 20'000) { return ReadToEnd(limit_ms).has_value(); }

 private:
  int fd_ = -1;
};

/// One whole well-behaved request.
struct Answer {
  int status = 0;  ///< 0: none came
  std::string head;
  std::string body;
};
Answer Get(int port, const std::string& path, const std::string& host = "localhost");
Answer Request(int port, const std::string& bytes);
Answer ParseAnswer(const std::optional<std::string>& bytes);

}  // namespace flopledger::testing_clients
