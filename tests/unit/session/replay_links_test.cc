// How work, launches, ops and phases of a Kineto trace are joined.
#include <gtest/gtest.h>

#include <string>

#include "fakes/kineto_file.h"
#include "session/replay.h"

namespace flopledger {
namespace {

using fakes::KinetoEvents;
using fakes::TemporaryFile;

ReplayTrace Read(const KinetoEvents& events) {
  const TemporaryFile file(events.Document());
  Result<ReplayResult> result = Replay({file.path()}, {});
  EXPECT_TRUE(result.has_value()) << (result.has_value() ? "" : result.error().message());
  if (!result.has_value() || result->traces.empty()) return {};
  return std::move(result->traces.front());
}

std::int64_t CountOf(const ReplayTrace& trace, const std::string& kind) {
  for (const TraceWarning& warning : trace.description.warnings) {
    if (warning.kind == kind) return warning.count;
  }
  return 0;
}

std::string Mm(int m, int k, int n, const std::string& more = "") {
  return R"("Input Dims": [[)" + std::to_string(m) + ", " + std::to_string(k) + "], [" +
         std::to_string(k) + ", " + std::to_string(n) + R"(]], "Input type": ["float", "float"])" +
         more;
}

TEST(ReplayLinks, AGraphLaunchHasManyKernels) {
  KinetoEvents events;
  events.Step("1", "0", "100").Call("10", "5", "cudaGraphLaunch");
  events.Kernel("a", "20", "1", "5").Kernel("b", "22", "1", "5").Kernel("c", "24", "1", "5");
  const ReplayTrace trace = Read(events);
  EXPECT_EQ(trace.total.steps.front().activity.launched_kernels, 3);
  EXPECT_EQ(trace.total.activity.unlaunched, 0);
  EXPECT_EQ(CountOf(trace, "shared_correlation"), 0);
  EXPECT_EQ(trace.total.activity.without_op, 3);
}

TEST(ReplayLinks, WorkWithoutItsLaunchIsKept) {
  KinetoEvents events;
  events.Step("1", "100", "100").Call("110", "5");
  events.Kernel("before_the_window", "90", "20", "4").Kernel("in_it", "150", "10", "5");
  const ReplayTrace trace = Read(events);
  const DeviceActivity& at = trace.total.activity;
  EXPECT_EQ(at.kernels, 2);
  EXPECT_EQ(at.busy_kernels_ns, 30'000);
  EXPECT_EQ(at.unlaunched, 1);
  EXPECT_EQ(at.unlaunched_ns, 20'000);
  EXPECT_EQ(trace.total.steps.front().activity.launched_kernels, 1);
  EXPECT_EQ(trace.total.steps.front().activity.busy_clipped_ns, 20'000);
  ASSERT_FALSE(trace.description.gaps.empty());
  EXPECT_EQ(trace.description.gaps.front().kind, "unlaunched");
  EXPECT_EQ(trace.description.gaps.front().count, 1);
}

TEST(ReplayLinks, AnOpWithinItselfIsCountedOnce) {
  // As PyTorch records a matmul that writes into a given output: the inner call has it as a third
  // input.
  KinetoEvents events;
  events.Step("1", "0", "100");
  events.Op("aten::mm", "10", "20", Mm(4, 8, 16));
  events.Op(
      "aten::mm", "12", "10",
      R"("Input Dims": [[4, 8], [8, 16], [4, 16]], "Input type": ["float", "float", "float"])");
  events.Call("14", "5").Kernel("gemm", "30", "5", "5");
  const ReplayTrace trace = Read(events);
  EXPECT_EQ(trace.total.flops.all_pairs.count(), 2 * 4 * 8 * 16);
  EXPECT_EQ(trace.total.counted_kernel_time_ns, 5'000);
}

TEST(ReplayLinks, TheInnermostThatCanBeCountedCounts) {
  // `_convolution` says all; the leaf within it has no values of its scalars.
  const std::string dims =
      R"("Input Dims": [[2, 3, 8, 8], [4, 3, 3, 3], [], [], [], [], [], [], []], )"
      R"("Input type": ["float", "float", "", "ScalarList", "ScalarList", "ScalarList", "Scalar", )"
      R"("ScalarList", "Scalar"])";
  KinetoEvents events;
  events.Step("1", "0", "100");
  events.Op("aten::_convolution", "10", "20",
            dims + R"(, "Concrete Inputs": ["", "", "", "[1, 1]", "[1, 1]", "[1, 1]", "False", )"
                   R"("[0, 0]", "1"])");
  events.Op("aten::cudnn_convolution", "12", "10", dims);
  events.Call("14", "5").Kernel("conv", "30", "5", "5");
  const ReplayTrace trace = Read(events);
  EXPECT_EQ(trace.total.flops.all_pairs.count(), 2 * 2 * 64 * (4 * 3 * 3 * 3));
  EXPECT_EQ(trace.total.counted_kernel_time_ns, 5'000);
}

TEST(ReplayLinks, RecomputationByAutogradContext) {
  KinetoEvents events;
  events.Step("1", "0", "1000");
  events.Op("aten::mm", "10", "10", Mm(2, 2, 2, R"(, "Sequence number": 1, "Fwd thread id": 0)"));
  // On the thread of the engine, under a node: a gradient, and the forward op once more.
  const std::string node = "autograd::engine::evaluate_function: MmBackward0";
  events.Op(node, "100", "100", R"("Sequence number": 1, "Fwd thread id": 1)", "8");
  events.Op("MmBackward0", "101", "98", R"("Sequence number": 1, "Fwd thread id": 1)", "8");
  events.Op("aten::linear", "110", "20", R"("Sequence number": 5, "Fwd thread id": 0)", "8");
  events.Op("aten::mm", "112", "10", Mm(2, 2, 4), "8");
  events.Op("aten::mm", "150", "10", Mm(2, 2, 8), "8");
  // A checkpoint that runs the engine within the engine: its gradients are backward again.
  events.Op("CheckpointFunctionBackward", "300", "100", R"("Fwd thread id": 1)", "8");
  events.Op("aten::mm", "310", "10", Mm(2, 2, 16, R"(, "Sequence number": 9)"), "8");
  events.Op(node, "330", "50", R"("Sequence number": 9, "Fwd thread id": 2)", "8");
  events.Op("aten::mm", "340", "10", Mm(2, 2, 32), "8");
  const ReplayFlops flops = Read(events).total.flops;
  EXPECT_EQ(flops.executed.count(), 2 * 4 * (2 + 4 + 8 + 16 + 32));
  EXPECT_EQ(flops.recomputed.count(), 2 * 4 * (4 + 16));
}

// reference/cases.md, C36: overlapping kernels are busy once.
TEST(ReplayCases, C36BusyTimeIsAUnion) {
  KinetoEvents events;
  events.Step("1", "0", "200");
  events.Kernel("a", "0", "100", "1", "7").Kernel("b", "20", "40", "2", "20");
  events.Kernel("c", "80", "60", "3", "7").Kernel("d", "150", "50", "4", "7");
  const DeviceActivity at = Read(events).total.activity;
  EXPECT_EQ(at.busy_kernels_ns, 190'000);
  EXPECT_EQ(at.kernel_time_sum_ns, 250'000);
}

// C40: both ends zero means that there is no timing.
TEST(ReplayCases, C40ZeroTimesAreNoTimes) {
  KinetoEvents events;
  events.Step("1", "1.000", "1.000");
  for (const char* correlation : {"1", "2", "3", "4"}) events.Call("1.1", correlation);
  events.Kernel("k", "1.000", "0.400", "1").Kernel("k", "0", "0", "2");
  events.Kernel("k", "1.500", "0.400", "3").Kernel("k", "0", "0", "4");
  // The first begins 0.1 us before its launch, which clocks may do.
  const ReplayTrace trace = Read(events);
  const DeviceActivity& at = trace.total.activity;
  EXPECT_EQ(at.kernels, 4);
  EXPECT_EQ(at.untimed, 2);
  EXPECT_EQ(at.kernel_time_sum_ns, 800);
  EXPECT_EQ(at.busy_kernels_ns, 800);
  EXPECT_EQ(at.span.end_ns - at.span.start_ns, 900);
  EXPECT_EQ(at.idle_ns, 100);
  EXPECT_EQ(trace.total.steps.front().activity.launched_kernels, 4);
  EXPECT_EQ(CountOf(trace, "untimed"), 2);
}

// C41: a kernel may seem to begin a little before its launch; the correlation id decides.
TEST(ReplayCases, C41TheCorrelationIdDecidesNotTheTime) {
  KinetoEvents events;
  events.Step("1", "0", "1000").Step("2", "1000", "1000");
  events.Call("1001.0", "5").Call("1500.0", "6");
  events.Kernel("a", "999.6", "100.4", "5").Kernel("b", "900.0", "50.0", "6");
  const ReplayTrace trace = Read(events);
  ASSERT_EQ(trace.total.steps.size(), 2U);
  EXPECT_EQ(trace.total.steps[0].activity.launched_kernels, 0);
  const StepActivity& second = trace.total.steps[1].activity;
  EXPECT_EQ(second.launched_kernels, 2);
  EXPECT_EQ(second.launched_kernel_time_sum_ns, 100'400);
  EXPECT_EQ(trace.total.activity.untimed, 1);
  EXPECT_EQ(CountOf(trace, "starts_before_launch"), 1);
}

TEST(ReplayLinks, TwoDevicesAreKeptApart) {
  KinetoEvents events;
  events.Step("1", "0", "100").Call("1", "1").Call("2", "2");
  events.Kernel("a", "10", "20", "1", "7", "0").Kernel("b", "15", "30", "2", "7", "1");
  const ReplayTrace trace = Read(events);
  ASSERT_EQ(trace.devices.size(), 2U);
  EXPECT_EQ(trace.devices[0].activity.busy_all_ns, 20'000);
  EXPECT_EQ(trace.devices[1].activity.busy_all_ns, 30'000);
  EXPECT_EQ(trace.total.activity.busy_all_ns, 50'000);
  EXPECT_EQ(trace.total.activity.span.end_ns - trace.total.activity.span.start_ns, 35'000);
}

}  // namespace
}  // namespace flopledger
