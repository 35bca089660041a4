#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collect/capture_format.h"
#include "collect/capture_records.h"
#include "collect/trace/file_bytes.h"
#include "collect/trace/trace_formats.h"

namespace flopledger {

/// A capture of a live session: each `Read` gives one batch as the session drained it, so that
/// steps close where they closed. Numbers of signatures are the session's.
///
/// A file that ends inside of a block is read up to there, and a warning says so: that is what a
/// killed process leaves. Anything else that is wrong is an error with the block and its byte;
/// lenient, the block is left out and counted.
///
///     auto* capture = dynamic_cast<CaptureSource*>(source.get());
///     if (capture != nullptr) UseSettingsOf(capture->run());
class CaptureSource final : public TraceSource {
 public:
  static Result<std::unique_ptr<CaptureSource>> Open(const std::string& path,
                                                     const TraceOptions& options);

  Result<bool> Read(RecordBatch& batch) override;

  const CaptureRun& run() const { return run_; }
  /// Whether a device counted when the batch of the last `Read` was drained.
  bool device_counting() const { return device_counting_; }
  /// Names of `ValueRecord::name_id` that have been read.
  const std::vector<std::string>& value_names() const { return value_names_; }
  /// How the session ended; known after the last `Read`, absent if the process was killed.
  const std::optional<CaptureEnd>& end() const { return end_; }

 private:
  struct Block {
    BlockKind kind = BlockKind::kRun;
    std::string_view payload;
    std::size_t at = 0;
  };
  enum class Look { kBlock, kEnd, kCut, kBroken };

  CaptureSource(std::string path, FileBytes bytes, const TraceOptions& options);
  Result<bool> ReadHeader();
  Look LookAt(std::size_t at, Block* block, const char** problem) const;
  std::optional<std::size_t> NextWhole(std::size_t from) const;
  Result<bool> NextBlock(Block* block);
  Result<bool> TakeBlock(const Block& block);
  Result<bool> TakeOps(WireReader& in);
  Result<bool> TakeKernels(WireReader& in);
  Result<bool> TakeBatch(RecordBatch& batch);
  Result<bool> Broken(std::size_t at, const std::string& what);
  void NameSteps(const RecordBatch& batch);
  void EndOfFile();

  const std::string path_;
  FileBytes bytes_;
  const bool lenient_;
  std::size_t next_ = 0;     // byte of the next block
  std::int64_t blocks_ = 0;  // that were begun
  std::int64_t batches_ = 0;
  CaptureRun run_;
  std::optional<CaptureEnd> end_;
  std::vector<std::string> value_names_;
  bool ended_ = false;
  bool device_counting_ = false;

  // The block of batches that is being read.
  Block current_;
  WireReader in_{std::string_view()};
  std::int64_t last_ns_ = 0;
  std::uint64_t nothing_ = 0;
  bool lost_block_ = false;
};

}  // namespace flopledger
