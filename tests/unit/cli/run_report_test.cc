#include "cli/run_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "cli/html_report.h"
#include "cli/run_diff.h"
#include "cli/run_report_text.h"
#include "fakes/fake_run.h"

namespace flopledger::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr std::int64_t kSecond = 1'000'000'000;

/// A rank whose steps are [start, end) in ns, 60 FLOPs each at 100 FLOP/s.
RankLog LogOf(int rank, int world,
              const std::vector<std::pair<std::int64_t, std::int64_t>>& steps) {
  RankLog log;
  log.paths = {"rank" + std::to_string(rank)};
  log.run.identity = {.run_id = "run", .rank = rank, .world_size = world};
  log.has_summary = true;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    StepReport step;
    step.step = static_cast<std::int64_t>(i);
    step.start_ns = steps[i].first;
    step.end_ns = steps[i].second;
    step.wall = DurationNs(step.end_ns - step.start_ns);
    step.end_unix_seconds = 1.7e9 + static_cast<double>(step.end_ns) * 1e-9;
    step.peak_flops = Flops::FromInteger(step.wall.ns() / 10'000'000);
    step.declared = DeclaredFlops{.useful_forward = Flops::FromInteger(20),
                                  .useful_backward = Flops::FromInteger(40),
                                  .padding = Flops()};
    step.waterfall = {{"idle_host", step.peak_flops - Flops::FromInteger(60), false},
                      {"useful", Flops::FromInteger(60), true}};
    log.steps.push_back({std::move(step), steps[i].first, steps[i].second});
  }
  return log;
}

RunReport Report(std::vector<RankLog> logs) {
  Result<RunLogs> joined = JoinRanks(std::move(logs), {});
  EXPECT_TRUE(joined.has_value());
  return BuildRunReport(*std::move(joined));
}

Int128 Sum(const std::vector<WaterfallLine>& lines) {
  Int128 sum = 0;
  for (const WaterfallLine& line : lines) sum += line.flops.count();
  return sum;
}

TEST(RunReport, CountsWhatIsCoveredByAnyStepOnce) {
  // Windows [0, 4) and [3, 7): 7 s, though the ranks' own steps last 12 s together.
  const RunReport report =
      Report({LogOf(0, 2, {{0, 3 * kSecond}, {3 * kSecond, 6 * kSecond}}),
              LogOf(1, 2, {{kSecond, 4 * kSecond}, {4 * kSecond, 7 * kSecond}})});
  EXPECT_EQ(report.window.ns(), 7 * kSecond);
  ASSERT_TRUE(report.ratios.mfu.has_value());
  EXPECT_NEAR(*report.ratios.mfu, 240.0 / (2 * 100 * 7), 1e-12);
  EXPECT_EQ(report.peak.ToString(), "1400");
  EXPECT_EQ(Sum(report.waterfall), 1400);
  EXPECT_EQ(report.waterfall.front().cause, kRankSkew);
  EXPECT_EQ(report.waterfall.front().flops.ToString(), "200");  // a second of each rank
}

TEST(RunReport, AGapBetweenStepsIsNotTimeOfTheRun) {
  const RunReport report = Report({LogOf(0, 1, {{0, kSecond}, {5 * kSecond, 6 * kSecond}})});
  EXPECT_EQ(report.window.ns(), 2 * kSecond);
  EXPECT_NEAR(*report.ratios.mfu, 0.6, 1e-12);
  EXPECT_THAT(report.waterfall.front().cause, Not(kRankSkew));
}

TEST(RunReport, NothingGivenIsNothingSaid) {
  const RunReport none = BuildRunReport({});
  EXPECT_EQ(none.ratios.mfu, std::nullopt);
  const RunReport empty = Report({LogOf(0, 1, {})});
  EXPECT_EQ(empty.ratios.mfu, std::nullopt);
  EXPECT_EQ(empty.ratios.refusal, "no step that every rank completed");
  EXPECT_THAT(WriteText(empty, Ink(false)), HasSubstr("N/A (no step that every rank completed)"));
  EXPECT_THAT(WriteHtml(empty), HasSubstr("</html>"));
}

TEST(RunReport, RanksThatShareNoStepHaveNoCompleteOne) {
  RankLog other = LogOf(1, 2, {{0, kSecond}});
  other.steps.front().report.step = 9;
  const RunReport report = Report({LogOf(0, 2, {{0, kSecond}}), std::move(other)});
  EXPECT_EQ(report.spread.steps, 0);
  ASSERT_EQ(report.steps.size(), 2U);
  EXPECT_THAT(report.steps[0].missing_ranks, ElementsAre(1));
  EXPECT_THAT(report.steps[1].missing_ranks, ElementsAre(0));
}

TEST(RunReport, StepsOfNoLengthDoNotDivideByZero) {
  const RunReport report = Report({LogOf(0, 1, {{5, 5}, {5, 5}})});
  EXPECT_EQ(report.ratios.mfu, std::nullopt);
  EXPECT_THAT(WriteJson(report, true), Not(HasSubstr("nan")));
}

TEST(RunReport, ARealRunBalancesToTheFlop) {
  fakes::FakeRun run;
  RankLog log;
  log.paths = {"fake"};
  log.run = run.description();
  for (int i = 0; i < 100; ++i) {
    StepReport step = run.NextStep();
    const std::int64_t start = step.start_ns;
    const std::int64_t end = step.end_ns;
    log.steps.push_back({std::move(step), start, end});
  }
  const RunReport report = Report({std::move(log)});
  EXPECT_EQ(Sum(report.waterfall), report.peak.count());
  EXPECT_EQ(report.peak, report.totals.PeakTotal());
  EXPECT_NEAR(*report.ratios.mfu, *report.totals.MfuRatio(), 1e-12);
}

TEST(RunReport, FleetsOfFlopsDoNotOverflow) {
  // 1e26 FLOPs of peak in a step of 11 days: times the window this leaves 128 bits.
  RankLog log = LogOf(0, 2, {{0, 1'000'000 * kSecond}});
  RankLog late = LogOf(1, 2, {{kSecond, 1'000'001 * kSecond}});
  for (RankLog* each : {&log, &late}) {
    Int128 huge = 1;
    for (int i = 0; i < 26; ++i) huge *= 10;
    each->steps.front().report.peak_flops = Flops::FromInteger(huge);
  }
  const RunReport report = Report({std::move(log), std::move(late)});
  EXPECT_EQ(report.peak.ToString(), "200000200000000000000000000");
}

TEST(RunDiff, CausesSumToTheTimeOfAUnit) {
  const RunReport a = Report({LogOf(0, 1, {{0, kSecond}, {kSecond, 2 * kSecond}})});
  const RunReport b = Report({LogOf(0, 1, {{0, 2 * kSecond}, {2 * kSecond, 4 * kSecond}})});
  const RunDiff diff = CompareRuns(a, b);
  EXPECT_EQ(diff.verdict, SpeedVerdict::kSlower);
  double before = 0;
  double after = 0;
  for (const CauseChange& cause : diff.causes) {
    before += cause.before_seconds;
    after += cause.after_seconds;
  }
  EXPECT_NEAR(before, 1, 1e-12);
  EXPECT_NEAR(after, 2, 1e-12);
  EXPECT_EQ(diff.causes.front().cause, "idle_host");
  EXPECT_THAT(diff.terms, IsEmpty());
}

TEST(HtmlReport, NamesCannotEndTheirElement) {
  RankLog log = LogOf(0, 1, {{0, kSecond}});
  log.run.identity.run_id = "a</script><b>&\"@DATA@@TEXT@";
  log.gaps.push_back({.name = "k</SCRIPT ><!--<script>\xff",
                      .reason = GapReason::kNoRule,
                      .launches = 1,
                      .time = DurationNs(5)});
  const std::string page = WriteHtml(Report({std::move(log)}));
  EXPECT_THAT(page, Not(HasSubstr("a</script>")));
  EXPECT_THAT(page, Not(HasSubstr("</SCRIPT")));
  EXPECT_THAT(page, Not(HasSubstr("<!--")));
  EXPECT_THAT(page, HasSubstr("k\\u003c/SCRIPT >\\u003c!--"));
  EXPECT_THAT(page, HasSubstr("<title>a&lt;/script&gt;&lt;b&gt;&amp;&quot;@DATA@@TEXT@"));
}

TEST(Ink, ShowsControlCharacters) {
  EXPECT_EQ(Printable("a\x1b[2Jb\n\x7f"), "a\\x1b[2Jb\\x0a\\x7f");
  EXPECT_EQ(Printable("größe"), "größe");
  EXPECT_EQ(Ink(false).Bad("x"), "x");
  EXPECT_EQ(Ink(true).Bad("x"), "\x1b[31mx\x1b[0m");
}

}  // namespace
}  // namespace flopledger::cli
