#include "collect/cupti/cupti_status.h"

namespace flopledger {
namespace {

struct Meaning {
  DeviceSourceState::Kind kind;
  std::string_view reason;
  std::string_view advice;
};

using Kind = DeviceSourceState::Kind;

Meaning MeaningOf(CUptiResult code) {
  switch (static_cast<int>(code)) {
    case 8:
      return {Kind::kUnavailable, "out_of_memory", "free host memory and start again"};
    case 14:
      return {Kind::kUnavailable, "not_compatible",
              "another tool of this process uses the other family of its API; end that tool"};
    case 15:
      return {Kind::kUnavailable, "not_initialized",
              "the driver is missing or older than the library; install a matching libcupti"};
    case 26:
      return {Kind::kWaiting, "hardware_busy", "another profiler holds the GPU; will try again"};
    case 27:
    case 33:
    case 41:
    case 42:
    case 43:
    case 44:
    case 45:
      return {Kind::kUnavailable, "not_supported",
              "this device or its virtualization does not allow tracing"};
    case 35:
    case 40:
      return {Kind::kUnavailable, "permission",
              "allow profiling to users in the driver's options, or give CAP_SYS_ADMIN"};
    case 39:
      return {Kind::kWaiting, "other_tool",
              "another CUPTI client (a profiler) holds it; will try again when it has left"};
    case 999:
      return {Kind::kUnavailable, "not_initialized", "the driver is missing or did not start"};
    default:
      return {Kind::kUnavailable, "library_error", "see the code in cupti_result.h"};
  }
}

}  // namespace

DeviceSourceState MakeState(DeviceSourceState::Kind kind, std::string_view reason,
                            std::string_view text) {
  return {.kind = kind,
          .reason = std::string(reason),
          .text = std::string("device records: ").append(text)};
}

DeviceSourceState StateOf(CUptiResult code, std::string_view function) {
  const Meaning meaning = MeaningOf(code);
  std::string text(function);
  text.append(" answered ").append(std::to_string(static_cast<int>(code)));
  text.append(" (").append(meaning.reason).append("): ").append(meaning.advice);
  return MakeState(meaning.kind, meaning.reason, text);
}

}  // namespace flopledger
