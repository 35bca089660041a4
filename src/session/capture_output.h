#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "collect/capture_tap.h"
#include "flopledger/report_sink.h"
#include "flopledger/session.h"
#include "session/log.h"

namespace flopledger {

/// A session's capture file, if it writes one, and what there is to say about it.
///
/// Thread: whoever pumps. Fails: `Create` only, with the path; later faults are the capability
/// `capture` with the reason `full` or `write_failed`.
class CaptureOutput {
 public:
  /// Null without a path.
  static Result<std::unique_ptr<CaptureOutput>> Create(const SessionOptions& options,
                                                       const RunDescription& description,
                                                       std::int64_t session_start_ns);

  CaptureTap& tap() { return *tap_; }
  /// The capability, if it has changed since the last call; a fault is said in the log, once.
  std::optional<Capability> TakeChange(Log& log);

 private:
  explicit CaptureOutput(std::unique_ptr<CaptureTap> tap) : tap_(std::move(tap)) {}

  std::unique_ptr<CaptureTap> tap_;
  std::string said_;
};

/// `run.flopcap` of rank 3 of 8 is `run.rank3.flopcap`: ranks on one file system write apart.
std::string CapturePathOf(const std::string& path, const RunIdentity& identity);

}  // namespace flopledger
