#include "session/capture_output.h"

#include <utility>

namespace flopledger {

std::string CapturePathOf(const std::string& path, const RunIdentity& identity) {
  if (identity.world_size <= 1) return path;
  const std::size_t name = path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1;
  std::size_t dot = path.rfind('.');
  if (dot == std::string::npos || dot <= name) dot = path.size();
  return path.substr(0, dot) + ".rank" + std::to_string(identity.rank) + path.substr(dot);
}

Result<std::unique_ptr<CaptureOutput>> CaptureOutput::Create(const SessionOptions& options,
                                                             const RunDescription& description,
                                                             std::int64_t session_start_ns) {
  if (options.capture_path.empty()) return std::unique_ptr<CaptureOutput>();
  const CaptureRun run{.description = description,
                       .convention = ListSwitches(options.convention),
                       .device_count = options.device_count,
                       .warmup_steps = options.warmup_steps,
                       .host_ops = options.host_ops,
                       .session_start_ns = session_start_ns};
  Result<std::unique_ptr<CaptureTap>> tap =
      CaptureTap::Create({.path = CapturePathOf(options.capture_path, description.identity),
                          .max_bytes = options.capture_max_bytes},
                         run);
  if (!tap.has_value()) return tl::unexpected(tap.error());
  return std::unique_ptr<CaptureOutput>(new CaptureOutput(*std::move(tap)));
}

std::optional<Capability> CaptureOutput::TakeChange(Log& log) {
  const CaptureTap::State& state = tap_->state();
  if (state.reason == said_) return std::nullopt;
  said_ = state.reason;
  if (!state.text.empty()) log.WarnOnce("capture", state.text);
  return Capability{.name = "capture", .available = said_ == "ok", .reason = said_};
}

}  // namespace flopledger
