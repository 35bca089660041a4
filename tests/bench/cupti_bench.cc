// What a device record costs from the library's buffer to the batch, and what a mark costs the
// training thread, with the double of libcupti in the library's place.
#include <benchmark/benchmark.h>
#include <cupti.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "collect/cupti/activity_decoder.h"
#include "collect/cupti/buffer_pool.h"
#include "collect/cupti/cupti_source.h"
#include "fakes/fake_cupti/fake_cupti_script.h"

namespace flopledger {
namespace {

constexpr std::int64_t kNow = 1'000'000'000'000;
constexpr std::size_t kBufferBytes = std::size_t{1} << 20;
constexpr std::size_t kSignatures = 200;

CuptiApi LoadApi() {
  CuptiApi api;
  DeviceSourceState refusal;
  if (!api.Load(dlopen("libcupti.so.13", RTLD_LAZY | RTLD_NOLOAD), &refusal)) std::abort();
  return api;
}

// A full buffer of kernels: 200 signatures with names of some 80 letters, over `streams` streams.
class FullBuffer {
 public:
  explicit FullBuffer(std::uint32_t streams) : bytes_(kBufferBytes) {
    for (std::size_t i = 0; i < kSignatures; ++i) {
      names_.push_back(std::make_unique<std::string>(
          "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_32x6_tn_" +
          std::to_string(i)));
    }
    while ((count_ + 1) * sizeof(CUpti_ActivityKernel10) <= kBufferBytes) {
      CUpti_ActivityKernel10 kernel{};
      kernel.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
      kernel.start = kNow - 5'000'000 + 1000 * count_;
      kernel.end = kernel.start + 900;
      kernel.streamId = static_cast<std::uint32_t>(count_) % streams;
      kernel.correlationId = static_cast<std::uint32_t>(count_ + 1);
      kernel.name = names_[count_ * 7 % kSignatures]->c_str();
      kernel.gridX = 128;
      kernel.blockX = 256;
      std::memcpy(bytes_.data() + count_ * sizeof(kernel), &kernel, sizeof(kernel));
      ++count_;
    }
  }
  std::uint8_t* data() { return bytes_.data(); }
  std::size_t valid() const { return count_ * sizeof(CUpti_ActivityKernel10); }
  std::size_t count() const { return count_; }

 private:
  std::vector<std::uint8_t> bytes_;
  std::vector<std::unique_ptr<std::string>> names_;
  std::size_t count_ = 0;
};

class Decoding {
 public:
  explicit Decoding(std::uint32_t streams)
      : buffer_(streams), api_(LoadApi()), decoder_(32768, nullptr, false) {
    fakecupti_set_clock(kNow);
    device_clock_.Sample(api_, clock_);
    decoder_.set_started_at(kNow - 10'000'000'000);
    batch_.kernels.reserve(buffer_.count());
  }
  void Once() {
    batch_.Clear();
    decoder_.BeginDrain(kNow);
    decoder_.Decode(api_, device_clock_, buffer_.data(), buffer_.valid(), batch_);
    decoder_.EndDrain(batch_);
  }
  bool AllTaken() const { return batch_.kernels.size() == buffer_.count(); }
  std::size_t count() const { return buffer_.count(); }

 private:
  FullBuffer buffer_;
  CuptiApi api_;
  ManualClock clock_{kNow};
  DeviceClock device_clock_;
  ActivityDecoder decoder_;
  RecordBatch batch_;
};

void DecodeKernels(benchmark::State& state) {
  Decoding decoding(static_cast<std::uint32_t>(state.range(0)));
  for (auto _ : state) decoding.Once();
  if (!decoding.AllTaken()) state.SkipWithError("records were lost");
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(decoding.count()));
}
BENCHMARK(DecodeKernels)->Arg(1)->Arg(4)->Arg(16);

// The library's own share of it: stepping from record to record.
void WalkRecords(benchmark::State& state) {
  FullBuffer buffer(1);
  CuptiApi api = LoadApi();
  std::int64_t records = 0;
  for (auto _ : state) {
    records += ActivityDecoder::CountRecords(api, buffer.data(), buffer.valid());
  }
  state.SetItemsProcessed(records);
}
BENCHMARK(WalkRecords);

// What a buffer costs beside its records: taken, returned, popped, zeroed.
void TurnBufferRound(benchmark::State& state) {
  auto pool = ActivityBufferPool::Create(kBufferBytes, 16, 0);
  for (auto _ : state) {
    pool->Complete(pool->Take(), kBufferBytes);
    ActivityBufferPool::Completed completed;
    if (!pool->Pop(&completed)) state.SkipWithError("no buffer");
    pool->Recycle(completed);
  }
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kBufferBytes / 216));
}
BENCHMARK(TurnBufferRound);

struct MarkedSource {
  explicit MarkedSource(bool link_ops) {
    fakecupti_reset();
    fakecuda_set_devices(1);
    CuptiOptions options;
    options.flush_interval_ms = 0;
    options.link_ops = link_ops;
    source = std::move(*CuptiSource::Create(options, &clock, nullptr));
  }
  SystemClock clock;
  std::unique_ptr<CuptiSource> source;
};

// Ours plus the double's three calls, which lock; the real library's share is another.
void FenceOnTheDouble(benchmark::State& state) {
  MarkedSource marked(false);
  if (marked.source->state().reason != "ok") state.SkipWithError("not counting");
  RecordBatch batch;
  std::int64_t set = 0;
  for (auto _ : state) {
    marked.source->Fence(++set);
    if (set % 4096 == 0) {
      state.PauseTiming();
      batch.Clear();
      marked.source->Drain(batch);
      state.ResumeTiming();
    }
  }
}
BENCHMARK(FenceOnTheDouble);

// What the training thread pays for ops where the device's records are not linked to them.
void OpMarksOff(benchmark::State& state) {
  MarkedSource marked(false);
  for (auto _ : state) {
    marked.source->PushOp(1, Phase::kForward);
    marked.source->PopOp();
  }
}
BENCHMARK(OpMarksOff);

void FenceWithoutADevice(benchmark::State& state) {
  MarkedSource marked(false);
  marked.source->Stop();
  for (auto _ : state) marked.source->Fence(1);
}
BENCHMARK(FenceWithoutADevice);

std::int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  std::int64_t pages = 0, resident = 0;
  file >> pages >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

// Flat over a training job's worth of records.
void HundredMillionRecords(benchmark::State& state) {
  for (auto _ : state) {
    Decoding decoding(16);
    decoding.Once();
    const std::int64_t before = ResidentBytes();
    std::int64_t records = 0;
    while (records < 100'000'000) {
      decoding.Once();
      records += static_cast<std::int64_t>(decoding.count());
    }
    state.counters["grown_bytes"] = static_cast<double>(ResidentBytes() - before);
    state.SetItemsProcessed(records);
  }
}
BENCHMARK(HundredMillionRecords)->Iterations(1)->Unit(benchmark::kSecond);

}  // namespace
}  // namespace flopledger
