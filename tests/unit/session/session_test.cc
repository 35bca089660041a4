#include "flopledger/session.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "session/engine.h"

namespace flopledger {
namespace {

using testing::HasSubstr;

/// Keeps what it was given; throws when told to.
struct RecordingSink final : ReportSink {
  struct Kept {
    std::vector<StepReport> reports;
    RunTotals totals;
    int finished = 0;
    int calls = 0;
    std::vector<SessionState> states;
  };
  explicit RecordingSink(std::shared_ptr<Kept> to, int at = -1)
      : kept(std::move(to)), throw_at(at) {}
  void Announce(const SessionState& state) override { kept->states.push_back(state); }
  void Publish(const StepReport& report, const RunTotals& totals) override {
    if (kept->calls++ == throw_at) throw std::runtime_error("disk on fire");
    kept->reports.push_back(report);
    kept->totals = totals;
  }
  void Finish(const RunTotals& totals) override {
    ++kept->finished;
    kept->totals = totals;
  }
  std::shared_ptr<Kept> kept;
  int throw_at;
};

ModelFlops SmallModel() {
  // C07: 9344 FLOPs forward for one sequence of 4 tokens.
  return *ModelFlops::FromTransformer({.layers = 2,
                                       .hidden = 8,
                                       .query_heads = 4,
                                       .key_value_heads = 2,
                                       .head_dim = 2,
                                       .ffn = 12,
                                       .gated_ffn = true,
                                       .vocabulary = 16});
}

SessionOptions Options(std::shared_ptr<RecordingSink::Kept> kept, int throw_at = -1) {
  SessionOptions options;
  options.model = SmallModel();
  options.peaks = {{.device_model = "test",
                    .dtype = DType::kFloat32,
                    .rate = FlopsPerSecond(1e12),
                    .source = "test"}};
  options.sequence_length = 4;
  options.warmup_steps = 0;
  options.log_level = "off";
  options.log_every_steps = 0;
  options.http.enabled = false;
  options.manual_pump = true;
  if (kept) options.sinks.push_back(std::make_unique<RecordingSink>(std::move(kept), throw_at));
  return options;
}

std::unique_ptr<Session> Start(SessionOptions options) {
  Result<std::unique_ptr<Session>> session = Session::Create(std::move(options));
  EXPECT_TRUE(session.has_value()) << (session ? "" : session.error().message());
  return session ? *std::move(session) : nullptr;
}

std::uint32_t InternMatmul(const flopledger_host_ops* ops, std::int64_t size) {
  const std::int64_t shape[2] = {size, size};
  const flopledger_op_argument tensor{.kind = 1, .dtype = 1, .integer_count = 2, .integers = shape};
  const flopledger_op_argument both[2] = {tensor, tensor};
  return ops->intern(ops->context, "aten::mm", both, 2);
}

void RunOp(const flopledger_host_ops* ops, std::uint32_t signature, Phase phase) {
  const std::int64_t start = SystemClock::Now();
  while (SystemClock::Now() - start < 1000) {
  }
  const std::int64_t end = SystemClock::Now();
  const flopledger_op_record record{.start_ns = start,
                                    .end_ns = end,
                                    .self_ns = end - start,
                                    .signature = signature,
                                    .phase = static_cast<std::uint8_t>(phase)};
  ops->write(ops->context, &record);
}

TEST(SessionTest, AStepGoesThroughAllStagesToTheSink) {
  auto kept = std::make_shared<RecordingSink::Kept>();
  auto session = Start(Options(kept));
  const flopledger_host_ops* ops = session->HostOps();
  const std::uint32_t mm = InternMatmul(ops, 10);
  {
    auto step = session->Step(7);
    RunOp(ops, mm, Phase::kForward);
    RunOp(ops, mm, Phase::kRecompute);
    session->SetValue("loss", 2.5);
    step.Tokens({.useful = 8});
  }
  session->BeginStep();
  session->PumpOnce();
  EXPECT_TRUE(kept->reports.empty()) << "the boundary was seen only now";
  session->PumpOnce();
  ASSERT_EQ(kept->reports.size(), 1u);
  const StepReport& report = kept->reports[0];
  EXPECT_EQ(report.step, 7);
  EXPECT_EQ(report.tokens.useful, 8);
  EXPECT_EQ(report.declared->useful_forward.ToString(), std::to_string(2 * 9344));
  EXPECT_EQ(report.declared->useful().ToString(), std::to_string(2 * 28032));
  EXPECT_EQ(report.executed.total.ToString(), "4000") << "two products of 10 x 10";
  EXPECT_EQ(report.executed.recomputed.ToString(), "2000");
  ASSERT_EQ(report.values.size(), 1u);
  EXPECT_EQ(report.values[0].name, "loss");
  EXPECT_EQ(report.values[0].value, 2.5);
  EXPECT_EQ(session->LastReport()->step, 7);
  EXPECT_FALSE(session->LastValues().empty());
  EXPECT_GT(report.end_unix_seconds, 1.7e9);
  session->Close();
  EXPECT_EQ(kept->finished, 1);
  ASSERT_EQ(kept->reports.size(), 2u);
  EXPECT_EQ(kept->reports[1].step, 8) << "numbers go on from the given one";
  EXPECT_EQ(kept->reports[1].result, StepResult::kIncomplete) << "it was still running";
  EXPECT_TRUE(kept->states.back().run_finished);
  session->Close();
  EXPECT_EQ(kept->finished, 1) << "twice is once";
}

TEST(SessionTest, PaddingAndLengthsReachTheFormula) {
  auto kept = std::make_shared<RecordingSink::Kept>();
  auto session = Start(Options(kept));
  const std::vector<std::int64_t> lengths = {4, 2};
  session->BeginStep();
  session->Tokens({.useful = 6, .padded = 8, .lengths = lengths});  // two rows of 4
  session->EndStep();
  session->BeginStep();
  session->Tokens({.useful = 6, .padded = 8});  // 3 + 3, assumed
  session->EndStep();
  session->BeginStep();
  const std::vector<std::int64_t> pack = {2, 2, 4};
  session->Tokens({.useful = 8, .lengths = pack});
  session->EndStep();
  session->Close();
  ASSERT_EQ(kept->reports.size(), 3u);
  const auto expected = [](std::vector<SequenceGroup> sequences) {
    const DeclaredWork work = *SmallModel().Evaluate({.sequences = std::move(sequences)});
    return work.forward + work.backward;
  };
  const StepReport& known = kept->reports[0];
  EXPECT_EQ(known.declared->useful(), expected({{4, 1}, {2, 1}}));
  EXPECT_EQ(known.declared->useful() + known.declared->padding, expected({{4, 2}}));
  EXPECT_FALSE(known.tokens.even_split);
  const StepReport& assumed = kept->reports[1];
  EXPECT_EQ(assumed.declared->useful(), expected({{3, 2}}));
  EXPECT_TRUE(assumed.tokens.even_split);
  ASSERT_FALSE(assumed.findings.empty());
  EXPECT_EQ(assumed.findings.back().id, "token_lengths_assumed");
  const StepReport& packed = kept->reports[2];
  EXPECT_EQ(packed.declared->useful(), expected({{2, 2}, {4, 1}}));
  EXPECT_EQ(packed.declared->padding.ToString(), "0");
}

TEST(SessionTest, ImpossibleTokensRefuseTheStepAndOnlyTheStep) {
  const std::vector<std::int64_t> negative = {4, -2};
  const std::vector<std::int64_t> two = {4, 4};
  const std::vector<TokenDeclaration> wrong = {{.useful = -1},
                                               {.useful = 9, .padded = 8},
                                               {.useful = 4, .padded = -8},
                                               {.useful = 2, .lengths = negative},
                                               {.useful = 7, .lengths = two},
                                               {.sequence_length = 3, .lengths = two}};
  for (const TokenDeclaration& tokens : wrong) {
    auto kept = std::make_shared<RecordingSink::Kept>();
    auto session = Start(Options(kept));
    session->BeginStep();
    session->Tokens(tokens);
    session->EndStep();
    session->BeginStep();
    session->Tokens({.useful = 4});
    session->EndStep();
    session->Close();
    ASSERT_EQ(kept->reports.size(), 2u);
    EXPECT_EQ(kept->reports[0].utilization.mfu_refusal, RefusalReason::kDeclarationLost);
    EXPECT_FALSE(kept->reports[0].utilization.mfu_ratio.has_value());
    EXPECT_TRUE(kept->reports[1].utilization.mfu_ratio.has_value());
  }
}

TEST(SessionTest, AttentionWithoutALengthIsRefusedNotGuessed) {
  auto kept = std::make_shared<RecordingSink::Kept>();
  SessionOptions options = Options(kept);
  options.sequence_length = 0;
  auto session = Start(std::move(options));
  session->BeginStep();
  session->Tokens({.useful = 8});
  session->EndStep();
  session->BeginStep();
  session->Tokens({.useful = 8, .sequence_length = 4});
  session->EndStep();
  session->Close();
  ASSERT_EQ(kept->reports.size(), 2u);
  EXPECT_EQ(kept->reports[0].utilization.mfu_refusal, RefusalReason::kNoSequenceLength);
  EXPECT_EQ(kept->reports[0].tokens.useful, 8);
  EXPECT_TRUE(kept->reports[1].utilization.mfu_ratio.has_value());
}

TEST(SessionTest, AnExceptionMakesTheStepIncompleteAndGoesOnUnchanged) {
  auto kept = std::make_shared<RecordingSink::Kept>();
  auto session = Start(Options(kept));
  try {
    auto step = session->Step();
    step.Tokens({.useful = 4});
    throw std::out_of_range("the user's own");
  } catch (const std::out_of_range& error) {
    EXPECT_STREQ(error.what(), "the user's own");
  }
  {
    auto step = session->Step();
  }
  session->Close();
  ASSERT_EQ(kept->reports.size(), 2u);
  EXPECT_EQ(kept->reports[0].result, StepResult::kIncomplete);
  EXPECT_EQ(kept->reports[0].closed_by, "exception");
  EXPECT_EQ(kept->reports[1].result, StepResult::kComplete);
  EXPECT_EQ(kept->totals.excluded.at("incomplete"), kept->reports[0].wall);
  EXPECT_EQ(kept->totals.useful_forward.ToString(), "0");
}

TEST(SessionTest, WarmupStaysOutOfTheCounters) {
  auto kept = std::make_shared<RecordingSink::Kept>();
  SessionOptions options = Options(kept);
  options.warmup_steps = 2;
  auto session = Start(std::move(options));
  for (int i = 0; i < 3; ++i) {
    auto step = session->Step();
    step.Tokens({.useful = 4});
  }
  session->Close();
  ASSERT_EQ(kept->reports.size(), 3u);
  EXPECT_EQ(kept->reports[0].result, StepResult::kWarmup);
  EXPECT_EQ(kept->reports[1].result, StepResult::kWarmup);
  EXPECT_EQ(kept->reports[2].result, StepResult::kComplete);
  EXPECT_EQ(kept->totals.useful_forward.ToString(), "9344");
  EXPECT_EQ(kept->totals.wall, kept->reports[2].wall);
}

TEST(SessionTest, ASinkThatThrowsIsLeftOutAndSaidInTheState) {
  auto broken = std::make_shared<RecordingSink::Kept>();
  auto healthy = std::make_shared<RecordingSink::Kept>();
  SessionOptions options = Options(broken, 1);
  options.sinks.push_back(std::make_unique<RecordingSink>(healthy));
  auto session = Start(std::move(options));
  for (int i = 0; i < 5; ++i) {
    auto step = session->Step();
  }
  session->Close();
  EXPECT_EQ(broken->calls, 2) << "not called again";
  EXPECT_EQ(healthy->reports.size(), 5u);
  bool said = false;
  for (const Capability& capability : session->State().capabilities) {
    said = said || (capability.name == "sink_0" && capability.reason == "sink_threw");
  }
  EXPECT_TRUE(said);
}

TEST(SessionTest, WithoutAnObserverTheStateSaysSo) {
  auto session = Start(Options(nullptr));
  EXPECT_EQ(session->State().collector, SessionState::Collector::kCounting);
  session->SetCapability("host_ops", false, "torch_not_imported");
  EXPECT_EQ(session->State().collector, SessionState::Collector::kStepsOnly);
  session->SetCapability("host_ops", true, "native");
  EXPECT_EQ(session->State().collector, SessionState::Collector::kCounting);
}

TEST(SessionTest, ValuesAreBoundedByNames) {
  auto kept = std::make_shared<RecordingSink::Kept>();
  auto session = Start(Options(kept));
  session->BeginStep();
  for (int i = 0; i < 40; ++i) session->SetValue("v" + std::to_string(i), i);
  session->SetValue("v3", 33);
  session->EndStep();
  session->Close();
  ASSERT_EQ(kept->reports.size(), 1u);
  EXPECT_EQ(kept->reports[0].values.size(), 16u);
  EXPECT_EQ(kept->reports[0].values[3].value, 33) << "the last one counts";
}

TEST(SessionTest, WrongOptionsAreRefusedByNameAndValue) {
  const auto message = [](void (*change)(SessionOptions&)) {
    SessionOptions options = Options(nullptr);
    change(options);
    auto session = Session::Create(std::move(options));
    return session ? std::string("accepted") : session.error().message();
  };
  EXPECT_THAT(message([](SessionOptions& o) { o.warmup_steps = -1; }),
              HasSubstr("warmup_steps is -1; accepted: 0"));
  EXPECT_THAT(message([](SessionOptions& o) { o.window_steps = 0; }),
              HasSubstr("window_steps is 0"));
  EXPECT_THAT(message([](SessionOptions& o) { o.http.base_port = 70000; }),
              HasSubstr("http.base_port is 70000; accepted: 0 to 65535"));
  EXPECT_THAT(message([](SessionOptions& o) { o.log_level = "loud"; }),
              HasSubstr("log_level is 'loud'; accepted: debug"));
  // C05: a slip of units is refused when the configuration is loaded.
  EXPECT_THAT(message([](SessionOptions& o) { o.peaks[0].rate = FlopsPerSecond(312); }),
              HasSubstr("is 312 FLOP/s; accepted: 1e9 to 1e17"));
  EXPECT_THAT(message([](SessionOptions& o) { o.peaks[0].rate = FlopsPerSecond(3.12e17); }),
              HasSubstr("accepted: 1e9 to 1e17"));
  EXPECT_THAT(message([](SessionOptions& o) { o.peaks[0].source.clear(); }),
              HasSubstr("no source"));
  EXPECT_THAT(message([](SessionOptions& o) { o.jsonl_path = "/no/such/folder/x.jsonl"; }),
              HasSubstr("/no/such/folder/x.jsonl"));
  EXPECT_THAT(message([](SessionOptions& o) {
                o.http.enabled = true;
                o.http.address = "0.0.0.0";
              }),
              HasSubstr("0.0.0.0"));
}

TEST(SessionTest, TheWorkerClosesStepsByItself) {
  auto kept = std::make_shared<RecordingSink::Kept>();
  SessionOptions options = Options(kept);
  options.manual_pump = false;
  options.handle_sigterm = false;
  auto session = Start(std::move(options));
  const flopledger_host_ops* ops = session->HostOps();
  const std::uint32_t mm = InternMatmul(ops, 10);
  std::vector<std::thread> others;
  constexpr int kSteps = 50;
  for (int i = 0; i < kSteps; ++i) {
    auto step = session->Step();
    std::thread worker([&] { RunOp(ops, mm, Phase::kBackward); });
    RunOp(ops, mm, Phase::kForward);
    worker.join();
    step.Tokens({.useful = 4});
  }
  session->Close();
  ASSERT_EQ(kept->reports.size(), static_cast<std::size_t>(kSteps));
  Flops executed;
  for (const StepReport& report : kept->reports) executed += report.executed.total;
  EXPECT_EQ(executed.ToString(), std::to_string(kSteps * 2 * 2000));
  EXPECT_EQ(kept->totals.late_records, 0);
  EXPECT_EQ(kept->totals.steps[0], kSteps);
}

}  // namespace
}  // namespace flopledger
