// Uses the installed package as a stranger would: whatever the public headers declare has to link.
#include <flopledger/convention.h>
#include <flopledger/model_flops.h>
#include <flopledger/peak.h>
#include <flopledger/run_totals.h>
#include <flopledger/step_report.h>
#include <flopledger/units.h>
#include <flopledger/version.h>

#include <cstdio>
#include <limits>

extern "C" unsigned int observer_table_size(void);

int main() {
  const flopledger::Int128 largest = std::numeric_limits<flopledger::Int128>::max();
  const auto read = flopledger::ParseInt128(flopledger::ToString(largest));
  if (!read || *read != largest) return 1;
  if (flopledger::IdentifyConvention({}).name != "house") return 5;
  if (flopledger::ParsePeakRate("989.4 TFLOP/s")->value() != 989.4e12) return 6;

  // By hand, forward, 4 tokens: 2 layers x (attention 4 x 8 x 8 + feed-forward 2 x 8 x 12) + head
  // 8 x 16, times 2 FLOPs, is 2048 a token; 10 pairs x 2 products x 8 x 2 FLOPs x 2 layers is 640.
  const auto model = flopledger::ModelFlops::FromTransformer(
      {.layers = 2, .hidden = 8, .query_heads = 4, .ffn = 12, .vocabulary = 16});
  if (!model) return 7;
  const auto work = model->Evaluate({.sequences = {{.length = 4, .count = 1}}});
  if (!work || work->forward.count() != 4 * 2048 + 640) return 8;

  flopledger::StepReport report;
  if (report.RecomputeRatio().has_value()) return 2;  // nothing was executed: unknown, not zero
  flopledger::RunTotals totals;
  totals.Add(report);
  if (totals.MfuRatio().has_value()) return 3;
  if (observer_table_size() == 0) return 4;

  std::printf("flopledger %s\n%s\n", FLOPLEDGER_VERSION, flopledger::ToString(largest).c_str());
  return 0;
}
