// The server within a process: fork, exec, signals, descriptors, a stuck worker, the end.

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
using ::testing::Not;
using testing_clients::Answer;
using testing_clients::Get;
using testing_clients::RawClient;

HttpRoute TextRoute(const std::string& path, const std::string& text) {
  return {path, [text](const HttpRequest&) { return PlainResponse(200, text); }};
}

Result<std::unique_ptr<HttpServer>> Serve(Listener::Options listen) {
  HttpServerOptions options;
  options.listen = std::move(listen);
  options.routes = {TextRoute("/metrics", "m 1\n")};
  return HttpServer::Create(std::move(options));
}

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(ExportHttpProcessTest, AHandlerThatThrowsIsA500AndTheServerGoesOn) {
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

TEST(ExportHttpProcessTest, StopDoesNotWaitForAHandlerThatHangs) {
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

TEST(ExportHttpProcessTest, StopTwiceIsOnceAndFreesThePort) {
  auto server = Serve({});
  const int port = (*server)->port();
  EXPECT_TRUE((*server)->Stop());
  EXPECT_TRUE((*server)->Stop());
  EXPECT_FALSE(RawClient(port).connected());
  EXPECT_TRUE(Serve({.port = port, .fallback_to_any = false}).has_value());
}

TEST(ExportHttpProcessTest, AnAnswerUnderWayIsFinishedAtStop) {
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

TEST(ExportHttpProcessTest, AForkedChildHoldsNothingOpen) {
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

TEST(ExportHttpProcessTest, SocketsAreNotInheritedByExec) {
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

TEST(ExportHttpProcessTest, TheServersThreadTakesNoSignals) {
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

TEST(ExportHttpProcessTest, NoDescriptorsLeftPausesAccepting) {
  const pid_t child = fork();
  if (child == 0) _exit(RunOutOfDescriptors());
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// A worker that is stuck in some other sink: the page answers with the last whole snapshot, and its
// age says so.
TEST(ExportHttpProcessTest, C55AStuckWorkerBlocksNoScrape) {
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
