#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "flopledger/report_sink.h"
#include "flopledger/status.h"

namespace flopledger {

struct JsonlSinkOptions {
  std::string path;                    ///< appended to; its folder has to exist
  std::int64_t max_bytes = 256 << 20;  ///< of one file, 64 KiB at least; then it is `path.1`
  int max_files = 4;                   ///< with the current one, 1 to 100; the oldest goes
  bool sync_each_line = false;         ///< fdatasync: survives a power cut, costs a disk write
  /// Called once when writing stops to work, on the worker. The sink goes on trying.
  std::function<void(const Status&)> on_failure;
};

/// The step log: the run, one object per closed step, the summary; see docs/jsonl.md.
///
///     auto sink = JsonlSink::Create({.path = "run.jsonl"});
///
/// A line is one write(2), so what was closed is in the file even if the process is killed. Every
/// file of a rotated log begins with the run. After a failed write the file is cut back to its last
/// whole line; lines that could not be written are counted.
///
/// Thread: as `ReportSink`. Ownership: of the descriptor. Fails: `Create` only, with the path and
/// the system's reason; later failures are reported once.
class JsonlSink final : public ReportSink {
 public:
  static Result<std::unique_ptr<JsonlSink>> Create(JsonlSinkOptions options);
  ~JsonlSink() override;

  void Open(const RunDescription& run) override;
  void Publish(const StepReport& report, const RunTotals& totals) override;
  void Finish(const RunTotals& totals) override;

  const std::string& path() const { return options_.path; }
  std::int64_t lines_written() const { return lines_written_; }
  std::int64_t lines_lost() const { return lines_lost_; }

 private:
  explicit JsonlSink(JsonlSinkOptions options) : options_(std::move(options)) {}
  int OpenFile();
  void Rotate();
  void WriteLine(std::string line);
  void Report(int error);

  const JsonlSinkOptions options_;
  int fd_ = -1;
  std::int64_t bytes_ = 0;
  std::string run_line_;
  RunIdentity identity_;
  std::int64_t lines_written_ = 0;
  std::int64_t lines_lost_ = 0;
  bool reported_ = false;
};

}  // namespace flopledger
