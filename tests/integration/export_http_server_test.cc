// The server as its owner sees it: addresses, ports, discovery, pages, the end.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "export/http_server.h"
#include "export/routes.h"
#include "fakes/fake_run.h"
#include "integration/raw_client.h"

namespace flopledger {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using testing_clients::Answer;
using testing_clients::Get;
using testing_clients::Request;

HttpRoute TextRoute(const std::string& path, const std::string& text) {
  return {path, [text](const HttpRequest&) { return PlainResponse(200, text); }};
}

Result<std::unique_ptr<HttpServer>> Serve(Listener::Options listen, std::string folder = {},
                                          RunIdentity identity = {}) {
  HttpServerOptions options;
  options.listen = std::move(listen);
  options.discovery_folder = std::move(folder);
  options.identity = std::move(identity);
  options.routes = {TextRoute("/metrics", "m 1\n")};
  return HttpServer::Create(std::move(options));
}

class Folder {
 public:
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "flopledger-XXXXXX").string();
    path_ = mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string path() const { return path_.string(); }
  std::size_t Count() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::filesystem::path path_;
};

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Lines of /proc/net/tcp that listen on the port: `0100007F:xxxx` is 127.0.0.1.
std::string ListeningAddress(int port) {
  std::ifstream table("/proc/net/tcp");
  char wanted[8];
  std::snprintf(wanted, sizeof(wanted), ":%04X", static_cast<unsigned>(port));
  std::string line;
  while (std::getline(table, line)) {
    std::istringstream fields(line);
    std::string slot, local, remote, state;
    fields >> slot >> local >> remote >> state;
    if (state == "0A" && local.ends_with(wanted)) return local.substr(0, 8);
  }
  return {};
}

TEST(ExportHttpServerTest, C56ListensOnLoopbackOnlyByDefault) {
  auto server = Serve({});
  ASSERT_TRUE(server.has_value()) << server.error().message();
  EXPECT_EQ(ListeningAddress((*server)->port()), "0100007F");
  EXPECT_THAT((*server)->notice(), IsEmpty());
  EXPECT_EQ((*server)->address(), "http://127.0.0.1:" + std::to_string((*server)->port()));
}

TEST(ExportHttpServerTest, C56RefusesOtherAddressesUnlessAllowed) {
  for (const char* address : {"0.0.0.0", "::", "192.0.2.1"}) {
    auto refused = Serve({.address = address});
    ASSERT_FALSE(refused.has_value()) << address;
    EXPECT_EQ(refused.error().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(refused.error().message(), HasSubstr(address));
    EXPECT_THAT(refused.error().message(), HasSubstr("allow_remote"));
  }
  auto open = Serve({.address = "0.0.0.0", .allow_remote = true});
  ASSERT_TRUE(open.has_value()) << open.error().message();
  EXPECT_THAT((*open)->notice(), HasSubstr("can be read by every machine"));
  EXPECT_EQ(Get((*open)->port(), "/metrics", "any.example").status, 200);
}

TEST(ExportHttpServerTest, C56OnlyKnownPathsAndMethodsAnswer) {
  auto server = Serve({});
  const int port = (*server)->port();
  EXPECT_EQ(Get(port, "/metrics").status, 200);
  EXPECT_EQ(Get(port, "/metrics?x=1").status, 200);
  for (const char* path : {"/", "/../../etc/passwd", "/metrics/", "//metrics", "/%6Detrics",
                           "/assets/../metrics", "/assets/", "/.."}) {
    const Answer answer = Get(port, path);
    EXPECT_EQ(answer.status, 404) << path;
    EXPECT_EQ(answer.body, "404 Not Found\n") << path;
  }
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT", "FOO"}) {
    const Answer answer =
        Request(port, std::string(method) + " /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_EQ(answer.status, 405) << method;
    EXPECT_THAT(answer.head, HasSubstr("Allow: GET, HEAD")) << method;
  }
  const Answer head = Request(port, "HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(head.status, 200);
  EXPECT_THAT(head.head, HasSubstr("Content-Length: 4\r\n"));
  EXPECT_THAT(head.body, IsEmpty());
}

TEST(ExportHttpServerTest, C50RanksOfOneHostEachGetAPort) {
  Folder folder;
  auto taken = Listener::Create({.port = 0});
  ASSERT_TRUE(taken.has_value());
  // Rank 0 finds its port occupied; without a fallback it says so and goes on without a page.
  auto refused = Serve({.port = taken->port(), .fallback_to_any = false}, folder.path(),
                       {.run_id = "run", .rank = 0});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code(), StatusCode::kUnavailable);
  EXPECT_THAT(refused.error().message(), HasSubstr(std::to_string(taken->port())));
  EXPECT_THAT(refused.error().message(), HasSubstr("Address already in use"));
  EXPECT_EQ(folder.Count(), 0U);
  std::vector<std::unique_ptr<HttpServer>> ranks;
  for (int rank = 1; rank < 8; ++rank) {
    auto server = Serve({}, folder.path(), {.run_id = "run", .rank = rank});
    ASSERT_TRUE(server.has_value());
    ranks.push_back(std::move(*server));
  }
  EXPECT_EQ(folder.Count(), 7U) << "one discovery file per bound endpoint";
}

TEST(ExportHttpServerTest, ATakenPortFallsBackAndSaysSo) {
  auto first = Serve({});
  const int port = (*first)->port();
  auto second = Serve({.port = port});
  ASSERT_TRUE(second.has_value()) << second.error().message();
  EXPECT_NE((*second)->port(), port);
  EXPECT_THAT((*second)->notice(), HasSubstr("port " + std::to_string(port)));
  EXPECT_THAT((*second)->notice(), HasSubstr("serving on port "));
  EXPECT_EQ(Get((*second)->port(), "/metrics").status, 200);
  EXPECT_EQ(Get(port, "/metrics").status, 200);
}

TEST(ExportHttpServerTest, BadOptionsNameTheValueAndTheAcceptedOnes) {
  auto address = Serve({.address = "my-host"});
  ASSERT_FALSE(address.has_value());
  EXPECT_THAT(address.error().message(), HasSubstr("'my-host'"));
  for (int port : {-1, 65536}) {
    auto refused = Serve({.port = port});
    ASSERT_FALSE(refused.has_value());
    EXPECT_THAT(refused.error().message(), HasSubstr(std::to_string(port)));
    EXPECT_THAT(refused.error().message(), HasSubstr("65535"));
  }
  HttpServerOptions options;
  options.limits.connections = 0;
  auto connections = HttpServer::Create(std::move(options));
  ASSERT_FALSE(connections.has_value());
  EXPECT_THAT(connections.error().message(), HasSubstr("1 to 64"));
}

TEST(ExportHttpServerTest, ServesOnIpv6Loopback) {
  auto server = Serve({.address = "::1"});
  if (!server) GTEST_SKIP() << "no IPv6 loopback here: " << server.error().message();
  EXPECT_THAT((*server)->address(), ::testing::StartsWith("http://[::1]:"));
}

TEST(ExportHttpServerTest, DiscoveryFileIsWholeAndGoesWithTheServer) {
  Folder folder;
  auto server = Serve({}, folder.path(), {.run_id = "exp/7 \"x\"", .rank = 3});
  ASSERT_TRUE(server.has_value());
  const auto path = std::filesystem::path(folder.path()) / "exp_7__x_-3.json";
  EXPECT_EQ(ReadFile(path),
            "[{\"targets\": [\"127.0.0.1:" + std::to_string((*server)->port()) + "\"]}]\n");
  EXPECT_EQ(folder.Count(), 1U) << "no temporary file is left";
  (*server)->Stop();
  EXPECT_EQ(folder.Count(), 0U);
  // A folder that is not there costs the file, not the page.
  auto without = Serve({}, folder.path() + "/missing", {.run_id = "x"});
  ASSERT_TRUE(without.has_value());
  EXPECT_THAT((*without)->notice(), HasSubstr("No such file or directory"));
}

TEST(ExportHttpServerTest, RefusesOtherHostNamesOnLoopback) {
  auto server = Serve({});
  const int port = (*server)->port();
  for (const char* host : {"localhost", "127.0.0.1", "LOCALHOST:9410", "127.0.0.1:1", "[::1]:5"}) {
    EXPECT_EQ(Get(port, "/metrics", host).status, 200) << host;
  }
  for (const char* host : {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example",
                           "evil.example:9410", "0.0.0.0", "[::1"}) {
    const Answer answer = Get(port, "/metrics", host);
    EXPECT_EQ(answer.status, 421) << host;
    EXPECT_THAT(answer.body, Not(HasSubstr("m 1"))) << host;
  }
}

TEST(ExportHttpServerTest, ServesThePagesOfARun) {
  auto metrics = PrometheusSink::Create();
  auto live = LiveSink::Create();
  HttpServerOptions options;
  options.routes = PageRoutes((*metrics)->page(), (*live)->page());
  auto server = HttpServer::Create(std::move(options));
  const int port = (*server)->port();
  EXPECT_EQ(Get(port, "/metrics").status, 200) << "before anything is known";
  EXPECT_EQ(Get(port, "/-/healthy").body, "ok: no step yet\n");

  fakes::FakeRun run;
  RunTotals totals;
  for (ReportSink* sink :
       {static_cast<ReportSink*>(metrics->get()), static_cast<ReportSink*>(live->get())}) {
    sink->Open(run.description());
    sink->Announce(run.state());
  }
  for (int i = 0; i < 5; ++i) {
    const StepReport report = run.NextStep();
    totals.Add(report);
    (*metrics)->Publish(report, totals);
    (*live)->Publish(report, totals);
  }
  const Answer page = Get(port, "/metrics");
  EXPECT_THAT(page.head, HasSubstr("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
  EXPECT_THAT(page.body, HasSubstr("flopledger_steps_total{run_id=\"gpt-small-1\",rank=\"0\","
                                   "result=\"complete\"} 4\n"));
  EXPECT_EQ(Get(port, "/metrics").body, page.body) << "C54: reading changes nothing";
  const Answer steps = Get(port, "/api/v1/steps?since=3");
  EXPECT_THAT(steps.head, HasSubstr("Content-Type: application/json"));
  EXPECT_THAT(steps.body, HasSubstr("\"steps\":[{\"step\":4,"));
  EXPECT_EQ(Get(port, "/api/v1/steps?since=abc").status, 400);
  EXPECT_THAT(Get(port, "/api/v1/run").body, HasSubstr("\"run_id\":\"gpt-small-1\""));
  EXPECT_THAT(Get(port, "/api/v1/conventions").body, HasSubstr("\"convention\":\"house\""));
  EXPECT_THAT(Get(port, "/-/healthy").body, HasSubstr("ok: last step published "));
  const Answer root = Get(port, "/");
  EXPECT_EQ(root.status, 302);
  EXPECT_THAT(root.head, HasSubstr("Location: /live\r\n"));
  EXPECT_THAT(Get(port, "/live").head, HasSubstr("Content-Type: text/html"));
  for (const char* asset :
       {"/assets/live.css", "/assets/live.js", "/assets/chart.js", "/assets/icon.svg"}) {
    EXPECT_EQ(Get(port, asset).status, 200) << asset;
  }
}
}  // namespace
}  // namespace flopledger
