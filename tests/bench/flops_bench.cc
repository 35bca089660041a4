// How many evaluations of a declared formula a core makes: once per step in use, so that 10^6 a
// second is far more than enough, and a sign that nothing is allocated or compiled on the way.
#include <benchmark/benchmark.h>

#include "flopledger/model_flops.h"

namespace flopledger {
namespace {

ModelFlops DeepSeekV3() {
  TransformerDescription d{.layers = 61,
                           .hidden = 7168,
                           .query_heads = 128,
                           .ffn = 18432,
                           .gated_ffn = true,
                           .vocabulary = 129280};
  d.latent_attention = LatentAttention{.query_rank = 1536,
                                       .key_value_rank = 512,
                                       .nope_head_dim = 128,
                                       .rope_head_dim = 64,
                                       .value_head_dim = 128};
  d.experts = ExpertShape{.experts = 256, .active = 8, .expert_ffn = 2048, .shared = 1};
  d.runs = {{.count = 3}, {.count = 58, .feed_forward = FfnKind::kExperts}};
  d.prediction_modules = 1;
  return *ModelFlops::FromTransformer(d);
}

void BM_EvaluateDeepSeekV3Total(benchmark::State& state) {
  const ModelFlops model = DeepSeekV3();
  Workload step{.sequences = {{.length = 4096, .count = 15360}}};
  for (auto _ : state) {
    step.sequences[0].length ^= 1;
    benchmark::DoNotOptimize(model.EvaluateTotal(step));
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_EvaluateDeepSeekV3Total);

void BM_EvaluateDeepSeekV3Parts(benchmark::State& state) {
  const ModelFlops model = DeepSeekV3();
  const Workload step{.sequences = {{.length = 4096, .count = 15360}}};
  for (auto _ : state) benchmark::DoNotOptimize(model.Evaluate(step));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_EvaluateDeepSeekV3Parts);

void BM_EvaluateDeepSeekV3ForeignConvention(benchmark::State& state) {
  const ModelFlops model = DeepSeekV3();
  const FlopConvention megatron = *FindConvention("MEGATRON");
  const Workload step{.sequences = {{.length = 4096, .count = 15360}}};
  for (auto _ : state) benchmark::DoNotOptimize(model.EvaluateTotal(step, megatron));
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(BM_EvaluateDeepSeekV3ForeignConvention);

}  // namespace
}  // namespace flopledger
