#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/kernel_table.h"
#include "base/signature_table.h"
#include "collect/capture_records.h"
#include "flopledger/status.h"

namespace flopledger {

/// Writes what a live session drains into a file, batch by batch, so that the same pipeline gives
/// the same reports from it again.
///
///     Result<std::unique_ptr<CaptureTap>> tap = CaptureTap::Create({.path = "run.flopcap"}, run);
///     (*tap)->Write(batch, {.ops = &signatures, .now_ns = now});
///     (*tap)->Finish(close_ns);
///
/// Thread: the one that pumps; training threads never come here. Memory: one block. Fails: `Create`
/// only. Afterwards a full or failing file ends the capture, the training goes on, and what was
/// left out is counted in `state()` and, if that can still be written, in the file.
class CaptureTap {
 public:
  struct Options {
    std::string path;
    std::int64_t max_bytes = std::int64_t{1} << 30;
  };
  /// What a batch refers to, and when it was drained.
  struct Context {
    const SignatureTable* ops = nullptr;
    const KernelTable* kernels = nullptr;
    std::span<const std::string> value_names = {};
    std::int64_t now_ns = 0;
    bool device_counting = false;
  };
  struct State {
    std::int64_t bytes = 0;
    std::int64_t batches = 0;
    std::int64_t lost_batches = 0;
    std::int64_t lost_records = 0;
    std::string reason = "ok";  ///< closed set: `ok`, `full`, `write_failed`
    std::string text;           ///< one sentence, once it is not `ok`
  };

  static Result<std::unique_ptr<CaptureTap>> Create(Options options, const CaptureRun& run);
  ~CaptureTap();
  CaptureTap(const CaptureTap&) = delete;
  CaptureTap& operator=(const CaptureTap&) = delete;

  void Write(const RecordBatch& batch, const Context& context) noexcept;
  void Describe(const std::vector<DeviceDescription>& devices) noexcept;
  /// The last block. Twice is once.
  void Finish(std::int64_t close_ns) noexcept;
  const State& state() const { return state_; }

 private:
  explicit CaptureTap(Options options) : options_(std::move(options)) {}
  void Append(const RecordBatch& batch, const Context& context);
  void AppendTables(const Context& context);
  void EndRunOfNothing();
  void Flush();
  bool WriteOut(std::string_view bytes, std::int64_t reserve);
  void Stop(std::string_view reason, std::string text);

  const Options options_;
  int fd_ = -1;
  bool finished_ = false;
  State state_;
  SignatureId next_op_ = 1;
  KernelId next_kernel_ = 1;
  std::size_t next_name_ = 0;
  // The block that is being filled, and the blocks that have to stand before it.
  std::string tables_;
  std::string batches_;
  std::int64_t pending_batches_ = 0;
  std::int64_t pending_records_ = 0;
  std::uint64_t nothing_ = 0;  // batches without a record, not yet written
  std::int64_t last_ns_ = 0;
  std::int64_t flushed_ns_ = 0;
};

}  // namespace flopledger
