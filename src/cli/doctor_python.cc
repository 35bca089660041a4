#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <nlohmann/json.hpp>
#include <vector>

#include "cli/doctor.h"

extern char** environ;

namespace flopledger::cli {
namespace {

constexpr int kLimitMs = 10'000;
constexpr std::size_t kMostBytes = 64 << 10;

constexpr const char* kProgram = R"(
import importlib.metadata, json, platform, sys, sysconfig
def version(name):
    try:
        return importlib.metadata.version(name)
    except Exception:
        return ""
print(json.dumps({"version": platform.python_version(), "path": sys.executable,
                  "packages": sysconfig.get_path("purelib"), "torch": version("torch"),
                  "jax": version("jax"), "flopledger": version("flopledger")}))
)";

/// All that comes out of the pipe until it closes; nothing after the limit.
std::optional<std::string> ReadAll(int fd) {
  std::string text;
  std::array<char, 4096> buffer{};
  while (text.size() < kMostBytes) {
    pollfd wait{.fd = fd, .events = POLLIN, .revents = 0};
    if (poll(&wait, 1, kLimitMs) != 1) return std::nullopt;
    const ssize_t count = read(fd, buffer.data(), buffer.size());
    if (count <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
  return std::nullopt;
}

std::optional<std::string> OutputOf(const std::vector<std::string>& command) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  pid_t child = -1;
  const int error =
      posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::optional<std::string> text;
  if (error == 0) {
    text = ReadAll(ends[0]);
    if (!text) kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    if (status != 0) text.reset();
  }
  close(ends[0]);
  return text;
}

}  // namespace

std::optional<PythonFacts> AskPython(const std::string& python) {
  const std::optional<std::string> text = OutputOf({python, "-c", kProgram});
  if (!text) return std::nullopt;
  const nlohmann::json json = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return std::nullopt;
  PythonFacts facts;
  facts.version = json.value("version", "");
  facts.path = json.value("path", "");
  facts.packages_folder = json.value("packages", "");
  facts.torch_version = json.value("torch", "");
  facts.jax_version = json.value("jax", "");
  facts.flopledger_version = json.value("flopledger", "");
  return facts;
}

}  // namespace flopledger::cli
