// What the worker pays to capture: a kernel record, an op record, an empty portion; and to read
// one.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "collect/capture_tap.h"
#include "collect/trace/capture_source.h"

namespace flopledger {
namespace {

constexpr int kKernelsPerBatch = 400;  // 5 ms of 80,000 launches a second
constexpr int kOpsPerBatch = 400;

std::string CapturePath() {
  return (std::filesystem::temp_directory_path() /
          ("flopledger_bench_" + std::to_string(getpid()) + ".flopcap"))
      .string();
}

RecordBatch Kernels(std::int64_t& now_ns, int count) {
  RecordBatch batch;
  for (int i = 0; i < count; ++i) {
    now_ns += 12'000 + i % 7 * 100;
    batch.kernels.push_back({.start_ns = now_ns,
                             .end_ns = now_ns + 9'000 + i % 13 * 50,
                             .launch_order = now_ns / 10,
                             .kernel = static_cast<KernelId>(1 + i % 200),
                             .stream = 7,
                             .op = static_cast<SignatureId>(1 + i % 300),
                             .launch_known = true,
                             .op_known = true});
  }
  batch.drained_at_ns = now_ns;
  return batch;
}

RecordBatch Ops(std::int64_t& now_ns, int count) {
  RecordBatch batch;
  for (int i = 0; i < count; ++i) {
    now_ns += 12'000;
    batch.ops.push_back({.start_ns = now_ns,
                         .end_ns = now_ns + 9'000 + i % 13 * 50,
                         .self_ns = 9'000,
                         .signature = static_cast<SignatureId>(1 + i % 300)});
  }
  batch.drained_at_ns = now_ns;
  return batch;
}

// Tables that are written once do not count; the file does, as the page cache takes it.
template <typename Make>
void MeasureWrites(benchmark::State& state, Make make, int records) {
  const std::string path = CapturePath();
  auto tap = CaptureTap::Create({.path = path, .max_bytes = std::int64_t{4} << 30}, {});
  std::int64_t now_ns = 0;
  const RecordBatch batch = make(now_ns, records);
  for (auto _ : state) {
    now_ns += 5'000'000;
    (*tap)->Write(batch, {.now_ns = now_ns, .device_counting = true});
  }
  (*tap)->Finish(now_ns);
  if ((*tap)->state().reason != "ok")
    state.SkipWithError("the capture ended: nothing was measured");
  const auto written = static_cast<double>((*tap)->state().bytes);
  const double all = static_cast<double>(state.iterations()) * records;
  state.SetItemsProcessed(state.iterations() * records);
  state.counters["bytes_per_record"] = written / all;
  std::filesystem::remove(path);
}

void CaptureKernelWrite(benchmark::State& state) {
  MeasureWrites(state, Kernels, kKernelsPerBatch);
}
BENCHMARK(CaptureKernelWrite);

void CaptureOpWrite(benchmark::State& state) { MeasureWrites(state, Ops, kOpsPerBatch); }
BENCHMARK(CaptureOpWrite);

void CaptureEmptyPump(benchmark::State& state) {
  MeasureWrites(state, [](std::int64_t& now_ns, int) { return Kernels(now_ns, 0); }, 1);
}
BENCHMARK(CaptureEmptyPump);

void CaptureKernelRead(benchmark::State& state) {
  const std::string path = CapturePath();
  constexpr int kBatches = 1000;
  std::int64_t now_ns = 0;
  {
    auto tap = CaptureTap::Create({.path = path}, {});
    for (int i = 0; i < kBatches; ++i) {
      (*tap)->Write(Kernels(now_ns, kKernelsPerBatch), {.now_ns = now_ns, .device_counting = true});
    }
    (*tap)->Finish(now_ns);
  }
  for (auto _ : state) {
    auto source = CaptureSource::Open(path, {});
    RecordBatch batch;
    std::int64_t read = 0;
    for (;;) {
      batch.Clear();
      const Result<bool> more = (*source)->Read(batch);
      if (!more.has_value() || !*more) break;
      read += static_cast<std::int64_t>(batch.kernels.size());
    }
    if (read != kBatches * kKernelsPerBatch) state.SkipWithError("records are missing");
  }
  state.SetItemsProcessed(state.iterations() * kBatches * kKernelsPerBatch);
  state.SetBytesProcessed(state.iterations() *
                          static_cast<std::int64_t>(std::filesystem::file_size(path)));
  std::filesystem::remove(path);
}
BENCHMARK(CaptureKernelRead);

}  // namespace
}  // namespace flopledger
