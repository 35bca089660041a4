#pragma once

#include <memory>
#include <set>
#include <string>

#include "base/sync.h"
#include "flopledger/report_sink.h"
#include "flopledger/status.h"

namespace spdlog {
class logger;
}

namespace flopledger {

/// Our own logger on standard error; the host's default logger and pattern are never touched.
///
/// Thread: any. Fails: `Create` on an unknown level; writing never throws.
class Log {
 public:
  /// `level`: debug, info, warning, error or off.
  static Result<std::unique_ptr<Log>> Create(const std::string& level, const RunIdentity& identity);

  void Say(const std::string& text) noexcept;
  void Warn(const std::string& text) noexcept;
  /// Warns the first time that `key` is used.
  void WarnOnce(const std::string& key, const std::string& text) noexcept;
  void Flush() noexcept;

 private:
  explicit Log(std::shared_ptr<spdlog::logger> logger) : logger_(std::move(logger)) {}
  const std::shared_ptr<spdlog::logger> logger_;
  Mutex mutex_;
  std::set<std::string> said_ FLOPLEDGER_GUARDED_BY(mutex_);
};

}  // namespace flopledger
