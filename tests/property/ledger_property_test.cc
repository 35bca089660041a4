#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "fakes/books.h"
#include "flopledger/causes.h"
#include "flopledger/run_totals.h"
#include "ledger/reconcile.h"

namespace flopledger {
namespace {

using fakes::MakeRandomStep;
using fakes::RandomStep;

EligiblePeak RandomPeak(std::mt19937_64& random) {
  EligiblePeak peak{.dtype = DType::kFloat32, .device_count = 1 + static_cast<int>(random() % 3)};
  if (random() % 8 != 0) {
    peak.rates.push_back(
        fakes::Peak(DType::kFloat32, 1e9 + static_cast<double>(random() % 1000000) * 1e9));
  }
  if (random() % 2 != 0) peak.rates.push_back(fakes::Peak(DType::kBfloat16, 7.77e14));
  return peak;
}

/// Every figure that a scraper would see as a counter.
std::vector<Int128> Counters(const RunTotals& totals) {
  std::vector<Int128> all = {totals.useful_forward.count(),
                             totals.useful_backward.count(),
                             totals.recomputed.count(),
                             totals.auxiliary.count(),
                             totals.padding.count(),
                             totals.excess_positive.count(),
                             totals.excess_negative.count(),
                             totals.unexplained_positive.count(),
                             totals.unexplained_negative.count(),
                             totals.executed_equivalent.count(),
                             totals.useful_in_warmup.count(),
                             totals.wall.ns(),
                             totals.useful_tokens,
                             totals.padding_tokens,
                             totals.late_records,
                             totals.ExecutedTotal().count(),
                             totals.PeakTotal().count()};
  for (DurationNs time : totals.device_time) all.push_back(time.ns());
  for (const auto& by_kind : totals.kernel_time) {
    for (DurationNs time : by_kind) all.push_back(time.ns());
  }
  for (std::int64_t kernels : totals.kernels) all.push_back(kernels);
  for (std::int64_t steps : totals.steps) all.push_back(steps);
  Int128 excluded = 0;
  for (const auto& [reason, time] : totals.excluded) excluded += time.ns();
  all.push_back(excluded);
  Int128 lost = 0;
  for (const auto& [cause, flops] : totals.lost_peak) lost += flops.count();
  all.push_back(lost);
  Int128 dropped = 0;
  for (const auto& [key, count] : totals.dropped) dropped += count;
  all.push_back(dropped);
  return all;
}

void CheckIdentities(const StepReport& report) {
  std::int64_t device = 0;
  for (std::size_t state = 0; state < kDeviceStateCount; ++state) {
    device += report.devices[0].InState(static_cast<DeviceState>(state)).ns();
  }
  ASSERT_EQ(device, report.wall.ns()) << "step " << report.step;
  Flops parts;
  for (const ExecutedPart& part : report.executed.parts) parts += part.flops;
  ASSERT_EQ(parts, report.executed.total) << "step " << report.step;
  if (report.unexplained) {
    const Flops sum = report.declared->useful() + report.executed.recomputed +
                      report.executed.auxiliary + report.declared->padding +
                      report.executed.excess + *report.unexplained;
    ASSERT_EQ(sum, report.executed.total) << "step " << report.step;
  }
  if (!report.waterfall.empty()) {
    Flops sum;
    for (const WaterfallLine& line : report.waterfall) {
      sum += line.flops;
      ASSERT_NE(FindLostCause(line.cause), nullptr) << line.cause;
    }
    ASSERT_EQ(sum, report.peak_flops) << "step " << report.step;
  }
  for (const Finding& finding : report.findings) {
    ASSERT_NE(std::find(kFindingIds.begin(), kFindingIds.end(), finding.id), kFindingIds.end());
  }
  if (report.utilization.hfu_low_ratio) {
    ASSERT_LE(*report.utilization.hfu_low_ratio, *report.utilization.hfu_high_ratio);
  }
  if (report.coverage.time_ratio) {
    ASSERT_GE(*report.coverage.time_ratio, 0.0);
    ASSERT_LE(*report.coverage.time_ratio, 1.0);
  }
}

TEST(LedgerPropertyTest, BooksBalanceInEveryRandomStepAndCountersNeverFall) {
  const std::uint64_t seed = 20261129;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  RunTotals totals;
  std::vector<Int128> before = Counters(totals);
  Int128 wall_of_all = 0;
  for (int i = 0; i < 100'000; ++i) {
    RandomStep step = MakeRandomStep(random);
    step.timeline.step = i;
    const EligiblePeak peak = RandomPeak(random);
    StepReport report =
        Reconcile(step.timeline, step.ops, step.declaration, {.name = "house"}, peak);
    if (report.result == StepResult::kComplete && random() % 50 == 0) {
      report.result = StepResult::kWarmup;
    }

    CheckIdentities(report);
    if (HasFatalFailure()) return;
    totals.Add(report);
    wall_of_all += report.wall.ns();
    const std::vector<Int128> after = Counters(totals);
    for (std::size_t k = 0; k < after.size(); ++k) {
      ASSERT_TRUE(after[k] >= before[k]) << "counter " << k << " fell at step " << i;
    }
    before = after;
    if (i % 20'000 == 19'999) {
      // A restart: a new process counts from zero, nothing of the old one is carried over.
      Int128 excluded = 0;
      for (const auto& [reason, time] : totals.excluded) excluded += time.ns();
      ASSERT_TRUE(totals.wall.ns() + excluded == wall_of_all) << "time went missing";
      Int128 device_time = 0;
      for (DurationNs time : totals.device_time) device_time += time.ns();
      ASSERT_TRUE(device_time == totals.wall.ns());
      totals = RunTotals();
      before = Counters(totals);
      wall_of_all = 0;
    }
  }
}

TEST(LedgerPropertyTest, TheOrderOfOpsChangesNothing) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 2000; ++i) {
    RandomStep step = MakeRandomStep(random);
    const EligiblePeak peak = RandomPeak(random);
    const StepReport a = Reconcile(step.timeline, step.ops, step.declaration, {}, peak);
    std::shuffle(step.ops.begin(), step.ops.end(), random);
    const StepReport b = Reconcile(step.timeline, step.ops, step.declaration, {}, peak);
    ASSERT_EQ(a.executed.total, b.executed.total);
    ASSERT_EQ(a.executed_equivalent, b.executed_equivalent);
    ASSERT_EQ(a.unexplained, b.unexplained);
    ASSERT_EQ(a.coverage.time_ratio, b.coverage.time_ratio);
    ASSERT_EQ(a.utilization.hfu_high_ratio, b.utilization.hfu_high_ratio);
    ASSERT_EQ(a.gaps.size(), b.gaps.size());
    ASSERT_EQ(a.waterfall.size(), b.waterfall.size());
    for (std::size_t k = 0; k < a.waterfall.size(); ++k) {
      ASSERT_EQ(a.waterfall[k].flops, b.waterfall[k].flops);
    }
  }
}

TEST(LedgerPropertyTest, TotalsOfAMonthStayExact) {
  // 1e22 and more: every step is still told apart.
  StepReport report;
  report.wall = DurationNs(1);
  report.declared = DeclaredFlops{};
  report.declared->useful_forward = Flops::FromInteger(Int128{1'000'000'000'000'000'000} * 3);
  RunTotals totals;
  for (int i = 0; i < 10'000; ++i) totals.Add(report);
  report.declared->useful_forward = Flops::FromInteger(1);
  totals.Add(report);
  EXPECT_EQ(totals.useful_forward.ToString(), "30000000000000000000001");
}

}  // namespace
}  // namespace flopledger
