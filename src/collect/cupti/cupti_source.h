#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/kernel_table.h"
#include "collect/device_source.h"
#include "flopledger/status.h"

namespace flopledger {

struct CuptiOptions {
  std::size_t buffer_bytes = std::size_t{1} << 20;  ///< 4,854 kernel records of CUDA 13
  std::size_t buffers = 16;
  /// Hard limit of all activity buffers. What lies between it and the pool is used only with
  /// libraries older than API version 27, which crash when a buffer is refused.
  std::size_t cap_bytes = std::size_t{64} << 20;
  /// How often the library is asked for its finished buffers, besides once after each boundary.
  /// 0: no thread of its own; `Drain` asks (for a manual pump).
  std::int64_t flush_interval_ms = 250;
  std::size_t kernel_signatures = 32768;
  /// Record launch calls as well, so that kernels carry the op of `PushOp`. Without it `PushOp`
  /// does nothing.
  bool link_ops = false;
  /// Path of libcupti. Empty: `FLOPLEDGER_CUPTI_LIBRARY`, else it is looked for: a copy that is
  /// mapped already, the framework's wheel, `CUDA_HOME`, the loader's path.
  std::string library;
  /// Searched for libcupti before `CUDA_HOME`.
  std::vector<std::string> library_folders;
  std::string driver_library = "libcuda.so.1";
};

/// What happened inside, for tests and diagnosis; all since the start.
struct CuptiCounts {
  std::int64_t records = 0;              ///< decoded, of every kind
  std::int64_t skipped_records = 0;      ///< of a kind that is of no use here
  std::int64_t graph_kernels = 0;        ///< launched by a graph
  std::int64_t dropped_records = 0;      ///< as the library counted them
  std::int64_t buffers_outstanding = 0;  ///< in the library's hands
  std::int64_t buffers_refused = 0;      ///< requests that the empty pool could not serve
  std::int64_t buffer_bytes = 0;         ///< in use or waiting: never above `cap_bytes`
  std::int64_t fences_set = 0;
  std::int64_t fences_seen = 0;
  std::int64_t registrations = 0;  ///< 1; 2 after another tool took the library over
};

/// Kernels, copies and fills of every device, through NVIDIA's libcupti, which is opened at run
/// time. Always returned: where the library, the driver or a permission is missing, `state` says
/// so.
///
///     auto source = CuptiSource::Create({}, &clock, ClassifyKernel);
///     (*source)->Fence(boundary_ns);
///     (*source)->Drain(batch);
///
/// Records carry launch orders (CUPTI's correlation ids, 64 bits wide), times of `clock`.
/// Thread: see DeviceSource. One live instance a process: the library's callbacks have no argument.
/// Ownership: `clock` outlives it. Buffers that the library has not returned are never freed.
/// Fails: only on options that cannot be.
class CuptiSource final : public DeviceSource {
 public:
  static Result<std::unique_ptr<CuptiSource>> Create(const CuptiOptions& options,
                                                     const Clock* clock,
                                                     KernelTable::Classifier classify);
  ~CuptiSource() override;
  CuptiSource(const CuptiSource&) = delete;
  CuptiSource& operator=(const CuptiSource&) = delete;

  void Drain(RecordBatch& batch) override;
  void Stop() override;
  FLOPLEDGER_HOT void Fence(std::int64_t boundary_ns) noexcept override;
  FLOPLEDGER_HOT void PushOp(SignatureId op, Phase phase) noexcept override;
  FLOPLEDGER_HOT void PopOp() noexcept override;
  void BecomeInert() noexcept override;
  DeviceSourceState state() const override;
  const KernelTable& kernels() const override;
  std::vector<DeviceDescription> devices() const override;

  CuptiCounts counts() const;

 private:
  class Impl;
  explicit CuptiSource(Impl* impl);
  Impl* const impl_;  // outlives this object where the library still holds a part of it
};

/// False: the build had no CUPTI headers, and every source is `unavailable`, `not_built`.
bool CuptiIsBuilt();

}  // namespace flopledger
