// A recorded XSpace of a JAX program against figures that were worked out apart, in picoseconds.
#include <gtest/gtest.h>

#include "trace_measure.h"

namespace flopledger {
namespace {

constexpr std::int64_t kPsPerNs = 1000;

TEST(XPlaneTruthTest, EveryFigureIsExactToThePicosecond) {
  const std::string path = SharedTrace("X1_jax_attention.xplane.pb");
  if (path.empty()) GTEST_SKIP() << "the recorded traces are not beside the repository";
  Result<TraceSources> sources = OpenTrace(path, ClassifyingOptions());
  ASSERT_TRUE(sources.has_value()) << sources.error().message();
  ASSERT_EQ(sources->size(), 1u);
  TraceSource& source = *sources->front();
  const RecordBatch all = ReadAll(source);
  const std::map<int, DeviceFigures> figures = FiguresOf(all.kernels);
  ASSERT_EQ(figures.size(), 1u) << "seven more devices are listed and did nothing";
  const DeviceFigures& figure = figures.at(0);
  EXPECT_EQ(figure.kernels, 150);
  EXPECT_EQ(figure.kernel_span_ns * kPsPerNs, 12'956'751'000);
  EXPECT_EQ(figure.busy_kernels_ns * kPsPerNs, 12'133'127'000);
  EXPECT_EQ(figure.kernel_sum_ns * kPsPerNs, 12'133'585'000);
  // No time of it had to be rounded, so nanoseconds lose nothing.
  EXPECT_TRUE(source.description().warnings.empty());
  EXPECT_TRUE(source.description().gaps.empty()) << "every launch is on the host's line";
  ASSERT_EQ(source.description().devices.size(), 1u);
  EXPECT_EQ(source.description().devices[0].multiprocessors, 256);
  EXPECT_EQ(source.description().devices[0].memory_bytes, 309'220'868'096);
}

// The program differentiates attention: its paths tell forward from backward.
TEST(XPlaneTruthTest, BackwardWorkIsTheTransposedPart) {
  const std::string path = SharedTrace("X1_jax_attention.xplane.pb");
  if (path.empty()) GTEST_SKIP() << "the recorded traces are not beside the repository";
  Result<TraceSources> sources = OpenTrace(path, ClassifyingOptions());
  ASSERT_TRUE(sources.has_value()) << sources.error().message();
  const TraceSource& source = *sources->front();
  const RecordBatch all = ReadAll(*sources->front());
  std::map<Phase, std::int64_t> attention;
  for (const KernelRecord& kernel : all.kernels) {
    const std::string& name = source.kernels().Find(kernel.kernel)->name;
    if (name.find("FmhaFwdKernel") != std::string::npos) {
      EXPECT_EQ(kernel.phase, Phase::kForward) << name;
      ++attention[Phase::kForward];
    } else if (name.find("FmhaBwd") != std::string::npos) {
      EXPECT_EQ(kernel.phase, Phase::kBackward) << name;
      ++attention[Phase::kBackward];
    }
  }
  EXPECT_EQ(attention[Phase::kForward], 10);
  EXPECT_EQ(attention[Phase::kBackward], 30);
}

}  // namespace
}  // namespace flopledger
