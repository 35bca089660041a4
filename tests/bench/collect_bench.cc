// What the training thread pays: one step boundary, one observed op, one declaration of tokens.
#include <benchmark/benchmark.h>

#include <memory>
#include <vector>

#include "base/clock.h"
#include "collect/host_source.h"

namespace flopledger {
namespace {

constexpr int kWritesBetweenDrains = 2048;

std::shared_ptr<HostSource> MakeSource(const Clock* clock) {
  return HostSource::Create({}, clock, [](const OpSignature&) { return OpClass::kMatmul; });
}

// Runs `write` for every iteration and empties the rings outside of the measured time.
template <typename Write>
void MeasureWrites(benchmark::State& state, HostSource& source, Write write) {
  RecordBatch batch;
  int written = 0;
  for (auto _ : state) {
    write();
    if (++written == kWritesBetweenDrains) {
      state.PauseTiming();
      batch.Clear();
      source.Drain(batch);
      written = 0;
      state.ResumeTiming();
    }
  }
  if (!batch.losses.empty()) state.SkipWithError("records were lost: the figure is of refusals");
  source.Stop();
}

void StepBoundary(benchmark::State& state) {
  const SystemClock clock;
  const auto source = MakeSource(&clock);
  std::int64_t step = 0;
  MeasureWrites(state, *source, [&] { source->Mark(MarkerRecord::Kind::kStepBegin, ++step); });
}
BENCHMARK(StepBoundary);

/// A device whose library costs nothing: what is left is our own part of a boundary.
class NullDevice final : public DeviceSource {
 public:
  void Drain(RecordBatch&) override {}
  void Stop() override {}
  void Fence(std::int64_t boundary_ns) noexcept override { last_ns_ = boundary_ns; }
  void PushOp(SignatureId, Phase) noexcept override {}
  void PopOp() noexcept override {}
  void BecomeInert() noexcept override {}
  DeviceSourceState state() const override {
    return {.kind = DeviceSourceState::Kind::kCounting, .reason = "ok", .text = {}};
  }
  const KernelTable& kernels() const override { return kernels_; }
  std::vector<DeviceDescription> devices() const override { return {}; }

 private:
  std::int64_t last_ns_ = 0;
  KernelTable kernels_{1, {}};
};

void StepBoundaryWithDevice(benchmark::State& state) {
  const SystemClock clock;
  const auto source = HostSource::Create({}, &clock, {}, std::make_unique<NullDevice>());
  std::int64_t step = 0;
  MeasureWrites(state, *source, [&] { source->MarkStep(MarkerRecord::Kind::kStepBegin, ++step); });
}
BENCHMARK(StepBoundaryWithDevice);

void DeclaredTokens(benchmark::State& state) {
  const SystemClock clock;
  const auto source = MakeSource(&clock);
  const TokenRecord rows{.count = 8, .length = 128, .useful_length = 100};
  MeasureWrites(state, *source, [&] { source->DeclareRows(rows); });
}
BENCHMARK(DeclaredTokens);

// The C table's side of an observed op, without the framework's own cost of calling an observer.
void ObservedOpWrite(benchmark::State& state) {
  const SystemClock clock;
  const auto source = MakeSource(&clock);
  const flopledger_host_ops* ops = source->host_ops();
  const std::int64_t shape[] = {1024, 256};
  const flopledger_op_argument argument{
      .kind = static_cast<std::uint8_t>(OpArgument::Kind::kTensor),
      .dtype = static_cast<std::uint8_t>(DType::kFloat32),
      .reserved = 0,
      .integer_count = 2,
      .integers = shape,
      .real = 0};
  const std::uint32_t signature = ops->intern(ops->context, "aten::mm", &argument, 1);
  flopledger_op_record record{};
  record.signature = signature;
  MeasureWrites(state, *source, [&] {
    record.start_ns += 10;
    record.end_ns = record.start_ns + 5;
    record.self_ns = 5;
    ops->write(ops->context, &record);
  });
}
BENCHMARK(ObservedOpWrite);

}  // namespace
}  // namespace flopledger
