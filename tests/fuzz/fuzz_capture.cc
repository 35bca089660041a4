// Hostile blocks behind right checksums, and good captures changed: what a checksum lets through
// has to be refused by the block's own rules.
#include "collect/capture_format.h"
#include "collect/capture_records.h"
#include "patched_file.h"

namespace flopledger {
namespace {

std::string MakeRun() {
  std::string payload;
  WireWriter out(&payload);
  EncodeRun({}, out);
  return CaptureHeader() + MakeBlock(BlockKind::kRun, payload);
}

std::string MakeCapture() {
  std::string file = MakeRun();
  std::string payload;
  WireWriter out(&payload);
  EncodeOp(1, OpClass::kMatmul, {.name = "aten::mm", .arguments = {{}}}, out);
  file += MakeBlock(BlockKind::kOps, payload);
  payload.clear();
  out.Byte(static_cast<std::uint8_t>(BatchTag::kBatch));
  RecordBatch batch;
  batch.ops = {{.start_ns = 5, .end_ns = 9, .self_ns = 4, .signature = 1}};
  batch.markers = {{.time_ns = 4, .step = 1}};
  batch.kernels = {{.start_ns = 6, .end_ns = 7, .kernel = 1}};
  std::int64_t last_ns = 0;
  EncodeBatch(batch, last_ns, out);
  return file + MakeBlock(BlockKind::kBatches, payload);
}

}  // namespace
}  // namespace flopledger

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flopledger;
  static const std::string* const run = new std::string(MakeRun());
  static const std::string* const whole = new std::string(MakeCapture());
  if (size < 2) return 0;
  if (data[0] % 4 == 0) {
    ReadTrace(Patched(*whole, data + 1, size - 1));
    return 0;
  }
  std::string file = *run;
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  while (rest.size() > 2) {
    const std::size_t length =
        std::min<std::size_t>(static_cast<std::uint8_t>(rest[1]), rest.size() - 2);
    file += MakeBlock(static_cast<BlockKind>(static_cast<std::uint8_t>(rest[0]) % 9),
                      rest.substr(2, length));
    rest.remove_prefix(2 + length);
  }
  ReadTrace(file);
  return 0;
}
