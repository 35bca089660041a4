// A recorded export of two processes, one GPU each, against figures that were worked out apart.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "trace_measure.h"

namespace flopledger {
namespace {

class NsysTruthTest : public testing::Test {
 protected:
  void SetUp() override {
    path_ = SharedTrace("N1_h100x2_fsdp_checkpoint_nsys.sqlite");
    if (path_.empty()) GTEST_SKIP() << "the recorded traces are not beside the repository";
  }
  std::string path_;
};

TEST_F(NsysTruthTest, EveryFigureOfBothDevicesIsExact) {
  Result<TraceSources> sources = OpenTrace(path_, ClassifyingOptions());
  ASSERT_TRUE(sources.has_value()) << sources.error().message();
  ASSERT_EQ(sources->size(), 2u);
  struct Truth {
    std::int64_t kernels, span, busy, busy_all, sum, communication, memcpy_sum;
  };
  const std::array truths = {
      Truth{1993, 299'848'812, 270'863'484, 273'817'787, 270'875'926, 17'172'652, 2'844'479},
      Truth{2017, 298'661'551, 264'324'724, 267'275'916, 264'324'724, 8'229'100, 2'847'608}};
  for (int device = 0; device < 2; ++device) {
    const Truth& truth = truths[static_cast<std::size_t>(device)];
    TraceSource& source = *(*sources)[static_cast<std::size_t>(device)];
    const std::map<int, DeviceFigures> figures = FiguresOf(ReadAll(source).kernels);
    ASSERT_EQ(figures.size(), 1u);
    const DeviceFigures& figure = figures.begin()->second;
    EXPECT_EQ(figures.begin()->first, device);
    EXPECT_EQ(figure.kernels, truth.kernels);
    EXPECT_EQ(figure.kernel_span_ns, truth.span);
    EXPECT_EQ(figure.busy_kernels_ns, truth.busy);
    EXPECT_EQ(figure.busy_all_ns, truth.busy_all);
    EXPECT_EQ(figure.kernel_sum_ns, truth.sum);
    EXPECT_EQ(figure.communication_kernels, 33);
    EXPECT_EQ(figure.communication_union_ns, truth.communication);
    EXPECT_EQ(figure.exposed_communication_ns, truth.communication);
    EXPECT_EQ(figure.memcpy_sum_ns, truth.memcpy_sum);
  }
}

// 24 kernels were launched before the window: 12 of each process.
TEST_F(NsysTruthTest, LaunchesAreJoinedWithinTheirProcess) {
  Result<TraceSources> sources = OpenTrace(path_, ClassifyingOptions());
  ASSERT_TRUE(sources.has_value()) << sources.error().message();
  for (const auto& source : *sources) {
    const RecordBatch all = ReadAll(*source);
    std::int64_t unlaunched = 0;
    std::int64_t before = 0;
    for (const KernelRecord& kernel : all.kernels) {
      if (kernel.kind == KernelRecord::Kind::kKernel && !kernel.launch_known) ++unlaunched;
      if (kernel.launch_known && kernel.launch_order > kernel.start_ns) ++before;
    }
    EXPECT_EQ(unlaunched, 12);
    EXPECT_EQ(before, 0) << "work that starts before its launch";
    EXPECT_EQ(source->description().format, "nsys");
    EXPECT_THAT(source->description().name, testing::StartsWith("python3 (pid 14"));
  }
}

// The names speak of activation checkpointing: they are ops of the forward pass, no checkpoint.
TEST_F(NsysTruthTest, CheckpointWrappersAreNoCheckpointSections) {
  Result<TraceSources> sources = OpenTrace(path_, ClassifyingOptions());
  ASSERT_TRUE(sources.has_value()) << sources.error().message();
  const RecordBatch all = ReadAll(*sources->front());
  EXPECT_TRUE(all.markers.empty());
  EXPECT_TRUE(sources->front()->description().steps.empty());
  std::map<std::string, std::int64_t> attention;
  for (const KernelRecord& kernel : all.kernels) {
    EXPECT_EQ(kernel.phase, Phase::kForward);
    if (kernel.op_class != OpClass::kAttention || !kernel.op_known) continue;
    ++attention[sources->front()->signatures().Find(kernel.op)->name];
  }
  EXPECT_EQ(attention.size(), 1u);
  EXPECT_EQ(attention.begin()->first, "flash_attn::_flash_attn_forward");
}

}  // namespace
}  // namespace flopledger
