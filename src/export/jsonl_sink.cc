#include "export/jsonl_sink.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "export/report_json.h"
#include "export/write_all.h"

namespace flopledger {
namespace {

constexpr std::int64_t kSmallestFile = 64 << 10;

std::string Numbered(const std::string& path, int number) {
  return number == 0 ? path : fmt::format("{}.{}", path, number);
}

// A process that was killed in mid-line left a line without an end: the next one must not join it.
bool EndsInsideALine(int fd, std::int64_t size) {
  char last = '\n';
  return size > 0 && pread(fd, &last, 1, size - 1) == 1 && last != '\n';
}

}  // namespace

Result<std::unique_ptr<JsonlSink>> JsonlSink::Create(JsonlSinkOptions options) {
  if (options.path.empty()) return InvalidArgument("jsonl path is empty; accepted: a file name");
  if (options.max_bytes < kSmallestFile) {
    return InvalidArgument(fmt::format("jsonl max_bytes is {}; accepted: {} or more",
                                       options.max_bytes, kSmallestFile));
  }
  if (options.max_files < 1 || options.max_files > 100) {
    return InvalidArgument(
        fmt::format("jsonl max_files is {}; accepted: 1 to 100", options.max_files));
  }
  std::unique_ptr<JsonlSink> sink(new JsonlSink(std::move(options)));
  if (const int error = sink->OpenFile(); error != 0) {
    return Fail(StatusCode::kUnavailable,
                fmt::format("jsonl path '{}' cannot be written: {}", sink->path(),
                            std::generic_category().message(error)));
  }
  return sink;
}

JsonlSink::~JsonlSink() {
  if (fd_ >= 0) close(fd_);
}

int JsonlSink::OpenFile() {
  fd_ = open(options_.path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd_ < 0) return errno;
  struct stat status{};
  if (fstat(fd_, &status) != 0) return errno;
  if (!S_ISREG(status.st_mode)) return 0;
  bytes_ = status.st_size;
  if (!EndsInsideALine(fd_, bytes_)) return 0;
  ++bytes_;
  return WriteAll(fd_, "\n");
}

void JsonlSink::Open(const RunDescription& run) {
  identity_ = run.identity;
  run_line_ = RunJson(run);
  WriteLine(run_line_);
}

void JsonlSink::Publish(const StepReport& report, const RunTotals& /*totals*/) {
  WriteLine(StepJson(report, identity_));
}

void JsonlSink::Finish(const RunTotals& totals) { WriteLine(SummaryJson(totals, identity_)); }

void JsonlSink::Rotate() {
  close(fd_);
  fd_ = -1;
  bytes_ = 0;
  for (int number = options_.max_files - 1; number > 0; --number) {
    static_cast<void>(std::rename(Numbered(options_.path, number - 1).c_str(),
                                  Numbered(options_.path, number).c_str()));
  }
  if (options_.max_files == 1) unlink(options_.path.c_str());
  if (const int error = OpenFile(); error != 0) {
    Report(error);
    return;
  }
  WriteLine(run_line_);
}

void JsonlSink::WriteLine(std::string line) {
  line += '\n';
  const auto size = static_cast<std::int64_t>(line.size());
  const bool has_steps = bytes_ > static_cast<std::int64_t>(run_line_.size()) + 1;
  if (fd_ >= 0 && has_steps && bytes_ + size > options_.max_bytes) Rotate();
  if (fd_ < 0) {
    if (const int error = OpenFile(); error != 0) {
      ++lines_lost_;
      Report(error);
      return;
    }
  }
  if (const int error = WriteAll(fd_, line); error != 0) {
    ++lines_lost_;
    // Half a line may be in the file.
    static_cast<void>(!ftruncate(fd_, bytes_));
    Report(error);
    return;
  }
  if (options_.sync_each_line) fdatasync(fd_);
  bytes_ += size;
  ++lines_written_;
}

void JsonlSink::Report(int error) {
  if (reported_) return;
  reported_ = true;
  if (!options_.on_failure) return;
  options_.on_failure(Status(
      StatusCode::kUnavailable,
      fmt::format("step log '{}' cannot be written: {}; the training goes on, lines are lost",
                  options_.path, std::generic_category().message(error))));
}

}  // namespace flopledger
