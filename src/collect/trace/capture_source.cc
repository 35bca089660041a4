#include "collect/trace/capture_source.h"

#include <utility>

namespace flopledger {
namespace {

// Ids of a capture are its session's, whatever the reader's options say.
constexpr std::size_t kTableCapacity = 1 << 17;

TraceOptions WithCaptureTables(TraceOptions options) {
  options.table_capacity = kTableCapacity;
  return options;
}

template <typename Record>
void Append(const std::vector<Record>& from, std::vector<Record>& to) {
  to.insert(to.end(), from.begin(), from.end());
}

void Append(RecordBatch&& from, RecordBatch& to) {
  if (RecordCount(to) == 0 && !to.drained_at_ns && to.aborted_ops == 0) {
    to = std::move(from);
    return;
  }
  Append(from.ops, to.ops);
  Append(from.markers, to.markers);
  Append(from.tokens, to.tokens);
  Append(from.declared, to.declared);
  Append(from.values, to.values);
  Append(from.losses, to.losses);
  Append(from.kernels, to.kernels);
  Append(from.fences, to.fences);
  Append(from.overheads, to.overheads);
  Append(from.clock_steps, to.clock_steps);
  if (from.drained_at_ns) to.drained_at_ns = from.drained_at_ns;
  to.aborted_ops += from.aborted_ops;
}

}  // namespace

CaptureSource::CaptureSource(std::string path, FileBytes bytes, const TraceOptions& options)
    : TraceSource(WithCaptureTables(options)),
      path_(std::move(path)),
      bytes_(std::move(bytes)),
      lenient_(options.lenient) {
  description_.format = "capture";
  description_.file_bytes = bytes_.file_bytes();
  description_.text_bytes = bytes_.view().size();
}

Result<std::unique_ptr<CaptureSource>> CaptureSource::Open(const std::string& path,
                                                           const TraceOptions& options) {
  Result<FileBytes> bytes = FileBytes::Open(path, options.max_inflated_bytes);
  if (!bytes.has_value()) return tl::unexpected(bytes.error());
  std::unique_ptr<CaptureSource> source(new CaptureSource(path, *std::move(bytes), options));
  if (Result<bool> read = source->ReadHeader(); !read.has_value()) {
    return tl::unexpected(read.error());
  }
  return source;
}

Result<bool> CaptureSource::ReadHeader() {
  const std::string_view file = bytes_.view();
  if (file.size() < kCaptureHeaderBytes || !file.starts_with(kCaptureMagic)) {
    return Fail(StatusCode::kDataLoss, path_ + ": byte 0: no header of a capture");
  }
  const std::uint32_t version = Fixed32At(file, kCaptureMagic.size());
  if (Fixed32At(file, 12) != Checksum(file.substr(0, 12))) {
    return Fail(StatusCode::kDataLoss, path_ + ": byte 8: the header's checksum is wrong");
  }
  if (version > kCaptureVersion) {
    return Fail(StatusCode::kUnsupported, path_ + ": byte 8: a capture of version " +
                                              std::to_string(version) +
                                              ", written by a newer flopledger; accepted: up to " +
                                              std::to_string(kCaptureVersion));
  }
  next_ = kCaptureHeaderBytes;
  Block block;
  Result<bool> more = NextBlock(&block);
  if (!more.has_value()) return more;
  if (!*more || block.kind != BlockKind::kRun) {
    return Fail(StatusCode::kDataLoss,
                path_ + ": byte 16: the block that describes the run is not there");
  }
  WireReader in(block.payload);
  run_ = DecodeRun(in);
  if (!in.ok()) {
    return Fail(StatusCode::kDataLoss,
                path_ + ": byte " + std::to_string(block.at + kBlockHeaderBytes + in.offset()) +
                    ": the description of the run is broken");
  }
  description_.rank = run_.description.identity.rank;
  description_.world_size = run_.description.identity.world_size;
  return true;
}

CaptureSource::Look CaptureSource::LookAt(std::size_t at, Block* block,
                                          const char** problem) const {
  const std::string_view file = bytes_.view();
  if (at == file.size()) return Look::kEnd;
  if (file.size() - at < kBlockHeaderBytes) return Look::kCut;
  if (Fixed32At(file, at) != kBlockMark) {
    *problem = "no block begins here";
    return Look::kBroken;
  }
  const std::uint32_t size = Fixed32At(file, at + 8);
  if (size > kMostBlockBytes) {
    *problem = "its size is larger than a block may be";
    return Look::kBroken;
  }
  if (file.size() - at - kBlockHeaderBytes < size) return Look::kCut;
  const std::string_view payload = file.substr(at + kBlockHeaderBytes, size);
  if (Checksum(payload, Checksum(file.substr(at + 4, 8))) != Fixed32At(file, at + 12)) {
    *problem = "its checksum is wrong";
    return Look::kBroken;
  }
  *block = {.kind = static_cast<BlockKind>(Fixed32At(file, at + 4)), .payload = payload, .at = at};
  return Look::kBlock;
}

std::optional<std::size_t> CaptureSource::NextWhole(std::size_t from) const {
  std::string mark;
  AppendFixed32(kBlockMark, mark);
  const std::string_view file = bytes_.view();
  for (std::size_t at = file.find(mark, from); at != std::string_view::npos;
       at = file.find(mark, at + 1)) {
    Block block;
    const char* problem = nullptr;
    if (LookAt(at, &block, &problem) == Look::kBlock) return at;
  }
  return std::nullopt;
}

Result<bool> CaptureSource::Broken(std::size_t at, const std::string& what) {
  const std::string text =
      "block " + std::to_string(blocks_) + " at byte " + std::to_string(at) + ": " + what;
  if (!lenient_) {
    return Fail(StatusCode::kDataLoss, path_ + ": " + text + "; --lenient leaves it out");
  }
  Warn("broken_block", text + ": left out, with what it held");
  lost_block_ = true;
  return true;
}

Result<bool> CaptureSource::NextBlock(Block* block) {
  for (;;) {
    const char* problem = nullptr;
    const Look look = LookAt(next_, block, &problem);
    if (look == Look::kEnd) return false;
    ++blocks_;
    if (look == Look::kBlock) {
      next_ = block->at + kBlockHeaderBytes + block->payload.size();
      return true;
    }
    const std::optional<std::size_t> whole = NextWhole(next_ + 1);
    // A file that was cut has nothing whole behind the cut; where there is something, the size is a
    // lie.
    if (look == Look::kCut && !whole) {
      description_.cut = true;
      Warn("cut", "the file ends inside of block " + std::to_string(blocks_) + " at byte " +
                      std::to_string(next_) + ": the process was killed, or the file was cut");
      next_ = bytes_.view().size();
      return false;
    }
    Result<bool> broken =
        Broken(next_, problem != nullptr ? problem : "its size is larger than what follows it");
    if (!broken.has_value()) return broken;
    next_ = whole.value_or(bytes_.view().size());
  }
}

Result<bool> CaptureSource::TakeOps(WireReader& in) {
  while (!in.AtEnd()) {
    const NumberedOp op = DecodeOp(in);
    if (!in.ok()) break;
    // Signatures of a block that is lost leave their numbers to placeholders.
    while (lenient_ && signatures_.size() + 1 < op.id && signatures_.refused() == 0) {
      signatures_.Intern(
          {.name = "flopledger::lost_signature_" + std::to_string(signatures_.size() + 1)});
    }
    if (signatures_.Intern(op.signature) != op.id) {
      return Broken(current_.at,
                    "op signature " + std::to_string(op.id) + " is out of order or there twice");
    }
  }
  return in.ok() ? Result<bool>(true) : Broken(current_.at, "an op signature is broken");
}

Result<bool> CaptureSource::TakeKernels(WireReader& in) {
  while (!in.AtEnd()) {
    const NumberedKernel kernel = DecodeKernel(in);
    if (!in.ok()) break;
    while (lenient_ && kernels_.size() + 1 < kernel.id && kernels_.refused() == 0) {
      kernels_.Intern({.name = "lost_signature_" + std::to_string(kernels_.size() + 1)});
    }
    if (kernels_.Intern(kernel.signature) != kernel.id) {
      return Broken(current_.at, "kernel signature " + std::to_string(kernel.id) +
                                     " is out of order or there twice");
    }
  }
  return in.ok() ? Result<bool>(true) : Broken(current_.at, "a kernel signature is broken");
}

Result<bool> CaptureSource::TakeBlock(const Block& block) {
  WireReader in(block.payload);
  current_ = block;
  switch (block.kind) {
    case BlockKind::kOps:
      return TakeOps(in);
    case BlockKind::kKernels:
      return TakeKernels(in);
    case BlockKind::kValueNames:
      while (!in.AtEnd()) {
        const std::uint64_t id = in.UpTo(65535);
        const std::string_view name = in.Text();
        if (!in.ok()) break;
        if (id >= value_names_.size()) value_names_.resize(id + 1);
        value_names_[id] = name;
      }
      return in.ok() ? Result<bool>(true) : Broken(block.at, "a name of a value is broken");
    case BlockKind::kDevices:
      description_.devices.clear();
      while (!in.AtEnd()) description_.devices.push_back(DecodeDevice(in));
      if (in.ok()) return true;
      description_.devices.clear();
      return Broken(block.at, "a device is broken");
    case BlockKind::kBatches:
      in_ = in;
      last_ns_ = 0;
      return true;
    case BlockKind::kEnd:
      end_ = DecodeEnd(in);
      if (in.ok()) return true;
      end_.reset();
      return Broken(block.at, "the end is broken");
    case BlockKind::kRun:
      return Broken(block.at, "the run is described twice");
  }
  Warn("unknown_block", "block " + std::to_string(blocks_) + " at byte " +
                            std::to_string(block.at) +
                            " is of a kind that is not known: passed over");
  return true;
}

Result<bool> CaptureSource::TakeBatch(RecordBatch& batch) {
  const std::uint64_t tag = in_.UpTo(2);
  if (static_cast<BatchTag>(tag) == BatchTag::kNothing) {
    nothing_ = in_.Unsigned();
    if (nothing_ == 0) in_.Refuse();
  } else {
    RecordBatch read;
    DecodeBatch(in_, last_ns_, read);
    if (in_.ok()) {
      description_.events += RecordCount(read);
      NameSteps(read);
      device_counting_ = static_cast<BatchTag>(tag) == BatchTag::kDeviceBatch;
      Append(std::move(read), batch);
      ++batches_;
    }
  }
  if (in_.ok()) return true;
  const std::size_t at = current_.at + kBlockHeaderBytes + in_.offset();
  in_ = WireReader(std::string_view());
  nothing_ = 0;
  return Broken(current_.at, "byte " + std::to_string(at) + " is not part of a record");
}

Result<bool> CaptureSource::Read(RecordBatch& batch) {
  while (!ended_) {
    if (lost_block_) {
      lost_block_ = false;
      batch.losses.push_back({.time_ns = last_ns_,
                              .count = 1,
                              .where = LossRecord::Where::kTimeline,
                              .reason = LossRecord::Reason::kUnknownCount});
      return true;
    }
    if (nothing_ > 0) {
      --nothing_;
      ++batches_;
      device_counting_ = false;
      return true;
    }
    if (!in_.AtEnd()) {
      const std::int64_t before = batches_;
      if (Result<bool> taken = TakeBatch(batch); !taken.has_value()) {
        ended_ = true;
        return taken;
      }
      if (batches_ != before) return true;
      continue;
    }
    Block block;
    Result<bool> more = NextBlock(&block);
    const bool at_end = more.has_value() && !*more;
    if (more.has_value() && *more) more = TakeBlock(block);
    if (!more.has_value()) {
      ended_ = true;
      return more;
    }
    if (at_end && !lost_block_) EndOfFile();
  }
  return false;
}

void CaptureSource::NameSteps(const RecordBatch& batch) {
  for (const MarkerRecord& marker : batch.markers) {
    if (marker.kind == MarkerRecord::Kind::kStepBegin) {
      description_.steps.push_back({.name = "step " + std::to_string(marker.step),
                                    .number = marker.step,
                                    .start_ns = marker.time_ns,
                                    .end_ns = marker.time_ns});
    } else if (!description_.steps.empty() && (marker.kind == MarkerRecord::Kind::kStepEnd ||
                                               marker.kind == MarkerRecord::Kind::kStepFailed)) {
      description_.steps.back().end_ns = marker.time_ns;
    }
  }
}

void CaptureSource::EndOfFile() {
  ended_ = true;
  if (!end_) {
    if (!description_.cut) {
      Warn("no_end", "the capture has no last block: the process did not close its session");
    }
    return;
  }
  if (end_->lost_batches > 0) {
    Warn("full",
         std::to_string(end_->lost_records) + " records in " + std::to_string(end_->lost_batches) +
             " batches did not fit into the capture's limit: the run goes on behind its end",
         end_->lost_records);
  }
  if (end_->batches - end_->lost_batches != batches_ && description_.warnings.empty()) {
    Warn("batches_missing", "the capture holds " + std::to_string(batches_) + " batches of " +
                                std::to_string(end_->batches));
  }
}

bool IsCapture(std::string_view head, bool) { return head.starts_with(kCaptureMagic); }

Result<TraceSources> OpenCapture(const std::string& path, const TraceOptions& options) {
  Result<std::unique_ptr<CaptureSource>> source = CaptureSource::Open(path, options);
  if (!source.has_value()) return tl::unexpected(source.error());
  TraceSources sources;
  sources.push_back(*std::move(source));
  return sources;
}

}  // namespace flopledger
