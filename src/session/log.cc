#include "session/log.h"

#include <fmt/format.h>
#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <map>
#include <utility>

namespace flopledger {

Result<std::unique_ptr<Log>> Log::Create(const std::string& level, const RunIdentity& identity) {
  static const std::map<std::string, spdlog::level::level_enum> kLevels = {
      {"debug", spdlog::level::debug},  {"info", spdlog::level::info},
      {"warning", spdlog::level::warn}, {"error", spdlog::level::err},
      {"off", spdlog::level::off},
  };
  const auto found = kLevels.find(level);
  if (found == kLevels.end()) {
    return InvalidArgument(
        fmt::format("log_level is '{}'; accepted: debug, info, warning, error, off", level));
  }
  try {
    auto logger = std::make_shared<spdlog::logger>(
        "flopledger", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    logger->set_pattern(
        fmt::format("%H:%M:%S.%e flopledger [{}/{}] %l: %v", identity.rank, identity.world_size));
    logger->set_level(found->second);
    logger->flush_on(spdlog::level::info);
    // A log that cannot be written is no reason to stop anything.
    logger->set_error_handler([](const std::string&) {});
    return std::unique_ptr<Log>(new Log(std::move(logger)));
  } catch (const std::exception& error) {
    return Fail(StatusCode::kUnavailable,
                fmt::format("no log on standard error: {}", error.what()));
  }
}

void Log::Say(const std::string& text) noexcept { logger_->info(text); }

void Log::Warn(const std::string& text) noexcept { logger_->warn(text); }

void Log::WarnOnce(const std::string& key, const std::string& text) noexcept {
  try {
    constexpr std::size_t kMostKeys = 1000;  // texts may come from outside
    MutexLock lock(mutex_);
    if (said_.size() < kMostKeys && said_.insert(key).second) logger_->warn(text);
  } catch (...) {
    // No memory to remember it: rather unsaid than said for ever.
  }
}

void Log::Flush() noexcept { logger_->flush(); }

}  // namespace flopledger
