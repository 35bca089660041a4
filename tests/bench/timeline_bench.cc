// Device records on the worker: from a batch to the sums of their step, and the closing of a step.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <fstream>
#include <vector>

#include "timeline/step_builder.h"

namespace flopledger {
namespace {

constexpr int kKernels = 5000;  // a step
constexpr int kSignatures = 400;
constexpr std::int64_t kLaunchNs = 4000;

/// Steps of a training run: launches in a row, kernels in order on each stream, one in three of
/// them communication or a copy, gaps of half a microsecond between them.
class Steps {
 public:
  explicit Steps(int streams) : streams_(streams) {
    batch_.markers.resize(1);
    batch_.fences.resize(1);
    batch_.kernels.resize(kKernels);
    for (int i = 0; i < kKernels; ++i) {
      KernelRecord& kernel = batch_.kernels[static_cast<std::size_t>(i)];
      kernel.launch_order = i;
      kernel.kernel = static_cast<KernelId>(1 + i * 7 % kSignatures);
      kernel.stream = static_cast<std::uint32_t>(i % streams);
      kernel.op = static_cast<SignatureId>(1 + kernel.kernel % 50);
      kernel.op_known = kernel.kernel % 5 != 0;
      kernel.launch_known = true;
      kernel.phase = static_cast<Phase>(i * 3 / kKernels);
      kernel.op_class = kernel.kernel % 8 == 0   ? OpClass::kCommunication
                        : kernel.kernel % 8 == 1 ? OpClass::kCopy
                                                 : OpClass::kMatmul;
    }
  }

  /// The next step's boundary, fence and kernels.
  const RecordBatch& Next() {
    const std::int64_t start_ns = step_ * kKernels * kLaunchNs;
    const LaunchOrder order = step_ * (kKernels + 1);
    batch_.markers[0] = {.time_ns = start_ns, .step = step_};
    batch_.fences[0] = {.boundary_ns = start_ns, .launch_order = order};
    for (int i = 0; i < kKernels; ++i) {
      KernelRecord& kernel = batch_.kernels[static_cast<std::size_t>(i)];
      kernel.launch_order = order + 1 + i;
      kernel.start_ns = start_ns + i * kLaunchNs + 2000;
      kernel.end_ns = kernel.start_ns + kLaunchNs * streams_ - 500;
    }
    batch_.drained_at_ns = start_ns + (kKernels + streams_ + 2) * kLaunchNs;
    ++step_;
    return batch_;
  }
  std::int64_t step() const { return step_; }

 private:
  const int streams_;
  std::int64_t step_ = 0;
  RecordBatch batch_;
};

// Per record: from the batch into the accumulators of its step.
void FoldKernelRecords(benchmark::State& state) {
  Steps steps(static_cast<int>(state.range(0)));
  StepBuilder builder({});
  builder.SetDeviceCounting(true);
  for (auto _ : state) {
    state.PauseTiming();
    const RecordBatch& batch = steps.Next();
    state.ResumeTiming();
    builder.Add(batch);
    state.PauseTiming();
    while (auto step = builder.Take()) benchmark::DoNotOptimize(step->kernels.data());
    state.ResumeTiming();
  }
  state.SetItemsProcessed(state.iterations() * kKernels);
  state.counters["retained_bytes"] = static_cast<double>(builder.retained_device_bytes());
}
BENCHMARK(FoldKernelRecords)->ArgName("streams")->Arg(1)->Arg(4)->Arg(16);

// The same with a step's share of closing it: its partition by time, its sorted sums.
void FoldAndCloseDeviceSteps(benchmark::State& state) {
  Steps steps(static_cast<int>(state.range(0)));
  StepBuilder builder({});
  builder.SetDeviceCounting(true);
  for (auto _ : state) {
    state.PauseTiming();
    const RecordBatch& batch = steps.Next();
    state.ResumeTiming();
    builder.Add(batch);
    while (auto step = builder.Take()) benchmark::DoNotOptimize(step->kernels.data());
  }
  state.SetItemsProcessed(state.iterations() * kKernels);
}
BENCHMARK(FoldAndCloseDeviceSteps)->ArgName("streams")->Arg(1)->Arg(4)->Arg(16);

std::int64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  std::int64_t size = 0;
  std::int64_t resident = 0;
  statm >> size >> resident;
  return resident * 4096;
}

// 10^8 records, 20,000 steps on four streams. Counters: memory after a tenth and at the end.
void HundredMillionKernelRecords(benchmark::State& state) {
  constexpr std::int64_t kSteps = 20'000;
  for (auto _ : state) {
    Steps steps(4);
    StepBuilder builder({});
    builder.SetDeviceCounting(true);
    std::int64_t closed = 0;
    std::int64_t launches = 0;
    std::int64_t early_bytes = 0;
    while (steps.step() < kSteps) {
      builder.Add(steps.Next());
      while (auto step = builder.Take()) {
        ++closed;
        for (const KernelSum& sum : step->kernels) launches += sum.launches;
      }
      if (steps.step() == kSteps / 10) early_bytes = ResidentBytes();
    }
    state.counters["closed_steps"] = static_cast<double>(closed);
    state.counters["launches_in_closed_steps"] = static_cast<double>(launches);
    state.counters["retained_bytes"] = static_cast<double>(builder.retained_device_bytes());
    state.counters["grown_bytes"] = static_cast<double>(ResidentBytes() - early_bytes);
  }
  state.SetItemsProcessed(state.iterations() * kSteps * kKernels);
}
BENCHMARK(HundredMillionKernelRecords)->Iterations(1)->Unit(benchmark::kSecond);

}  // namespace
}  // namespace flopledger
