#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "fakes/allocation_counter.h"
#include "fakes/fake_device_source.h"
#include "flopledger/session.h"
#include "session/overhead_budget.h"
#include "session/session_parts.h"

// A real session on a device that the test drives.

namespace flopledger {
namespace {

using fakes::FakeDeviceSource;
using testing_support::AllocationsOf;
using Shared = FakeDeviceSource::Shared;

struct Kept {
  std::vector<StepReport> reports;
  std::vector<SessionState> states;
};

struct KeepingSink final : ReportSink {
  explicit KeepingSink(std::shared_ptr<Kept> to) : kept(std::move(to)) {}
  void Announce(const SessionState& state) override { kept->states.push_back(state); }
  void Publish(const StepReport& report, const RunTotals&) override {
    kept->reports.push_back(report);
  }
  std::shared_ptr<Kept> kept;
};

class DeviceSessionTest : public testing::Test {
 protected:
  void Open(bool host_ops = true, const std::string& log_level = "off") {
    SessionOptions options;
    options.peaks = {{.device_model = "test",
                      .dtype = DType::kFloat32,
                      .rate = FlopsPerSecond(1e12),
                      .source = "test"}};
    options.warmup_steps = 0;
    options.log_level = log_level;
    options.log_every_steps = 0;
    options.http.enabled = false;
    options.manual_pump = true;
    options.host_ops = host_ops;
    options.sinks.push_back(std::make_unique<KeepingSink>(kept_));
    shared_->pending.fences.reserve(4096);
    shared_->ops.reserve(64);
    SessionParts parts{.clock = std::make_unique<SystemClock>(),
                       .device = std::make_unique<FakeDeviceSource>(shared_)};
    auto session = std::move(parts).Create(std::move(options));
    ASSERT_TRUE(session.has_value()) << session.error().message();
    session_ = *std::move(session);
  }

  // Ops of 10 x 10 products, each of which launches a kernel of `ns`; then one of NCCL.
  void RunStep(int ops, std::int64_t ns) {
    const flopledger_host_ops* table = session_->HostOps();
    const std::int64_t shape[2] = {10, 10};
    const flopledger_op_argument tensor{
        .kind = 1, .dtype = 1, .integer_count = 2, .integers = shape};
    const flopledger_op_argument both[2] = {tensor, tensor};
    const std::uint32_t mm = table->intern(table->context, "aten::mm", both, 2);
    auto step = session_->Step();
    for (int i = 0; i < ops; ++i) {
      const std::int64_t now = SystemClock::Now();
      table->push_op(table->context, mm, 0);
      FakeDeviceSource::Launch(
          *shared_,
          {.start_ns = now, .end_ns = now + ns, .kernel = FakeDeviceSource::kGemm, .stream = 7});
      table->pop_op(table->context);
      const flopledger_op_record record{
          .start_ns = now, .end_ns = now + 1, .self_ns = 1, .signature = mm};
      table->write(table->context, &record);
    }
    const std::int64_t now = SystemClock::Now();
    FakeDeviceSource::Launch(
        *shared_,
        {.start_ns = now, .end_ns = now + ns, .kernel = FakeDeviceSource::kNccl, .stream = 8});
  }

  const Capability* Find(const std::string& name) const {
    const auto& capabilities = kept_->states.back().capabilities;
    const auto found = std::find_if(capabilities.begin(), capabilities.end(),
                                    [&](const Capability& each) { return each.name == name; });
    return found == capabilities.end() ? nullptr : &*found;
  }

  std::shared_ptr<Shared> shared_ = std::make_shared<Shared>();
  std::shared_ptr<Kept> kept_ = std::make_shared<Kept>();
  std::unique_ptr<Session> session_;
};

TEST_F(DeviceSessionTest, KernelsReachTheBooksWithTheOpThatLaunchedThem) {
  Open();
  for (int i = 0; i < 4; ++i) {
    RunStep(3, 100);
    FakeDeviceSource::Deliver(*shared_);
    session_->PumpOnce();
    session_->PumpOnce();
  }
  session_->Close();
  ASSERT_EQ(kept_->reports.size(), 4u);
  EXPECT_EQ(shared_->fences, 8) << "one at each begin and each end";
  EXPECT_EQ(shared_->stops, 1);
  for (const StepReport& report : kept_->reports) {
    EXPECT_EQ(report.boundary, StepBoundary::kDevice);
    EXPECT_EQ(report.late_records, 0);
    EXPECT_EQ(report.executed.total.ToString(), "6000") << "three products of 2000, once";
    EXPECT_DOUBLE_EQ(*report.coverage.time_ratio, 1.0);
    ASSERT_EQ(report.kernels.size(), 2u);
    EXPECT_EQ(report.kernels[0].op_class, OpClass::kMatmul);
    EXPECT_EQ(report.kernels[0].coverage, CoverageKind::kCounted);
    EXPECT_EQ(report.kernels[0].launches, 3);
    EXPECT_EQ(report.kernels[0].time.ns(), 300);
    EXPECT_EQ(report.kernels[1].coverage, CoverageKind::kOutside);
  }
  EXPECT_EQ(kept_->reports[0].closed_by, "fence");
  EXPECT_EQ(kept_->reports[3].closed_by, "exit");
  std::int64_t end_ns = kept_->reports[0].start_ns;
  for (const StepReport& report : kept_->reports) {
    EXPECT_EQ(report.start_ns, end_ns) << "the steps leave nothing out";
    end_ns = report.end_ns;
  }
}

TEST_F(DeviceSessionTest, StateRungAndDevicesAreAnnounced) {
  Open();
  session_->PumpOnce();
  const SessionState& state = kept_->states.back();
  EXPECT_EQ(state.collector, SessionState::Collector::kCounting);
  EXPECT_EQ(state.rung, 4);
  ASSERT_NE(Find("cupti_activity"), nullptr);
  EXPECT_TRUE(Find("cupti_activity")->available);
  EXPECT_EQ(Find("cupti_activity")->reason, "ok");
  ASSERT_EQ(state.devices.size(), 1u);
  EXPECT_EQ(state.devices[0].name, "Fake GPU");
}

TEST_F(DeviceSessionTest, WithoutAnObserverKernelsAreTimedAndNotCounted) {
  Open(false);
  session_->PumpOnce();
  EXPECT_EQ(kept_->states.back().collector, SessionState::Collector::kTimingOnly);
  EXPECT_EQ(kept_->states.back().rung, 2);
  {
    auto step = session_->Step();
    const std::int64_t now = SystemClock::Now();
    FakeDeviceSource::Launch(
        *shared_, {.start_ns = now, .end_ns = now + 50, .kernel = FakeDeviceSource::kGemm});
  }
  session_->Close();
  ASSERT_EQ(kept_->reports.size(), 1u);
  EXPECT_EQ(kept_->reports[0].utilization.hfu_refusal, RefusalReason::kNoEvidence);
  ASSERT_EQ(kept_->reports[0].gaps.size(), 1u);
  EXPECT_EQ(kept_->reports[0].gaps[0].name, "gemm");
}

TEST_F(DeviceSessionTest, AFaultOfTheSourceIsAStateAndOneLineAndTheStepsGoOn) {
  testing::internal::CaptureStderr();
  Open(true, "info");
  RunStep(1, 100);
  FakeDeviceSource::Deliver(*shared_);
  session_->PumpOnce();
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->state = {.kind = DeviceSourceState::Kind::kDisabled,
                      .reason = "finalized_by_another",
                      .text = "another tool ended CUPTI; restart without it"};
  }
  for (int i = 0; i < 5; ++i) {
    auto step = session_->Step();
    session_->PumpOnce();
    session_->PumpOnce();
  }
  session_->Close();
  EXPECT_EQ(kept_->reports.size(), 6u) << "the training and its steps go on";
  EXPECT_EQ(kept_->reports.back().boundary, StepBoundary::kHost);
  ASSERT_NE(Find("cupti_activity"), nullptr);
  EXPECT_FALSE(Find("cupti_activity")->available);
  EXPECT_EQ(Find("cupti_activity")->reason, "finalized_by_another");
  EXPECT_EQ(kept_->states.back().collector, SessionState::Collector::kCounting);
  const std::string log = testing::internal::GetCapturedStderr();
  std::size_t lines = 0;
  for (std::size_t at = log.find("finalized_by_another"); at != std::string::npos;
       at = log.find("finalized_by_another", at + 1)) {
    ++lines;
  }
  EXPECT_EQ(lines, 1u) << log;
}

TEST_F(DeviceSessionTest, ASourceThatCanNeverCountLeavesTheTableWithoutItsCalls) {
  shared_->state = {.kind = DeviceSourceState::Kind::kUnavailable,
                    .reason = "not_built",
                    .text = "this build has no CUPTI headers"};
  Open();
  EXPECT_EQ(session_->HostOps()->push_op, nullptr);
  EXPECT_EQ(session_->HostOps()->pop_op, nullptr);
  session_->PumpOnce();
  EXPECT_EQ(Find("cupti_activity")->reason, "not_built");
  session_->Close();
}

TEST_F(DeviceSessionTest, TheTrainingThreadAllocatesNothingWithADevice) {
  Open();
  RunStep(1, 100);
  const flopledger_host_ops* table = session_->HostOps();
  EXPECT_EQ(AllocationsOf([&] {
              for (int i = 0; i < 500; ++i) {
                auto step = session_->Step();
                table->push_op(table->context, 1, 0);
                table->pop_op(table->context);
              }
            }),
            0);
  session_->Close();
}

// C45: what collecting costs is reported and bounded; the measured time is never corrected for it.
TEST(OverheadBudgetTest, C45OverheadOfTheToolItself) {
  OverheadBudget budget(0.01, 5);
  const DurationNs on(152'834'000);
  const DurationNs off(144'750'000);
  std::optional<double> ratio;
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(ratio);
    ratio = budget.Add(on - off, on);
  }
  ASSERT_TRUE(ratio);
  EXPECT_NEAR(*ratio, 0.05585, 5e-6);
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(budget.Add(on - off, on)) << "said once";
  OverheadBudget within(0.06, 5);
  for (int i = 0; i < 50; ++i) EXPECT_FALSE(within.Add(on - off, on));
}

TEST_F(DeviceSessionTest, C45AboveItsBudgetCollectingStepsDownAndMfuStays) {
  testing::internal::CaptureStderr();
  Open(true, "warning");
  for (int i = 0; i < 60; ++i) {
    const std::int64_t before = SystemClock::Now();
    RunStep(1, 100);
    session_->DeclareWork(Flops::FromInteger(1000), Flops(), 1);
    const std::int64_t after = SystemClock::Now();
    {
      // A third of the step is the library's own.
      const std::lock_guard lock(shared_->mutex);
      shared_->ready.overheads.push_back({.start_ns = before,
                                          .end_ns = before + (after - before) / 3,
                                          .kind = OverheadRecord::Kind::kInstrumentation});
    }
    FakeDeviceSource::Deliver(*shared_);
    session_->PumpOnce();
    session_->PumpOnce();
  }
  session_->Close();
  const std::string log = testing::internal::GetCapturedStderr();
  ASSERT_NE(Find("cupti_activity"), nullptr);
  EXPECT_FALSE(Find("cupti_activity")->available);
  EXPECT_EQ(Find("cupti_activity")->reason, "over_budget");
  EXPECT_EQ(log.find("over_budget"), log.rfind("over_budget")) << "once: " << log;
  EXPECT_NE(log.find("over_budget"), std::string::npos);
  ASSERT_EQ(kept_->reports.size(), 60u);
  for (const StepReport& report : kept_->reports) {
    EXPECT_EQ(report.wall.ns(), report.end_ns - report.start_ns) << "as measured";
    if (report.wall.ns() == 0) continue;
    EXPECT_TRUE(report.utilization.mfu_ratio) << report.step;
  }
}

// C43: the child calls nothing of the device; the parent goes on counting.
TEST_F(DeviceSessionTest, AForkedChildIsInertAndTheParentGoesOn) {
  Open();
  RunStep(2, 100);
  const pid_t child = fork();
  if (child == 0) {
    session_->BeginStep();
    session_->EndStep();
    const flopledger_host_ops* table = session_->HostOps();
    table->push_op(table->context, 1, 0);
    session_->PumpOnce();
    session_->Close();
    _exit(shared_->inert && shared_->calls_after_fork == 0 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_FALSE(shared_->inert);
  RunStep(2, 100);
  session_->Close();
  ASSERT_EQ(kept_->reports.size(), 2u);
  for (const StepReport& report : kept_->reports) {
    EXPECT_EQ(report.executed.total.ToString(), "4000");
    EXPECT_EQ(report.boundary, StepBoundary::kDevice);
  }
}

}  // namespace
}  // namespace flopledger
