// A live session with a capture, and the capture through the same stages: report for report, field
// for field the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "export/report_json.h"
#include "fakes/fake_device_source.h"
#include "flopledger/session.h"
#include "session/capture_output.h"
#include "session/replay.h"
#include "session/session_parts.h"

namespace flopledger {
namespace {

struct KeepingSink final : ReportSink {
  explicit KeepingSink(std::vector<StepReport>* to) : kept(to) {}
  void Publish(const StepReport& report, const RunTotals&) override { kept->push_back(report); }
  std::vector<StepReport>* kept;
};

ModelFlops SmallModel() {
  return *ModelFlops::FromTransformer({.layers = 2,
                                       .hidden = 8,
                                       .query_heads = 4,
                                       .key_value_heads = 2,
                                       .head_dim = 2,
                                       .ffn = 12,
                                       .gated_ffn = true,
                                       .vocabulary = 16});
}

// A report as text, every field of it, but for the two that speak of the reading process: when it
// was for people, and what it cost.
std::string Rendered(StepReport report) {
  report.end_unix_seconds = 0;
  report.overhead = DurationNs();
  return StepJson(report, RunIdentity{.run_id = "r"});
}

class Training {
 public:
  Training(Session& session, std::uint64_t seed) : session_(session), state_(seed) {
    ops_ = session.HostOps();
  }

  void Step(int number) {
    if (Next(9) == 0) {
      session_.BeginStep();
      RunOps(2);
      session_.EndStep(/*failed=*/true);
      return;
    }
    auto step = session_.Step();
    for (std::uint64_t micro = 1 + Next(2); micro > 0; --micro) {
      {
        auto data = session_.Section(Phase::kData);
        MaybePump();
      }
      RunOps(1 + Next(20));
      step.Tokens({.useful = 4 * (1 + static_cast<std::int64_t>(Next(3))), .padded = 16});
    }
    if (Next(3) == 0) session_.DeclareWork(Flops::FromInteger(1000), Flops::FromInteger(2000), 4);
    session_.SetValue("loss", 1.0 / (number + 1));
    if (number > 5) session_.SetValue("lr", 0.1);
    MaybePump();
  }

 private:
  std::uint64_t Next(std::uint64_t below) {
    state_ = state_ * 6364136223846793005ULL + 1442695040888963407ULL;
    return (state_ >> 33) % below;
  }
  void MaybePump() {
    for (std::uint64_t pumps = Next(4); pumps > 0; --pumps) session_.PumpOnce();
  }
  void RunOps(std::uint64_t count) {
    for (; count > 0; --count) {
      const auto size = static_cast<std::int64_t>(1 + Next(5));
      const std::int64_t shape[] = {size, 8};
      const std::int64_t other[] = {8, size};
      const auto argument = [](const std::int64_t* integers) {
        return flopledger_op_argument{.kind = static_cast<std::uint8_t>(OpArgument::Kind::kTensor),
                                      .dtype = static_cast<std::uint8_t>(DType::kFloat32),
                                      .reserved = 0,
                                      .integer_count = 2,
                                      .integers = integers,
                                      .real = 0};
      };
      const flopledger_op_argument arguments[] = {argument(shape), argument(other)};
      const char* name = Next(4) == 0 ? "custom::mystery" : "aten::mm";
      flopledger_op_record record{};
      record.signature = ops_->intern(ops_->context, name, arguments, 2);
      record.start_ns = session_clock_.MonotonicNs();
      record.end_ns = record.start_ns + static_cast<std::int64_t>(Next(5000));
      record.self_ns = record.end_ns - record.start_ns;
      record.phase = static_cast<std::uint8_t>(Next(3));
      ops_->write(ops_->context, &record);
    }
  }

  Session& session_;
  const flopledger_host_ops* ops_;
  std::uint64_t state_;
  SystemClock session_clock_;
};

class CaptureRoundTripTest : public testing::TestWithParam<std::uint64_t> {
 protected:
  ~CaptureRoundTripTest() override { std::filesystem::remove(path_); }

  SessionOptions Options() {
    SessionOptions options;
    options.model = SmallModel();
    options.peaks = {{.device_model = "test",
                      .dtype = DType::kFloat32,
                      .rate = FlopsPerSecond(1e12),
                      .source = "test"}};
    options.sequence_length = 4;
    options.warmup_steps = 2;
    options.log_level = "off";
    options.http.enabled = false;
    options.manual_pump = true;
    options.capture_path = path_;
    return options;
  }

  std::vector<StepReport> Replayed(std::optional<ModelFlops> model = SmallModel()) {
    ReplayOptions options;
    options.model = std::move(model);
    Result<ReplayResult> result = Replay({path_}, options);
    EXPECT_TRUE(result.has_value()) << result.error().message();
    if (!result.has_value()) return {};
    EXPECT_EQ(result->traces.size(), 1u);
    description_ = result->traces.at(0).description;
    return result->traces.at(0).reports;
  }

  // Every field that is compared: rendered, and those whose text could be shorter than they are.
  static void ExpectSame(const std::vector<StepReport>& replayed,
                         const std::vector<StepReport>& live) {
    ASSERT_EQ(replayed.size(), live.size());
    for (std::size_t i = 0; i < live.size(); ++i) {
      EXPECT_EQ(Rendered(replayed[i]), Rendered(live[i])) << "report " << i;
      EXPECT_EQ(replayed[i].utilization.mfu_ratio, live[i].utilization.mfu_ratio);
      EXPECT_EQ(replayed[i].utilization.hfu_low_ratio, live[i].utilization.hfu_low_ratio);
      EXPECT_EQ(replayed[i].utilization.hfu_high_ratio, live[i].utilization.hfu_high_ratio);
      EXPECT_EQ(replayed[i].coverage.time_ratio, live[i].coverage.time_ratio);
      EXPECT_EQ(replayed[i].coverage.launch_ratio, live[i].coverage.launch_ratio);
      EXPECT_EQ(replayed[i].closed_by, live[i].closed_by);
      EXPECT_EQ(replayed[i].late_records, live[i].late_records);
    }
  }

  const std::string path_ = (std::filesystem::temp_directory_path() /
                             ("flopledger_round_trip_" + std::to_string(getpid()) + ".flopcap"))
                                .string();
  TraceDescription description_;
};

TEST_P(CaptureRoundTripTest, TheReportsAreTheLiveOnes) {
  std::vector<StepReport> live;
  SessionOptions options = Options();
  options.sinks.push_back(std::make_unique<KeepingSink>(&live));
  auto session = Session::Create(std::move(options));
  ASSERT_TRUE(session.has_value()) << session.error().message();
  Training training(**session, GetParam());
  for (int step = 0; step < 40; ++step) training.Step(step);
  (*session)->Close();

  ExpectSame(Replayed(), live);
  EXPECT_TRUE(description_.warnings.empty());
  EXPECT_GE(live.size(), 40u);
  EXPECT_EQ(description_.steps.size(), live.size());
}
INSTANTIATE_TEST_SUITE_P(Seeds, CaptureRoundTripTest, testing::Values(1, 2, 3));

TEST_F(CaptureRoundTripTest, TheWorkerWritesItToo) {
  std::vector<StepReport> live;
  SessionOptions options = Options();
  options.manual_pump = false;
  options.handle_sigterm = false;
  options.sinks.push_back(std::make_unique<KeepingSink>(&live));
  auto session = Session::Create(std::move(options));
  ASSERT_TRUE(session.has_value()) << session.error().message();
  Training training(**session, 4);
  for (int step = 0; step < 100; ++step) training.Step(step);
  (*session)->Close(DurationNs(60'000'000'000));
  ExpectSame(Replayed(), live);
}

// Without the model, everything but the declared side is there, and the missing model is named.
TEST_F(CaptureRoundTripTest, ACaptureHoldsNoFormulaAndSaysSo) {
  auto session = Session::Create(Options());
  ASSERT_TRUE(session.has_value()) << session.error().message();
  Training training(**session, 6);
  for (int step = 0; step < 10; ++step) training.Step(step);
  (*session)->Close();
  const std::vector<StepReport> replayed = Replayed(std::nullopt);
  ASSERT_GE(replayed.size(), 10u);
  EXPECT_EQ(replayed[0].utilization.mfu_ratio, std::nullopt);
  ASSERT_EQ(description_.warnings.size(), 1u);
  EXPECT_EQ(description_.warnings[0].kind, "settings");
  EXPECT_THAT(description_.warnings[0].text, testing::HasSubstr("give the model again"));
}

// Device work comes late and in its own portions, so that steps close behind their boundaries.
TEST_F(CaptureRoundTripTest, DeviceWorkClosesTheSameSteps) {
  using fakes::FakeDeviceSource;
  std::vector<StepReport> live;
  SessionOptions options = Options();
  options.sinks.push_back(std::make_unique<KeepingSink>(&live));
  const auto shared = std::make_shared<FakeDeviceSource::Shared>();
  shared->pending.fences.reserve(4096);
  shared->ops.reserve(64);
  SessionParts parts{.clock = std::make_unique<SystemClock>(),
                     .device = std::make_unique<FakeDeviceSource>(shared)};
  auto session = std::move(parts).Create(std::move(options));
  ASSERT_TRUE(session.has_value()) << session.error().message();
  Training training(**session, 7);
  const SystemClock clock;
  for (int step = 0; step < 60; ++step) {
    for (int launch = 0; launch < 1 + step % 5; ++launch) {
      const std::int64_t now = clock.MonotonicNs();
      FakeDeviceSource::Launch(*shared, {.start_ns = now,
                                         .end_ns = now + 1000 * launch,
                                         .kernel = static_cast<KernelId>(1 + launch % 3),
                                         .stream = static_cast<std::uint32_t>(launch % 2)});
    }
    training.Step(step);
    if (step % 3 == 0) FakeDeviceSource::Deliver(*shared);
    (*session)->PumpOnce();
  }
  (*session)->Close();
  ExpectSame(Replayed(), live);
  ASSERT_GE(live.size(), 60u);
  EXPECT_TRUE(std::any_of(live.begin(), live.end(), [](const StepReport& report) {
    return report.boundary == StepBoundary::kDevice;
  })) << "the device's work has to have closed steps";
  ASSERT_EQ(description_.devices.size(), 1u);
  EXPECT_EQ(description_.devices[0].name, "Fake GPU");
}

TEST_F(CaptureRoundTripTest, APathThatCannotBeWrittenIsRefusedAtTheStart) {
  SessionOptions options = Options();
  options.capture_path = "/nowhere/run.flopcap";
  const auto session = Session::Create(std::move(options));
  ASSERT_FALSE(session.has_value());
  EXPECT_THAT(session.error().message(), testing::HasSubstr("'/nowhere/run.flopcap'"));
  options = Options();
  options.capture_max_bytes = 5;
  const auto limited = Session::Create(std::move(options));
  ASSERT_FALSE(limited.has_value());
  EXPECT_THAT(limited.error().message(), testing::HasSubstr("capture_max_bytes is 5; accepted"));
}

TEST_F(CaptureRoundTripTest, AFullCaptureIsACapabilityAndTrainingGoesOn) {
  std::vector<StepReport> live;
  SessionOptions options = Options();
  options.capture_max_bytes = 64 << 10;
  options.sinks.push_back(std::make_unique<KeepingSink>(&live));
  auto session = Session::Create(std::move(options));
  ASSERT_TRUE(session.has_value()) << session.error().message();
  Training training(**session, 5);
  for (int step = 0; step < 4000; ++step) training.Step(step);
  (*session)->Close();
  EXPECT_GE(live.size(), 4000u);
  EXPECT_LE(std::filesystem::file_size(path_), 64u << 10);
  const std::vector<Capability> capabilities = (*session)->State().capabilities;
  EXPECT_THAT(capabilities,
              testing::Contains(testing::AllOf(testing::Field(&Capability::name, "capture"),
                                               testing::Field(&Capability::available, false),
                                               testing::Field(&Capability::reason, "full"))));
}

TEST(CapturePathTest, RanksWriteApart) {
  EXPECT_EQ(CapturePathOf("a.b/run.flopcap", {.rank = 3, .world_size = 8}),
            "a.b/run.rank3.flopcap");
  EXPECT_EQ(CapturePathOf("a.b/run", {.rank = 3, .world_size = 8}), "a.b/run.rank3");
  EXPECT_EQ(CapturePathOf(".hidden", {.rank = 0, .world_size = 2}), ".hidden.rank0");
  EXPECT_EQ(CapturePathOf("run.flopcap", {.rank = 0, .world_size = 1}), "run.flopcap");
}

}  // namespace
}  // namespace flopledger
