#include "collect/capture_tap.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "collect/capture_format.h"

namespace flopledger {
namespace {

constexpr std::int64_t kSmallestFile = 64 << 10;
constexpr std::size_t kBlockBytes = 64 << 10;
constexpr std::int64_t kFlushIntervalNs = 1'000'000'000;
constexpr std::int64_t kEndReserve = kBlockHeaderBytes + 64;

int WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    if (written == 0) return ENOSPC;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

std::string Reason(int error) { return std::generic_category().message(error); }

}  // namespace

Result<std::unique_ptr<CaptureTap>> CaptureTap::Create(Options options, const CaptureRun& run) {
  if (options.path.empty()) return InvalidArgument("capture path is empty; accepted: a file name");
  if (options.max_bytes < kSmallestFile) {
    return InvalidArgument("capture max_bytes is " + std::to_string(options.max_bytes) +
                           "; accepted: " + std::to_string(kSmallestFile) + " or more");
  }
  std::unique_ptr<CaptureTap> tap(new CaptureTap(std::move(options)));
  const std::string& path = tap->options_.path;
  tap->fd_ = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (tap->fd_ < 0) {
    return Fail(StatusCode::kUnavailable,
                "capture path '" + path + "' cannot be written: " + Reason(errno));
  }
  std::string payload;
  WireWriter out(&payload);
  EncodeRun(run, out);
  if (!tap->WriteOut(CaptureHeader() + MakeBlock(BlockKind::kRun, payload), kEndReserve)) {
    return Fail(StatusCode::kUnavailable, tap->state_.text);
  }
  return tap;
}

CaptureTap::~CaptureTap() {
  if (fd_ >= 0) close(fd_);
}

void CaptureTap::Stop(std::string_view reason, std::string text) {
  if (state_.reason == "ok") {
    state_.reason = reason;
    state_.text = std::move(text);
  }
}

bool CaptureTap::WriteOut(std::string_view bytes, std::int64_t reserve) {
  const auto size = static_cast<std::int64_t>(bytes.size());
  if (state_.bytes + size + reserve > options_.max_bytes) {
    Stop("full", "capture '" + options_.path + "' has reached its limit of " +
                     std::to_string(options_.max_bytes) +
                     " bytes: it ends here, the training goes on");
    return false;
  }
  if (const int error = WriteAll(fd_, bytes); error != 0) {
    // Half a block may be in the file.
    static_cast<void>(!ftruncate(fd_, state_.bytes));
    static_cast<void>(lseek(fd_, state_.bytes, SEEK_SET));
    Stop("write_failed", "capture '" + options_.path + "' cannot be written: " + Reason(error) +
                             ": it ends here, the training goes on");
    return false;
  }
  state_.bytes += size;
  return true;
}

void CaptureTap::EndRunOfNothing() {
  if (nothing_ == 0) return;
  WireWriter out(&batches_);
  out.Byte(static_cast<std::uint8_t>(BatchTag::kNothing));
  out.Unsigned(std::exchange(nothing_, 0));
}

void CaptureTap::AppendTables(const Context& context) {
  std::string payload;
  WireWriter out(&payload);
  if (context.ops != nullptr) {
    for (; const OpSignature* op = context.ops->Find(next_op_); ++next_op_) {
      EncodeOp(next_op_, context.ops->ClassOf(next_op_), *op, out);
    }
    if (!payload.empty()) tables_ += MakeBlock(BlockKind::kOps, payload);
    payload.clear();
  }
  if (context.kernels != nullptr) {
    for (; const KernelSignature* kernel = context.kernels->Find(next_kernel_); ++next_kernel_) {
      EncodeKernel(next_kernel_, context.kernels->ClassOf(next_kernel_), *kernel, out);
    }
    if (!payload.empty()) tables_ += MakeBlock(BlockKind::kKernels, payload);
    payload.clear();
  }
  for (; next_name_ < context.value_names.size(); ++next_name_) {
    out.Unsigned(next_name_);
    out.Text(context.value_names[next_name_]);
  }
  if (!payload.empty()) tables_ += MakeBlock(BlockKind::kValueNames, payload);
}

void CaptureTap::Append(const RecordBatch& batch, const Context& context) {
  const std::int64_t records = RecordCount(batch);
  ++state_.batches;
  if (state_.reason != "ok") {
    ++state_.lost_batches;
    state_.lost_records += records;
    return;
  }
  ++pending_batches_;
  pending_records_ += records;
  if (records == 0 && !batch.drained_at_ns && batch.aborted_ops == 0 && !context.device_counting) {
    ++nothing_;
  } else {
    AppendTables(context);
    EndRunOfNothing();
    WireWriter out(&batches_);
    out.Byte(static_cast<std::uint8_t>(context.device_counting ? BatchTag::kDeviceBatch
                                                               : BatchTag::kBatch));
    EncodeBatch(batch, last_ns_, out);
  }
  if (batches_.size() >= kBlockBytes || context.now_ns - flushed_ns_ >= kFlushIntervalNs) {
    flushed_ns_ = context.now_ns;
    Flush();
  }
}

void CaptureTap::Flush() {
  EndRunOfNothing();
  const bool too_large = batches_.size() > kMostBlockBytes;
  if (!batches_.empty() || !tables_.empty()) {
    if (!batches_.empty() && !too_large) tables_ += MakeBlock(BlockKind::kBatches, batches_);
    if (too_large || !WriteOut(tables_, kEndReserve)) {
      if (too_large) Stop("full", "a batch of the capture is larger than a block: it ends here");
      state_.lost_batches += pending_batches_;
      state_.lost_records += pending_records_;
    }
  }
  tables_.clear();
  batches_.clear();
  pending_batches_ = 0;
  pending_records_ = 0;
  last_ns_ = 0;
}

void CaptureTap::Write(const RecordBatch& batch, const Context& context) noexcept {
  if (finished_) return;
  try {
    Append(batch, context);
  } catch (...) {
    // Out of memory for a block: the capture ends, with its state to say so.
    state_.lost_batches += pending_batches_;
    state_.lost_records += pending_records_;
    pending_batches_ = 0;
    pending_records_ = 0;
    finished_ = true;
    state_.reason = "write_failed";
  }
}

void CaptureTap::Describe(const std::vector<DeviceDescription>& devices) noexcept {
  if (finished_ || devices.empty()) return;
  try {
    std::string payload;
    WireWriter out(&payload);
    for (const DeviceDescription& device : devices) EncodeDevice(device, out);
    tables_ += MakeBlock(BlockKind::kDevices, payload);
  } catch (...) {
  }
}

void CaptureTap::Finish(std::int64_t close_ns) noexcept {
  if (finished_) return;
  finished_ = true;
  try {
    if (state_.reason == "ok") Flush();
    std::string payload;
    WireWriter out(&payload);
    EncodeEnd({.close_ns = close_ns,
               .batches = state_.batches,
               .lost_batches = state_.lost_batches,
               .lost_records = state_.lost_records},
              out);
    WriteOut(MakeBlock(BlockKind::kEnd, payload), 0);
  } catch (...) {
  }
  close(std::exchange(fd_, -1));
}

}  // namespace flopledger
