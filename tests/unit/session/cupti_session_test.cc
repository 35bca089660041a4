#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "collect/cupti/cupti_source.h"
#include "fakes/device_run.h"
#include "fakes/fake_cupti/fake_cupti_script.h"
#include "flopledger/session.h"
#include "session/session_parts.h"

// A session from the step API to its reports, with the real CUPTI source on the double of libcupti.

namespace flopledger {
namespace {

using fakes::DeviceRun;
using fakes::MakeDeviceRun;

constexpr std::int64_t kEpochNs = 1'764'000'000'000'000'000;

/// Both clocks of the test: the session's, and the library's, `kEpochNs` ahead of it.
class TestClock final : public Clock {
 public:
  explicit TestClock(std::shared_ptr<std::int64_t> now) : now_(std::move(now)) {}
  std::int64_t MonotonicNs() const noexcept override { return *now_; }
  double UnixSeconds() const noexcept override {
    return static_cast<double>(kEpochNs + *now_) * 1e-9;
  }

 private:
  const std::shared_ptr<std::int64_t> now_;
};

struct KeepingSink final : ReportSink {
  KeepingSink(std::vector<StepReport>* to, std::vector<SessionState>* announced)
      : reports(to), states(announced) {}
  void Publish(const StepReport& report, const RunTotals&) override { reports->push_back(report); }
  void Announce(const SessionState& state) override { states->push_back(state); }
  std::vector<StepReport>* reports;
  std::vector<SessionState>* states;
};

class CuptiSessionTest : public testing::Test {
 protected:
  void SetUp() override {
    fakecupti_reset();
    fakecuda_set_devices(8);
    MoveTo(1'000'000);
  }
  void TearDown() override {
    session_.reset();
    EXPECT_EQ(fakecupti_violations(), 0u);
    fakecupti_reset();
  }

  void MoveTo(std::int64_t now_ns) {
    *now_ = now_ns;
    fakecupti_set_clock(static_cast<std::uint64_t>(kEpochNs + now_ns));
  }
  static std::uint64_t Stamp(std::int64_t session_ns) {
    return static_cast<std::uint64_t>(kEpochNs + session_ns);
  }

  void Open(const std::string& log_level = "off") {
    SessionOptions options;
    options.peaks = {{.device_model = "test",
                      .dtype = DType::kFloat32,
                      .rate = FlopsPerSecond(1e12),
                      .source = "test"}};
    options.warmup_steps = 0;
    options.log_level = log_level;
    options.log_every_steps = 0;
    options.http.enabled = false;
    options.nvtx.enabled = false;
    options.manual_pump = true;
    options.host_ops = false;
    options.sinks.push_back(std::make_unique<KeepingSink>(&reports_, &states_));
    // Kernels of no known class are gaps, and gaps have names: so reports show each kernel.
    auto device = CuptiSource::Create({.flush_interval_ms = 0}, &source_clock_,
                                      [](std::string_view) { return OpClass::kUnknown; });
    ASSERT_TRUE(device.has_value()) << device.error().message();
    SessionParts parts{.clock = std::make_unique<TestClock>(now_), .device = *std::move(device)};
    auto session = std::move(parts).Create(std::move(options));
    ASSERT_TRUE(session.has_value()) << session.error().message();
    session_ = *std::move(session);
  }

  void Play(const DeviceRun& run, std::mt19937_64& random);

  const Capability* Activity() const {
    const auto& capabilities = states_.back().capabilities;
    const auto found =
        std::find_if(capabilities.begin(), capabilities.end(),
                     [](const Capability& each) { return each.name == "cupti_activity"; });
    return found == capabilities.end() ? nullptr : &*found;
  }

  std::shared_ptr<std::int64_t> now_ = std::make_shared<std::int64_t>(0);
  TestClock source_clock_{now_};
  std::vector<StepReport> reports_;
  std::vector<SessionState> states_;
  std::unique_ptr<Session> session_;
};

const char* NameOf(KernelId kernel) {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> made;
    for (int i = 0; i < 64; ++i) made.push_back("kernel_" + std::to_string(i));
    return made;
  }();
  return names[kernel].c_str();
}

struct Event {
  enum class Kind { kBoundary, kLaunch, kArrival };
  std::int64_t at_ns = 0;
  Kind kind = Kind::kBoundary;
  std::size_t index = 0;  // of a marker, of a kernel
};

/// The run as a process lives it: boundaries and launches in their order, records as they arrive.
std::vector<Event> EventsOf(const DeviceRun& run) {
  struct Call {
    LaunchOrder order = 0;
    Event event;
  };
  std::vector<Call> calls;
  for (std::size_t i = 0; i < run.all.markers.size(); ++i) {
    calls.push_back(
        {run.all.fences[i].launch_order, {run.all.markers[i].time_ns, Event::Kind::kBoundary, i}});
  }
  for (std::size_t i = 0; i < run.all.kernels.size(); ++i) {
    calls.push_back({run.all.kernels[i].launch_order, {0, Event::Kind::kLaunch, i}});
  }
  std::stable_sort(calls.begin(), calls.end(),
                   [](const Call& a, const Call& b) { return a.order < b.order; });
  std::vector<Event> events;
  std::int64_t at_ns = 1'000'000;
  for (Call& call : calls) {
    if (call.event.kind == Event::Kind::kBoundary) at_ns = call.event.at_ns;
    call.event.at_ns = at_ns;  // a launch lies somewhere behind the boundary before it
    events.push_back(call.event);
  }
  for (const DeviceRun::Arrival& arrival : run.kernels) {
    events.push_back({arrival.at_ns, Event::Kind::kArrival, arrival.index});
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const Event& a, const Event& b) { return a.at_ns < b.at_ns; });
  return events;
}

void CuptiSessionTest::Play(const DeviceRun& run, std::mt19937_64& random) {
  std::vector<std::uint32_t> correlations(run.all.kernels.size(), 0);
  LaunchOrder last_order = -1;
  std::uint32_t correlation = 0;
  for (const Event& event : EventsOf(run)) {
    MoveTo(event.at_ns);
    switch (event.kind) {
      case Event::Kind::kBoundary: {
        const MarkerRecord& marker = run.all.markers[event.index];
        if (marker.kind == MarkerRecord::Kind::kStepBegin) {
          session_->BeginStep(marker.step);
        } else {
          session_->EndStep();
        }
        break;
      }
      case Event::Kind::kLaunch: {
        const LaunchOrder order = run.all.kernels[event.index].launch_order;
        if (order != last_order) correlation = fakecupti_launch();  // else: a node of its graph
        last_order = order;
        correlations[event.index] = correlation;
        break;
      }
      case Event::Kind::kArrival: {
        const KernelRecord& kernel = run.all.kernels[event.index];
        if (kernel.kind == KernelRecord::Kind::kMemcpy) {
          fakecupti_add_memcpy(Stamp(kernel.start_ns), Stamp(kernel.end_ns), kernel.device,
                               kernel.stream, correlations[event.index], 1, 0);
          break;
        }
        const fakecupti_kernel record{.name = NameOf(kernel.kernel),
                                      .start = Stamp(kernel.start_ns),
                                      .end = Stamp(kernel.end_ns),
                                      .device = kernel.device,
                                      .context = 1,
                                      .stream = kernel.stream,
                                      .correlation = correlations[event.index],
                                      .grid = {1, 1, 1},
                                      .block = {32, 1, 1}};
        fakecupti_add_kernel(&record);
        break;
      }
    }
    if (random() % 32 == 0) {
      fakecupti_set_records_per_buffer(50 + random() % 200);  // 16 of them: none is lost
      session_->PumpOnce();
    }
  }
  MoveTo(run.end_ns);
  session_->Close();
}

/// Launches and time of a step's kernels by name; copies under one name.
std::map<std::string, std::pair<std::int64_t, std::int64_t>> Truth(const fakes::KernelTruth& sums) {
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> truth;
  for (const auto& [key, sum] : sums) {
    const KernelId kernel = std::get<0>(key);
    auto& [launches, time] = truth[kernel % 4 == 3 ? "copies" : NameOf(kernel)];
    launches += sum.first;
    time += sum.second;
  }
  return truth;
}

std::map<std::string, std::pair<std::int64_t, std::int64_t>> Seen(const StepReport& report) {
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> seen;
  for (const CoverageGap& gap : report.gaps) seen[gap.name] = {gap.launches, gap.time.ns()};
  for (const KernelTime& kernel : report.kernels) {
    if (kernel.coverage == CoverageKind::kOutside) {
      seen["copies"] = {kernel.launches, kernel.time.ns()};
    }
  }
  return seen;
}

TEST_F(CuptiSessionTest, EveryKernelOfTenThousandStepsIsInTheReportOfTheStepThatLaunchedIt) {
  std::mt19937_64 random(20261129);
  std::size_t steps = 0;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    SetUp();
    reports_.clear();
    const DeviceRun run = MakeDeviceRun({.steps = 100,
                                         .devices = 1 + static_cast<int>(seed % 3),
                                         .streams = 1 + static_cast<int>(seed % 5),
                                         .threads = 1 + static_cast<int>(seed % 4),
                                         .kernels = 10,
                                         .seed = 5000 + seed});
    Open();
    Play(run, random);
    ASSERT_EQ(reports_.size(), run.sums.size());
    for (std::size_t i = 0; i < reports_.size(); ++i) {
      ASSERT_EQ(Seen(reports_[i]), Truth(run.sums[i]))
          << "seed " << seed << " step " << i << " " << reports_[i].closed_by << " late "
          << reports_[i].late_records;
      ASSERT_EQ(reports_[i].end_ns, run.boundary_ns[i]) << "seed " << seed << " step " << i;
      ASSERT_EQ(reports_[i].boundary, StepBoundary::kDevice);
      ASSERT_EQ(reports_[i].late_records, 0);
      ASSERT_TRUE(reports_[i].losses.empty());
    }
    steps += reports_.size();
    session_.reset();
  }
  EXPECT_EQ(steps, 10'000u);
}

TEST_F(CuptiSessionTest, WhatTheLibraryDropsIsLostInTheBooks) {
  Open();
  for (int i = 0; i < 3; ++i) {
    session_->BeginStep();
    const std::uint32_t launch = fakecupti_launch();
    const fakecupti_kernel record{.name = "gemm",
                                  .start = Stamp(*now_ + 10),
                                  .end = Stamp(*now_ + 100),
                                  .device = 0,
                                  .context = 1,
                                  .stream = 7,
                                  .correlation = launch};
    fakecupti_add_kernel(&record);
    if (i == 1) fakecupti_drop(3);
    MoveTo(*now_ + 1000);
    session_->EndStep();
    session_->PumpOnce();
  }
  session_->Close();
  std::int64_t lost = 0;
  std::int64_t launches = 0;
  double worst = 1.0;
  for (const StepReport& report : reports_) {
    for (const LossRecord& loss : report.losses) lost += loss.count;
    for (const KernelTime& kernel : report.kernels) launches += kernel.launches;
    worst = std::min(worst, report.coverage.launch_ratio.value_or(1.0));
  }
  EXPECT_EQ(lost, 3);
  EXPECT_EQ(launches, 3);
  EXPECT_LT(worst, 1.0);
}

// Faults that the double plays: each ends in a stated state, the steps go on.
TEST_F(CuptiSessionTest, EachRefusalIsACapabilityWithItsReasonAndTheStepsGoOn) {
  for (const int code : {14, 15, 26, 35, 39, 999}) {
    fakecupti_reset();
    reports_.clear();
    states_.clear();
    fakecupti_fail("cuptiActivityEnable", code, -1);
    testing::internal::CaptureStderr();
    Open("warning");
    for (int i = 0; i < 3; ++i) {
      session_->BeginStep();
      MoveTo(*now_ + 1000);
      session_->PumpOnce();
    }
    session_->EndStep();
    session_->Close();
    const std::string log = testing::internal::GetCapturedStderr();
    ASSERT_EQ(reports_.size(), 3u) << code;
    EXPECT_EQ(reports_[0].boundary, StepBoundary::kHost);
    EXPECT_EQ(reports_[0].closed_by, "next_boundary");
    ASSERT_NE(Activity(), nullptr) << code;
    EXPECT_FALSE(Activity()->available) << code;
    EXPECT_FALSE(Activity()->reason.empty());
    EXPECT_LE(std::count(log.begin(), log.end(), '\n'), 2)
        << code << ": one line for CUPTI, one for the missing formula\n"
        << log;
    session_.reset();
  }
}

TEST_F(CuptiSessionTest, AForkInMidCollectionLeavesTheChildInertAndTheParentCounting) {
  Open();
  const auto step = [&] {
    session_->BeginStep();
    const std::uint32_t launch = fakecupti_launch();
    const fakecupti_kernel record{.name = "gemm",
                                  .start = Stamp(*now_ + 10),
                                  .end = Stamp(*now_ + 100),
                                  .device = 0,
                                  .context = 1,
                                  .stream = 7,
                                  .correlation = launch};
    fakecupti_add_kernel(&record);
    MoveTo(*now_ + 1000);
    session_->EndStep();
    session_->PumpOnce();
  };
  step();
  const pid_t child = fork();
  if (child == 0) {
    const std::uint64_t before = fakecupti_calls(nullptr);
    session_->BeginStep();
    session_->EndStep();
    session_->PumpOnce();
    session_->Close();
    _exit(fakecupti_calls(nullptr) == before ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0) << "the child called the library";
  step();
  session_->Close();
  ASSERT_EQ(reports_.size(), 2u);
  for (const StepReport& report : reports_) {
    ASSERT_EQ(report.gaps.size(), 1u);
    EXPECT_EQ(report.gaps[0].name, "gemm");
    EXPECT_EQ(report.boundary, StepBoundary::kDevice);
  }
}

}  // namespace
}  // namespace flopledger
