#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "collect/device_source.h"

namespace flopledger::fakes {

/// A device that a test drives: launches get the next place in the launch order, work is delivered
/// when the test says so. Marks may come from any thread.
///
///     device->Launch({.start_ns = 10, .end_ns = 20, .kernel = device->Name("gemm")});
///     device->Deliver();   // at the next drain
class FakeDeviceSource final : public DeviceSource {
 public:
  struct Shared {
    std::mutex mutex;
    LaunchOrder next_order = 1;
    RecordBatch pending;  // recorded, not delivered
    RecordBatch ready;
    std::vector<std::pair<SignatureId, Phase>> ops;  // of one thread
    DeviceSourceState state{.kind = DeviceSourceState::Kind::kCounting, .reason = "ok", .text = {}};
    int fences = 0;
    std::atomic<int> calls_after_fork{0};
    std::atomic<bool> inert{false};
    int stops = 0;
  };

  explicit FakeDeviceSource(std::shared_ptr<Shared> shared)
      : shared_(std::move(shared)), kernels_(64, [](std::string_view name) {
          return name == "gemm"   ? OpClass::kMatmul
                 : name == "nccl" ? OpClass::kCommunication
                                  : OpClass::kUnknown;
        }) {
    for (const char* name : {"gemm", "nccl", "mystery"}) kernels_.Intern({.name = name});
  }

  // Numbers of the three kernels that it knows.
  static constexpr KernelId kGemm = 1;
  static constexpr KernelId kNccl = 2;
  static constexpr KernelId kMystery = 3;

  /// Work that the calling thread launches now, under the op that is pushed.
  static void Launch(Shared& shared, KernelRecord kernel) {
    const std::lock_guard lock(shared.mutex);
    kernel.launch_order = shared.next_order++;
    kernel.launch_known = true;
    kernel.op_class = kernel.kernel == kGemm   ? OpClass::kMatmul
                      : kernel.kernel == kNccl ? OpClass::kCommunication
                                               : OpClass::kUnknown;
    if (!shared.ops.empty()) {
      kernel.op = shared.ops.back().first;
      kernel.phase = shared.ops.back().second;
      kernel.op_known = true;
    }
    shared.pending.kernels.push_back(kernel);
  }
  static void Deliver(Shared& shared) {
    const std::lock_guard lock(shared.mutex);
    const auto& kernels = shared.pending.kernels;
    const auto& fences = shared.pending.fences;
    shared.ready.kernels.insert(shared.ready.kernels.end(), kernels.begin(), kernels.end());
    shared.ready.fences.insert(shared.ready.fences.end(), fences.begin(), fences.end());
    shared.pending.Clear();
  }

  void Fence(std::int64_t boundary_ns) noexcept override {
    if (shared_->inert) ++shared_->calls_after_fork;
    const std::lock_guard lock(shared_->mutex);
    ++shared_->fences;
    if (shared_->state.kind != DeviceSourceState::Kind::kCounting) return;
    if (shared_->pending.fences.capacity() == shared_->pending.fences.size()) return;
    shared_->pending.fences.push_back(
        {.boundary_ns = boundary_ns, .launch_order = shared_->next_order++});
  }
  void PushOp(SignatureId op, Phase phase) noexcept override {
    const std::lock_guard lock(shared_->mutex);
    if (shared_->ops.size() < shared_->ops.capacity()) shared_->ops.emplace_back(op, phase);
  }
  void PopOp() noexcept override {
    const std::lock_guard lock(shared_->mutex);
    if (!shared_->ops.empty()) shared_->ops.pop_back();
  }
  void Drain(RecordBatch& batch) override {
    const std::lock_guard lock(shared_->mutex);
    RecordBatch& ready = shared_->ready;
    batch.kernels.insert(batch.kernels.end(), ready.kernels.begin(), ready.kernels.end());
    batch.fences.insert(batch.fences.end(), ready.fences.begin(), ready.fences.end());
    batch.losses.insert(batch.losses.end(), ready.losses.begin(), ready.losses.end());
    batch.clock_steps.insert(batch.clock_steps.end(), ready.clock_steps.begin(),
                             ready.clock_steps.end());
    batch.overheads.insert(batch.overheads.end(), ready.overheads.begin(), ready.overheads.end());
    ready.Clear();
  }
  void Stop() override {
    ++shared_->stops;
    Deliver(*shared_);
  }
  void BecomeInert() noexcept override { shared_->inert = true; }
  DeviceSourceState state() const override {
    const std::lock_guard lock(shared_->mutex);
    return shared_->state;
  }
  const KernelTable& kernels() const override { return kernels_; }
  std::vector<DeviceDescription> devices() const override {
    return {{.device = 0, .name = "Fake GPU", .pci_bus_id = "0000:01:00.0", .uuid = "GPU-1"}};
  }

 private:
  const std::shared_ptr<Shared> shared_;
  KernelTable kernels_;
};

}  // namespace flopledger::fakes
