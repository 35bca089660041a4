#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "collect/capture_wire.h"
#include "collect/device_source.h"
#include "flopledger/convention.h"
#include "flopledger/records.h"
#include "flopledger/report_sink.h"

namespace flopledger {

/// What a capture says about its run: enough to build the same pipeline again, but for the model's
/// formula, of which it has the description.
struct CaptureRun {
  RunDescription description;
  std::vector<ConventionSwitch> convention;
  int device_count = 1;
  int warmup_steps = 1;
  bool host_ops = true;
  std::int64_t session_start_ns = 0;
};

/// How the session ended, with what was left out of the file.
struct CaptureEnd {
  std::int64_t close_ns = 0;
  std::int64_t batches = 0;  ///< that the session drained
  std::int64_t lost_batches = 0;
  std::int64_t lost_records = 0;
};

/// One signature with its number and the class that the live session's rule gave it.
struct NumberedOp {
  SignatureId id = 0;
  OpClass op_class = OpClass::kUnknown;
  OpSignature signature;
};
struct NumberedKernel {
  KernelId id = 0;
  OpClass op_class = OpClass::kUnknown;
  KernelSignature signature;
};

/// The content of the blocks, see docs/capture.md. Every `Encode` appends to the writer; every
/// `Decode` reads one thing and leaves `in.ok()` false where the bytes are none.
///
/// Thread: pure. Fails: by `WireReader::ok()`.
void EncodeRun(const CaptureRun& run, WireWriter& out);
CaptureRun DecodeRun(WireReader& in);
void EncodeEnd(const CaptureEnd& end, WireWriter& out);
CaptureEnd DecodeEnd(WireReader& in);
void EncodeOp(SignatureId id, OpClass op_class, const OpSignature& signature, WireWriter& out);
NumberedOp DecodeOp(WireReader& in);
void EncodeKernel(KernelId id, OpClass op_class, const KernelSignature& signature, WireWriter& out);
NumberedKernel DecodeKernel(WireReader& in);
void EncodeDevice(const DeviceDescription& device, WireWriter& out);
DeviceDescription DecodeDevice(WireReader& in);

/// Records of a batch, without the runs of empty batches that a block also holds. Times are written
/// as differences from `last_ns`, which a block begins with 0.
void EncodeBatch(const RecordBatch& batch, std::int64_t& last_ns, WireWriter& out);
void DecodeBatch(WireReader& in, std::int64_t& last_ns, RecordBatch& batch);

/// Records in a batch, for the count of what a full file left out.
std::int64_t RecordCount(const RecordBatch& batch);

}  // namespace flopledger
