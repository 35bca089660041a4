#include "session/device_input.h"

#include <fmt/format.h>

#include <utility>

#include "base/clock.h"
#include "collect/cupti/cupti_source.h"
#include "flops/kernel_classes.h"

namespace flopledger {
namespace {

constexpr const char* kCapability = "cupti_activity";

}  // namespace

std::unique_ptr<DeviceSource> MakeDeviceSource(const SessionOptions& options) {
  if (options.device_records == DeviceRecords::kOff) return nullptr;
  // The library may hold parts of a source for as long as the process lives, and with them this.
  static const auto* const clock = new SystemClock;
  CuptiOptions cupti;
  cupti.link_ops = options.host_ops;
  if (options.manual_pump) cupti.flush_interval_ms = 0;
  auto source = CuptiSource::Create(cupti, clock, ClassifyKernel);
  return source ? *std::move(source) : nullptr;
}

std::optional<Capability> DeviceInput::TakeChange(Log& log) {
  if (stopped_) return std::nullopt;
  using Kind = DeviceSourceState::Kind;
  DeviceSourceState state{.kind = Kind::kUnavailable, .reason = "off", .text = {}};
  if (!over_budget_.empty()) {
    state = {.kind = Kind::kDisabled, .reason = "over_budget", .text = over_budget_};
  } else if (source_ != nullptr) {
    state = source_->state();
  }
  counting_ = state.kind == Kind::kCounting;
  if (state.reason == said_) return std::nullopt;
  said_ = state.reason;
  // A machine without a GPU is no news; a GPU whose work is not seen is.
  const bool expected =
      state.reason == "off" || state.reason == "not_built" || state.reason == "no_driver";
  if (!counting_ && !expected) {
    log.WarnOnce(fmt::format("{} {}", kCapability, state.reason),
                 fmt::format("kernels are not recorded ({}): {}", state.reason, state.text));
  }
  return Capability{.name = kCapability, .available = counting_, .reason = std::move(state.reason)};
}

void DeviceInput::StepDown(double cost_ratio, double budget_ratio) {
  if (source_ == nullptr || stopped_) return;
  over_budget_ = fmt::format(
      "device records: collecting costs {:.3f} % of the steps, the budget is {:.3f} %; it is off "
      "from here on, steps and MFU go on (overhead_budget_ratio)",
      cost_ratio * 100, budget_ratio * 100);
  source_->Stop();
}

std::optional<std::vector<DeviceDescription>> DeviceInput::TakeDevices() {
  if (source_ == nullptr || !counting_) return std::nullopt;
  std::vector<DeviceDescription> devices = source_->devices();
  if (devices.size() == devices_said_) return std::nullopt;
  devices_said_ = devices.size();
  return devices;
}

ObservedDevice Observed(const DeviceDescription& device) {
  return {.device = device.device,
          .name = device.name,
          .pci_bus_id = device.pci_bus_id,
          .uuid = device.uuid,
          .multiprocessors = device.multiprocessors,
          .memory_bytes = device.memory_bytes};
}

}  // namespace flopledger
