// What the training thread calls must not allocate: one allocation may cost more than everything
// else together, and may wait for a lock that another thread holds.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "fakes/allocation_counter.h"
#include "flopledger/session.h"

namespace flopledger {
namespace {

using testing_support::AllocationsOf;

std::unique_ptr<Session> Start() {
  SessionOptions options;
  options.log_level = "off";
  options.log_every_steps = 0;
  options.http.enabled = false;
  options.sequence_length = 128;
  options.handle_sigterm = false;
  return *Session::Create(std::move(options));
}

void RunStep(Session& session, const flopledger_host_ops* ops, std::uint32_t signature,
             std::span<const std::int64_t> lengths) {
  auto step = session.Step();
  {
    auto section = session.Section(Phase::kData);
  }
  for (int i = 0; i < 100; ++i) {
    const std::int64_t now = SystemClock::Now();
    const flopledger_op_record record{
        .start_ns = now, .end_ns = now + 10, .self_ns = 10, .signature = signature};
    ops->write(ops->context, &record);
  }
  ops->aborted(ops->context, SystemClock::Now());
  step.Tokens({.useful = 1024});
  step.Tokens({.useful = 900, .padded = 1024});
  step.Tokens({.padded = 512, .lengths = lengths});
  session.DeclareWork(Flops::FromInteger(5), Flops::FromInteger(10), 1);
  session.RefuseDeclaration();
}

TEST(HotPathTest, TheTrainingThreadAllocatesNothing) {
  auto session = Start();
  const flopledger_host_ops* ops = session->HostOps();
  const std::int64_t shape[2] = {8, 8};
  const flopledger_op_argument tensor{.kind = 1, .dtype = 1, .integer_count = 2, .integers = shape};
  const std::uint32_t signature = ops->intern(ops->context, "aten::mm", &tensor, 1);
  const std::vector<std::int64_t> lengths = {100, 28, 64, 128};
  RunStep(*session, ops, signature, lengths);  // the thread's first call makes its rings
  EXPECT_EQ(AllocationsOf([&] {
              for (int i = 0; i < 50; ++i) RunStep(*session, ops, signature, lengths);
            }),
            0);
  session->Close();
}

TEST(HotPathTest, FullRingsAndAClosedSessionAllocateNothingEither) {
  auto session = Start();
  const flopledger_host_ops* ops = session->HostOps();
  session->BeginStep();
  const flopledger_op_record record{};
  ops->write(ops->context, &record);
  EXPECT_EQ(AllocationsOf([&] {
              for (int i = 0; i < 200'000; ++i) ops->write(ops->context, &record);
              for (int i = 0; i < 20'000; ++i) session->BeginStep();
            }),
            0);
  session->Close();
  EXPECT_EQ(AllocationsOf([&] {
              ops->write(ops->context, &record);
              session->BeginStep();
              session->Tokens({.useful = 1});
              session->EndStep();
            }),
            0);
}

TEST(HotPathTest, TheCounterCounts) {
  static int* volatile kept = nullptr;  // or the compiler leaves the pair out
  EXPECT_EQ(AllocationsOf([] {
              kept = new int(1);
              delete kept;
            }),
            1);
}

}  // namespace
}  // namespace flopledger
