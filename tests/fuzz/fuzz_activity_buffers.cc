// Corrupt activity buffers: records that are cut, of unknown kinds, with any times and ids. They
// end in records that can be, or in counted losses; never a crash, never a read outside.
#include <cupti.h>
#include <dlfcn.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/clock.h"
#include "collect/cupti/activity_decoder.h"
#include "fakes/fake_cupti/fake_cupti_script.h"

namespace {

using namespace flopledger;

constexpr std::int64_t kNow = 1'000'000'000'000;
constexpr std::int64_t kSecond = 1'000'000'000;

struct KindAndSize {
  std::uint32_t kind;
  std::size_t size;
};
constexpr std::array<KindAndSize, 10> kRecords = {{
    {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, 0},  // by struct version
    {CUPTI_ACTIVITY_KIND_KERNEL, 0},
    {CUPTI_ACTIVITY_KIND_MEMCPY, sizeof(CUpti_ActivityMemcpy6)},
    {CUPTI_ACTIVITY_KIND_MEMCPY2, sizeof(CUpti_ActivityMemcpyPtoP4)},
    {CUPTI_ACTIVITY_KIND_MEMSET, sizeof(CUpti_ActivityMemset4)},
    {CUPTI_ACTIVITY_KIND_OVERHEAD, sizeof(CUpti_ActivityOverhead3)},
    {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, sizeof(CUpti_ActivityExternalCorrelation)},
    {CUPTI_ACTIVITY_KIND_DRIVER, sizeof(CUpti_ActivityAPI)},
    {CUPTI_ACTIVITY_KIND_MARKER, sizeof(CUpti_ActivityMarker2)},
    {0xFFFFFFFF, 16},
}};
constexpr std::array<std::size_t, 7> kKernelSizes = {
    sizeof(CUpti_ActivityKernel4), sizeof(CUpti_ActivityKernel5), sizeof(CUpti_ActivityKernel6),
    sizeof(CUpti_ActivityKernel7), sizeof(CUpti_ActivityKernel8), sizeof(CUpti_ActivityKernel9),
    sizeof(CUpti_ActivityKernel10)};

// One record after another, each of a kind that the input chooses and filled with what follows.
std::vector<std::uint8_t> Records(const std::uint8_t* data, std::size_t size,
                                  std::size_t kernel_size) {
  std::vector<std::uint8_t> buffer;
  while (size > 0 && buffer.size() < 65536) {
    const KindAndSize& record = kRecords[*data % kRecords.size()];
    ++data;
    --size;
    const std::size_t bytes = record.size == 0 ? kernel_size : record.size;
    const std::size_t begin = buffer.size();
    buffer.resize(begin + bytes);
    std::memcpy(buffer.data() + begin, &record.kind, sizeof(record.kind));
    const std::size_t taken = std::min(size, bytes - sizeof(record.kind));
    std::memcpy(buffer.data() + begin + sizeof(record.kind), data, taken);
    data += taken;
    size -= taken;
  }
  return buffer;
}

// A name is a pointer into the library: what a corrupt one points to is nobody's to read.
void MakeNamesValid(CuptiApi& api, std::vector<std::uint8_t>& buffer) {
  constexpr std::array<const char*, 4> kNames = {nullptr, "", "gemm", "ncclDevKernel"};
  CUpti_Activity* record = nullptr;
  while (api.NextRecord(buffer.data(), buffer.size(), &record) == CUPTI_SUCCESS) {
    auto* bytes = reinterpret_cast<std::uint8_t*>(record);
    std::uint32_t kind = 0;
    std::memcpy(&kind, bytes, sizeof(kind));
    if (kind != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL && kind != CUPTI_ACTIVITY_KIND_KERNEL) {
      continue;
    }
    const std::size_t offset = offsetof(KernelView, name);
    const char* name = kNames[bytes[offset] % kNames.size()];
    std::memcpy(bytes + offset, &name, sizeof(name));
  }
}

void Check(bool holds) {
  if (!holds) std::abort();
}

CuptiApi& Api() {
  static CuptiApi api = [] {
    CuptiApi loaded;
    DeviceSourceState refusal;
    Check(loaded.Load(dlopen("libcupti.so.13", RTLD_LAZY | RTLD_NOLOAD), &refusal));
    return loaded;
  }();
  return api;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const int version = 4 + data[0] % 7;
  const bool link_ops = (data[0] & 0x80) != 0;
  const std::size_t cut = data[1];
  fakecupti_set_kernel_record(version);
  std::vector<std::uint8_t> buffer = Records(data + 2, size - 2, kKernelSizes[version - 4]);
  if (cut < buffer.size()) buffer.resize(buffer.size() - cut);
  buffer.shrink_to_fit();
  MakeNamesValid(Api(), buffer);

  fakecupti_set_clock(kNow);
  const ManualClock clock(kNow);
  DeviceClock device_clock;
  device_clock.Sample(Api(), clock);
  ActivityDecoder decoder(16, nullptr, link_ops);
  decoder.set_started_at(kNow - 10 * kSecond);
  RecordBatch batch;
  decoder.BeginDrain(kNow);
  decoder.Decode(Api(), device_clock, buffer.data(), buffer.size(), batch);
  decoder.EndDrain(batch);

  for (const KernelRecord& kernel : batch.kernels) {
    Check(kernel.start_ns <= kernel.end_ns && kernel.end_ns <= kNow + kSecond);
    Check(!kernel.op_known || link_ops);
    Check(static_cast<std::size_t>(kernel.phase) < kPhaseCount);
  }
  std::int64_t lost = 0;
  for (const LossRecord& loss : batch.losses) {
    Check(loss.count > 0 && loss.where == LossRecord::Where::kDevice);
    lost += loss.count;
  }
  for (const OverheadRecord& overhead : batch.overheads) {
    Check(overhead.start_ns <= overhead.end_ns);
  }
  Check(static_cast<std::int64_t>(batch.kernels.size() + batch.fences.size()) + lost <=
        decoder.counts().records + 1);
  return 0;
}
