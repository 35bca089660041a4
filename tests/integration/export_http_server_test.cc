// The server as its owner sees it: addresses, ports, discovery, pages, the end.

#include <arpa/inet.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <condition_variable>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <thread>

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
using testing_clients::RawClient;
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

TEST(ExportHttpServerTest, AHandlerThatThrowsIsA500AndTheServerGoesOn) {
  HttpServerOptions options;
  options.routes = {
      {"/bad",
       [](const HttpRequest&) -> HttpResponse { throw std::runtime_error("secret detail"); }},
      TextRoute("/good", "fine\n")};
  auto server = HttpServer::Create(std::move(options));
  const Answer bad = Get((*server)->port(), "/bad");
  EXPECT_EQ(bad.status, 500);
  EXPECT_THAT(bad.body, Not(HasSubstr("secret")));
  EXPECT_EQ(Get((*server)->port(), "/good").body, "fine\n");
}

TEST(ExportHttpServerTest, StopDoesNotWaitForAHandlerThatHangs) {
  std::mutex mutex;
  std::condition_variable changed;
  bool entered = false, released = false;
  HttpServerOptions options;
  options.routes = {{"/hang", [&](const HttpRequest&) {
                       std::unique_lock<std::mutex> lock(mutex);
                       entered = true;
                       changed.notify_all();
                       changed.wait(lock, [&] { return released; });
                       return PlainResponse(200);
                     }}};
  auto server = HttpServer::Create(std::move(options));
  RawClient client((*server)->port());
  client.Send("GET /hang HTTP/1.1\r\nHost: localhost\r\n\r\n");
  {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return entered; });
  }
  EXPECT_FALSE((*server)->Stop(DurationNs(20'000'000)));
  server->reset();
  {
    std::lock_guard<std::mutex> lock(mutex);
    released = true;
    changed.notify_all();
  }
  EXPECT_TRUE(client.WaitClosed()) << "the thread then ends by itself";
}

TEST(ExportHttpServerTest, StopTwiceIsOnceAndFreesThePort) {
  auto server = Serve({});
  const int port = (*server)->port();
  EXPECT_TRUE((*server)->Stop());
  EXPECT_TRUE((*server)->Stop());
  EXPECT_FALSE(RawClient(port).connected());
  EXPECT_TRUE(Serve({.port = port, .fallback_to_any = false}).has_value());
}

TEST(ExportHttpServerTest, AnAnswerUnderWayIsFinishedAtStop) {
  HttpServerOptions options;
  options.routes = {TextRoute("/large", std::string(200'000, 'x'))};
  auto server = HttpServer::Create(std::move(options));
  RawClient client((*server)->port());
  client.Send("GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n");
  while ((*server)->counts().answered == 0) std::this_thread::yield();
  std::thread stopper([&] { (*server)->Stop(); });
  const Answer answer = testing_clients::ParseAnswer(client.ReadToEnd());
  stopper.join();
  EXPECT_EQ(answer.body.size(), 200'000U);
}

TEST(ExportHttpServerTest, AForkedChildHoldsNothingOpen) {
  auto server = Serve({});
  const int port = (*server)->port();
  RawClient waiting(port);
  ASSERT_TRUE(waiting.Send("GET /metrics HTTP/1.1\r\n"));
  while ((*server)->counts().open == 0) std::this_thread::yield();
  int gate[2];
  ASSERT_EQ(pipe2(gate, O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    (*server)->CloseInChild();
    (*server)->CloseInChild();
    char byte = 0;
    close(gate[1]);
    [[maybe_unused]] const ssize_t end = read(gate[0], &byte, 1);  // until the parent is done
    (*server)->Stop();                                             // inert
    _exit(0);
  }
  close(gate[0]);
  // The parent's page goes on, its open connection too.
  EXPECT_EQ(Get(port, "/metrics").status, 200);
  ASSERT_TRUE(waiting.Send("Host: localhost\r\n\r\n"));
  EXPECT_EQ(testing_clients::ParseAnswer(waiting.ReadToEnd()).status, 200);
  // After the parent's end nobody listens, although the child lives.
  (*server)->Stop();
  EXPECT_FALSE(RawClient(port).connected());
  close(gate[1]);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(ExportHttpServerTest, SocketsAreNotInheritedByExec) {
  auto server = Serve({});
  RawClient client((*server)->port());
  while ((*server)->counts().open == 0) std::this_thread::yield();
  int without_flag = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const auto target = std::filesystem::read_symlink(entry.path(), error);
    if (error || !target.string().starts_with("socket:")) continue;
    const int fd = std::stoi(entry.path().filename().string());
    if ((fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0) ++without_flag;
  }
  EXPECT_EQ(without_flag, 0);
}

TEST(ExportHttpServerTest, TheServersThreadTakesNoSignals) {
  auto server = Serve({});
  ASSERT_EQ(Get((*server)->port(), "/metrics").status, 200) << "the thread has its name by now";
  int found = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    if (ReadFile(entry.path() / "comm") != "flopledger-http\n") continue;
    ++found;
    const std::string status = ReadFile(entry.path() / "status");
    const std::size_t at = status.find("SigBlk:\t");
    ASSERT_NE(at, std::string::npos);
    const auto blocked = std::stoull(status.substr(at + 8, 16), nullptr, 16);
    for (int signal : {SIGTERM, SIGINT, SIGPIPE, SIGUSR1, SIGCHLD}) {
      EXPECT_NE(blocked & (1ULL << (signal - 1)), 0U) << signal;
    }
  }
  EXPECT_EQ(found, 1) << "one thread, by its name";
}

// With no descriptor left, a connection that waits must not make the loop spin. In a child, since
// the limit is the process's.
int RunOutOfDescriptors() {
  auto server = Serve({});
  if (!server) return 2;
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>((*server)->port()));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
  if (setrlimit(RLIMIT_NOFILE, &none) != 0) return 3;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) return 4;
  while ((*server)->counts().accept_errors < 2) std::this_thread::yield();
  const std::int64_t errors = (*server)->counts().accept_errors;
  setrlimit(RLIMIT_NOFILE, &before);
  if (errors > 50) return 5;
  // The connection that waited is served once there is room again.
  const std::string request = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
  if (send(fd, request.data(), request.size(), MSG_NOSIGNAL) < 0) return 6;
  char answer[16] = {};
  const ssize_t count = recv(fd, answer, sizeof(answer) - 1, MSG_WAITALL);
  return count > 0 && std::string(answer).starts_with("HTTP/1.1 200") ? 0 : 7;
}

TEST(ExportHttpServerTest, NoDescriptorsLeftPausesAccepting) {
  const pid_t child = fork();
  if (child == 0) _exit(RunOutOfDescriptors());
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
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

// A worker that is stuck in some other sink: the page answers with the last whole snapshot, and its
// age says so.
TEST(ExportHttpServerTest, C55AStuckWorkerBlocksNoScrape) {
  auto metrics = PrometheusSink::Create();
  auto live = LiveSink::Create();
  HttpServerOptions options;
  options.routes = PageRoutes((*metrics)->page(), (*live)->page());
  auto server = HttpServer::Create(std::move(options));
  const int port = (*server)->port();
  std::mutex mutex;
  std::condition_variable changed;
  bool stuck = false, released = false;
  std::thread worker([&] {
    fakes::FakeRun run;
    RunTotals totals;
    (*metrics)->Open(run.description());
    (*live)->Open(run.description());
    const auto publish = [&] {
      const StepReport report = run.NextStep();
      totals.Add(report);
      (*metrics)->Publish(report, totals);
      (*live)->Publish(report, totals);
    };
    publish();
    std::unique_lock<std::mutex> lock(mutex);
    stuck = true;
    changed.notify_all();
    changed.wait(lock, [&] { return released; });
    publish();
  });
  {
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return stuck; });
  }
  const auto age = [&] {
    const std::string body = Get(port, "/api/v1/steps").body;
    const std::size_t at = body.find("\"snapshot_age_seconds\":");
    return at == std::string::npos ? -1.0 : std::atof(body.c_str() + at + 23);
  };
  const double first_age = age();
  EXPECT_GE(first_age, 0);
  for (int scrape = 0; scrape < 60; ++scrape) {
    const Answer page = Get(port, "/metrics");
    ASSERT_EQ(page.status, 200);
    ASSERT_THAT(page.body,
                HasSubstr("flopledger_last_step{run_id=\"gpt-small-1\",rank=\"0\"} 0\n"));
    RawClient(port).Reset();  // a client that hangs up leaves nothing behind
  }
  EXPECT_GE(age(), first_age);
  {
    std::lock_guard<std::mutex> lock(mutex);
    released = true;
  }
  changed.notify_all();
  worker.join();
  EXPECT_THAT(Get(port, "/metrics").body,
              HasSubstr("flopledger_last_step{run_id=\"gpt-small-1\",rank=\"0\"} 1\n"));
  EXPECT_LT(age(), 60);
}

}  // namespace
}  // namespace flopledger
