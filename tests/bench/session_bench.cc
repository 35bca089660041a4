// The worker's side: from the records of a step to its report. Nobody in the training waits for it,
// but it shares the machine.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <vector>

#include "base/signature_table.h"
#include "ledger/declaration.h"
#include "ledger/reconcile.h"
#include "timeline/step_builder.h"

namespace flopledger {
namespace {

constexpr int kSignatures = 200;

/// One step of ops as a training run gives them: in a row, some inside of others.
RecordBatch MakeStep(std::int64_t start_ns, std::int64_t step, int ops,
                     const std::vector<SignatureId>& signatures) {
  RecordBatch batch;
  batch.markers = {{.time_ns = start_ns, .step = step}};
  for (int i = 0; i < ops; ++i) {
    const std::int64_t begin = start_ns + 10 + i * 100;
    batch.ops.push_back({.start_ns = begin,
                         .end_ns = begin + 80,
                         .self_ns = 60,
                         .signature = signatures[static_cast<std::size_t>(i) % kSignatures],
                         .phase = static_cast<Phase>(i % 3),
                         .op_class = i % 4 == 0 ? OpClass::kMatmul : OpClass::kElementwise});
  }
  batch.tokens = {{.time_ns = start_ns + 5, .count = 8, .length = 1024, .useful_length = 1024}};
  return batch;
}

std::vector<SignatureId> Fill(SignatureTable& table) {
  std::vector<SignatureId> ids;
  for (int i = 0; i < kSignatures; ++i) {
    OpArgument tensor{
        .kind = OpArgument::Kind::kTensor, .dtype = DType::kFloat32, .integers = {16 + i, 16 + i}};
    ids.push_back(table.Intern(
        {.name = i % 4 == 0 ? "aten::mm" : "aten::mul", .arguments = {tensor, tensor}}));
  }
  return ids;
}

// Per op: fold a record into its step, with the step's share of closing it.
void FoldRecords(benchmark::State& state) {
  const int ops = static_cast<int>(state.range(0));
  SignatureTable table(1024, ClassifyOp);
  const std::vector<SignatureId> ids = Fill(table);
  StepBuilder builder({});
  const std::int64_t length = 100 + std::int64_t{ops} * 100;
  std::int64_t step = 0;
  for (auto _ : state) {
    state.PauseTiming();
    RecordBatch batch = MakeStep(step * length, step, ops, ids);
    ++step;
    state.ResumeTiming();
    builder.Add(batch);
    while (auto closed = builder.Take()) benchmark::DoNotOptimize(closed->ops.data());
  }
  state.SetItemsProcessed(state.iterations() * ops);
}
BENCHMARK(FoldRecords)->Arg(2000)->Arg(20000);

// Per step: resolve, evaluate the declaration, reconcile.
void ReconcileStep(benchmark::State& state) {
  SignatureTable table(1024, ClassifyOp);
  const std::vector<SignatureId> ids = Fill(table);
  StepBuilder builder({});
  builder.Add(MakeStep(0, 0, 2000, ids));
  builder.Finish(1'000'000);
  const StepTimeline timeline = *builder.Take();
  FlopResolver resolver({{FlopSource::kOpShapes, CountOp}});
  const std::optional<ModelFlops> model = *ModelFlops::FromTransformer({.layers = 32,
                                                                        .hidden = 4096,
                                                                        .query_heads = 32,
                                                                        .key_value_heads = 8,
                                                                        .head_dim = 128,
                                                                        .ffn = 14336,
                                                                        .gated_ffn = true,
                                                                        .vocabulary = 128256});
  const EligiblePeak peak{
      .rates = {{.dtype = DType::kFloat32, .rate = FlopsPerSecond(1e12), .source = "bench"}}};
  for (auto _ : state) {
    const std::vector<ResolvedOp> ops = resolver.Resolve(timeline.ops, table);
    const StepDeclaration declaration = EvaluateDeclaration(model, {}, timeline);
    StepReport report = Reconcile(timeline, ops, declaration, {}, peak);
    benchmark::DoNotOptimize(report.executed);
  }
}
BENCHMARK(ReconcileStep);

}  // namespace
}  // namespace flopledger
