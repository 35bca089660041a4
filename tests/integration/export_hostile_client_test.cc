// Clients that do what they like. The page is answered all the same, and what they cost is bounded.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "export/http_server.h"
#include "integration/raw_client.h"

namespace flopledger {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing_clients::Answer;
using testing_clients::Get;
using testing_clients::ParseAnswer;
using testing_clients::RawClient;
using testing_clients::Request;

constexpr std::size_t kLargePage = 8 << 20;
const std::string kHead = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n";

int Threads() {
  return static_cast<int>(
      std::distance(std::filesystem::directory_iterator("/proc/self/task"), {}));
}

std::int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

class HostileClientTest : public ::testing::Test {
 protected:
  void Serve(HttpLimits limits) {
    HttpServerOptions options;
    options.listen.port = 0;
    options.limits = limits;
    options.routes = {{"/metrics", [](const HttpRequest&) { return PlainResponse(200, "m 1\n"); }},
                      {"/large", [body = large_](const HttpRequest&) {
                         HttpResponse response = PlainResponse(200, "x");
                         response.body = body;
                         return response;
                       }}};
    auto server = HttpServer::Create(std::move(options));
    ASSERT_TRUE(server.has_value()) << server.error().message();
    server_ = std::move(*server);
    threads_ = Threads();
  }
  // Limits with a time that no test waits for.
  static HttpLimits Patient() {
    return {.connections = 8, .request_time = DurationNs(60'000'000'000)};
  }
  static HttpLimits Hasty() {
    return {.connections = 8,
            .request_time = DurationNs(300'000'000),
            .lingering_time = DurationNs(100'000'000)};
  }
  int port() const { return server_->port(); }
  void ExpectWell() {
    EXPECT_EQ(Get(port(), "/metrics").body, "m 1\n");
    EXPECT_EQ(Threads(), threads_);
    EXPECT_LE(server_->counts().open, 8);
  }

  const std::shared_ptr<const std::string> large_ =
      std::make_shared<const std::string>(kLargePage, 'x');
  std::unique_ptr<HttpServer> server_;
  int threads_ = 0;
};

TEST_F(HostileClientTest, IdleConnectionIsClosed) {
  Serve(Hasty());
  RawClient idle(port());
  EXPECT_EQ(ParseAnswer(idle.ReadToEnd()).status, 408);
  EXPECT_EQ(server_->counts().timed_out, 1);
  ExpectWell();
}

TEST_F(HostileClientTest, AByteAtATimeDoesNotExtendTheLimit) {
  Serve(Hasty());
  RawClient slow(port());
  std::size_t sent = 0;
  // Sends as long as the server listens; its limit is what ends the loop.
  pollfd ended{.fd = slow.fd(), .events = POLLIN, .revents = 0};
  while (poll(&ended, 1, 2) == 0 && sent < 8000) sent += slow.Send(sent == 0 ? "G" : "x") ? 1 : 0;
  EXPECT_LT(sent, 8000U);
  EXPECT_EQ(ParseAnswer(slow.ReadToEnd()).status, 408);
  ExpectWell();
}

TEST_F(HostileClientTest, HugeHeadersAndTargetsAreRefusedWhileTheyCome) {
  Serve(Patient());
  const std::string filler(1 << 16, 'a');
  RawClient header(port());
  header.Send(kHead + "X: " + filler);
  EXPECT_EQ(ParseAnswer(header.ReadToEnd()).status, 431);
  RawClient target(port());
  target.Send("GET /" + filler);
  EXPECT_EQ(ParseAnswer(target.ReadToEnd()).status, 414);
  std::string many = kHead;
  for (int i = 0; i < 1000; ++i) many += "A: b\r\n";
  RawClient headers(port());
  headers.Send(many + "\r\n");
  EXPECT_EQ(ParseAnswer(headers.ReadToEnd()).status, 431);
  ExpectWell();
}

TEST_F(HostileClientTest, BodiesAreNotReadIntoMemory) {
  Serve(Patient());
  const std::int64_t before = ResidentBytes();
  for (const std::string method : {"GET", "POST"}) {
    RawClient client(port());
    client.Send(method + " /metrics HTTP/1.1\r\nHost: localhost\r\n" +
                "Content-Length: 99999999999999999999\r\n\r\n");
    const std::string block(1 << 16, 'b');
    // Sends until the server has had enough of it.
    std::size_t sent = 0;
    while (client.Send(block)) sent += block.size();
    EXPECT_LT(sent, std::size_t{64} << 20) << method;
  }
  EXPECT_LT(ResidentBytes() - before, 16 << 20);
  const Answer refused = Request(port(),
                                 "POST /metrics HTTP/1.1\r\nHost: localhost\r\n"
                                 "Content-Length: 3\r\n\r\nabc");
  EXPECT_EQ(refused.status, 405) << "the answer arrives although a body was on its way";
  ExpectWell();
}

TEST_F(HostileClientTest, ChunkedGarbageIsIgnored) {
  Serve(Patient());
  RawClient client(port());
  client.Send(kHead + "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n" +
              "FFFFFFFFFFFFFFFF\r\nnope\r\n-1\r\n");
  const std::optional<std::string> bytes = client.ReadToEnd();
  ASSERT_TRUE(bytes.has_value());
  EXPECT_EQ(ParseAnswer(bytes).body, "m 1\n");
  ExpectWell();
}

TEST_F(HostileClientTest, PipelinedRequestsGetOneAnswerAndTheEnd) {
  Serve(Patient());
  RawClient client(port());
  std::string requests;
  for (int i = 0; i < 50; ++i) requests += kHead + "\r\n";
  client.Send(requests);
  const Answer answer = ParseAnswer(client.ReadToEnd());
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.head, HasSubstr("Connection: close\r\n"));
  EXPECT_EQ(answer.body, "m 1\n");
  EXPECT_EQ(server_->counts().answered, 1);
  ExpectWell();
}

TEST_F(HostileClientTest, HalfClosedClientsAreAnswered) {
  Serve(Patient());
  RawClient client(port());
  client.Send(kHead + "\r\n");
  client.HalfClose();
  EXPECT_EQ(ParseAnswer(client.ReadToEnd()).body, "m 1\n");
  RawClient unfinished(port());
  unfinished.Send(kHead);
  unfinished.HalfClose();
  EXPECT_TRUE(unfinished.WaitClosed()) << "nothing more can come";
  ExpectWell();
}

TEST_F(HostileClientTest, GarbageIsRefused) {
  Serve(Patient());
  const std::string tls_hello("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
  for (const std::string& bytes :
       {tls_hello + std::string(300, '\0') + "\r\n\r\n", std::string("\r\n\r\n"),
        std::string("GET\r\n\r\n"), std::string(100, '\0') + "\r\n\r\n",
        std::string("GET / HTTP/1.1\nHost: x\n\r\n\r\n")}) {
    EXPECT_EQ(Request(port(), bytes).status, 400);
  }
  ExpectWell();
}

TEST_F(HostileClientTest, ResetsCostNothing) {
  Serve(Patient());
  for (int i = 0; i < 200; ++i) {
    RawClient client(port());
    client.Send(i % 2 == 0 ? "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n" : "GET");
    client.Reset();
  }
  ExpectWell();
}

TEST_F(HostileClientTest, C56ThousandHalfOpenConnectionsDoNotStopScrapes) {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  if (limit.rlim_cur < 1200) {
    GTEST_SKIP() << "only " << limit.rlim_cur << " descriptors; the test holds 1000 open";
  }
  Serve(Patient());
  const std::int64_t before = ResidentBytes();
  std::vector<RawClient> clients;
  clients.reserve(1000);
  for (int i = 0; i < 1000; ++i) {
    clients.emplace_back(port());
    ASSERT_TRUE(clients.back().connected()) << i;
    clients.back().SendSome(kHead);
    if (i % 50 == 0) {
      ASSERT_EQ(Get(port(), "/metrics").body, "m 1\n") << i;
      ASSERT_LE(server_->counts().open, 8);
    }
  }
  EXPECT_LT(ResidentBytes() - before, 16 << 20);
  EXPECT_GE(server_->counts().evicted, 900);
  ExpectWell();
}

TEST_F(HostileClientTest, SlowReadersOfALargePageHoldNothing) {
  Serve(Patient());
  const std::int64_t before = ResidentBytes();
  std::vector<RawClient> readers;
  for (int i = 0; i < 20; ++i) {
    readers.emplace_back(port());
    readers.back().Send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n");
    ASSERT_EQ(Get(port(), "/metrics").body, "m 1\n") << i << " of them read nothing";
  }
  // The page is shared by all who read it: 20 copies would be 160 MiB.
  EXPECT_LT(ResidentBytes() - before, 32 << 20);
  EXPECT_EQ(ParseAnswer(readers.back().ReadToEnd()).body.size(), kLargePage)
      << "who reads gets all of it";
  ExpectWell();
}

TEST_F(HostileClientTest, WhoNeverReadsIsClosedAtTheLimit) {
  Serve(Hasty());
  RawClient reader(port());
  reader.Send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n");
  while (server_->counts().timed_out == 0) std::this_thread::yield();
  const std::optional<std::string> bytes = reader.ReadToEnd();
  ASSERT_TRUE(bytes.has_value());
  EXPECT_LT(bytes->size(), kLargePage);
  ExpectWell();
}

// A server that still reads while it writes would fill its memory with this.
TEST_F(HostileClientTest, TalkingWithoutReadingIsBounded) {
  Serve(Patient());
  const std::int64_t before = ResidentBytes();
  RawClient talker(port());
  talker.Send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const std::string block(1 << 16, 't');
  std::size_t sent = 0;
  while (sent < (std::size_t{64} << 20) && talker.Send(block)) sent += block.size();
  EXPECT_LT(sent, std::size_t{64} << 20) << "the server ends it";
  EXPECT_LT(ResidentBytes() - before, 16 << 20);
  ExpectWell();
}

}  // namespace
}  // namespace flopledger
