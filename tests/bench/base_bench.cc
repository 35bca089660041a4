// What one clock read, one ring write and one look-up cost: the floor under every other figure.
#include <benchmark/benchmark.h>

#include "base/clock.h"
#include "base/signature_table.h"
#include "base/sync.h"

namespace flopledger {
namespace {

void ClockRead(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(SystemClock::Now());
}
BENCHMARK(ClockRead);

void RingPushAndPop(benchmark::State& state) {
  SpscRing<OpRecord> ring(4096);
  OpRecord record;
  for (auto _ : state) {
    benchmark::DoNotOptimize(ring.TryPush(record));
    benchmark::DoNotOptimize(ring.TryPop(&record));
  }
}
BENCHMARK(RingPushAndPop);

// An observer interns once per signature and keeps the number; this is what it costs if it doesn't.
void InternKnownSignature(benchmark::State& state) {
  SignatureTable table(1024, [](const OpSignature&) { return OpClass::kMatmul; });
  const OpArgument matrix{
      .kind = OpArgument::Kind::kTensor, .dtype = DType::kFloat32, .integers = {1024, 256}};
  const OpSignature signature{.name = "aten::mm", .arguments = {matrix, matrix}};
  for (auto _ : state) benchmark::DoNotOptimize(table.Intern(signature));
}
BENCHMARK(InternKnownSignature);

}  // namespace
}  // namespace flopledger
