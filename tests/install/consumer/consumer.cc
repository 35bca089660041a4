// Uses the installed package as a stranger would: whatever the public headers declare has to link.
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

  flopledger::StepReport report;
  if (report.RecomputeRatio().has_value()) return 2;  // nothing was executed: unknown, not zero
  flopledger::RunTotals totals;
  totals.Add(report);
  if (totals.MfuRatio().has_value()) return 3;
  if (observer_table_size() == 0) return 4;

  std::printf("flopledger %s\n%s\n", FLOPLEDGER_VERSION, flopledger::ToString(largest).c_str());
  return 0;
}
