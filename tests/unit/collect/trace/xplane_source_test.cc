// The rules of the reader on XSpaces of our own, one rule each.
#include "collect/trace/xplane_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "random_batch.h"
#include "trace_measure.h"
#include "xplane_file.h"

namespace flopledger {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

OwnEvent Kernel(const std::string& name, std::int64_t start_ns, std::int64_t duration_ns,
                std::int64_t correlation, const std::string& path = "jit(f)/dot_general") {
  return {.name = name,
          .offset_ps = start_ns * 1000,
          .duration_ps = duration_ns * 1000,
          .stats = {{.name = "correlation_id", .integer = correlation},
                    {.name = "kernel_details",
                     .text = "regs:32 static_shared:16 dynamic_shared:8 grid:2,3,4 block:64,1,1",
                     .by_reference = true},
                    {.name = "tf_op", .text = path}}};
}

OwnEvent Call(std::int64_t start_ns, std::int64_t correlation) {
  return {.name = "cuLaunchKernel",
          .offset_ps = start_ns * 1000,
          .duration_ps = 500'000,
          .stats = {{.name = "correlation_id", .integer = correlation}}};
}

OwnEvent Step(const std::string& name, std::int64_t start_ns, std::int64_t end_ns,
              std::int64_t number) {
  return {.name = name,
          .offset_ps = start_ns * 1000,
          .duration_ps = (end_ns - start_ns) * 1000,
          .stats = {{.name = "step_num", .integer = number}}};
}

std::vector<OwnPlane> TwoStreams() {
  return {{.name = "/device:GPU:1",
           .lines = {{.name = "Stream #14(Compute)",
                      .timestamp_ns = 1000,
                      .events = {Kernel("gemm", 100, 50, 7), Kernel("gemm", 300, 50, 9)}},
                     {.name = "Stream #15(MemcpyD2H)",
                      .timestamp_ns = 1000,
                      .events = {{.name = "MemcpyD2H",
                                  .offset_ps = 120'000,
                                  .duration_ps = 100'000,
                                  .stats = {{.name = "correlation_id", .integer = 8},
                                            {.name = "memcpy_details", .text = "size:4"}}}}},
                     {.name = "XLA Ops",
                      .timestamp_ns = 1000,
                      .events = {Kernel("fusion", 0, 900, 7)}}}},
          {.name = "/host:CPU",
           .lines = {{.name = "python",
                      .timestamp_ns = 1000,
                      .events = {Step("train", 0, 40, 3), Step("train", 40, 80, 4), Call(10, 7),
                                 Call(20, 8), Call(50, 9)}}}}};
}

Result<TraceSources> Open(const std::string& bytes, bool lenient = false) {
  const OwnFile file(".xplane.pb", bytes);
  TraceOptions options = ClassifyingOptions();
  options.lenient = lenient;
  return OpenTrace(file.path(), options);
}

TEST(XPlaneSourceTest, WorkIsInTheOrderOfItsLaunches) {
  const Result<TraceSources> sources = Open(SpaceOf(TwoStreams()));
  ASSERT_TRUE(sources.has_value()) << sources.error().message();
  const TraceSource& source = *sources->front();
  const RecordBatch all = ReadAll(*sources->front());
  ASSERT_EQ(all.kernels.size(), 3u) << "lines that are no streams do not count twice";
  EXPECT_EQ(all.kernels[0].launch_order, 1010);
  EXPECT_EQ(all.kernels[1].launch_order, 1020);
  EXPECT_EQ(all.kernels[2].launch_order, 1050);
  EXPECT_EQ(all.kernels[0].start_ns, 1100);
  EXPECT_EQ(all.kernels[0].end_ns, 1150);
  EXPECT_EQ(all.kernels[0].stream, 14u);
  EXPECT_EQ(all.kernels[0].device, 1);
  EXPECT_EQ(all.kernels[1].kind, KernelRecord::Kind::kMemcpy);
  const KernelSignature& gemm = *source.kernels().Find(all.kernels[0].kernel);
  EXPECT_EQ(gemm.name, "gemm");
  EXPECT_THAT(gemm.grid, ElementsAre(2, 3, 4));
  EXPECT_THAT(gemm.block, ElementsAre(64, 1, 1));
  EXPECT_EQ(gemm.shared_memory_bytes, 24u);
}

TEST(XPlaneSourceTest, StepsAreAnnotationsWithANumber) {
  const Result<TraceSources> sources = Open(SpaceOf(TwoStreams()));
  ASSERT_TRUE(sources.has_value()) << sources.error().message();
  const RecordBatch all = ReadAll(*sources->front());
  const std::vector<TraceStep>& steps = sources->front()->description().steps;
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].number, 3);
  EXPECT_EQ(steps[1].start_ns, 1040);
  EXPECT_EQ(steps[1].end_ns, 1080);
  EXPECT_EQ(all.markers.size(), 4u);
  EXPECT_EQ(all.fences.size(), 4u) << "begins and ends";
}

TEST(XPlaneSourceTest, WithoutAnnotationsTheDevicesLineOfStepsCounts) {
  std::vector<OwnPlane> planes = TwoStreams();
  planes[1].lines[0].events.erase(planes[1].lines[0].events.begin(),
                                  planes[1].lines[0].events.begin() + 2);
  planes[0].lines.push_back({.name = "Steps",
                             .timestamp_ns = 1000,
                             .events = {{.name = "11", .offset_ps = 0, .duration_ps = 1'000'000}}});
  const Result<TraceSources> sources = Open(SpaceOf(planes));
  ASSERT_TRUE(sources.has_value()) << sources.error().message();
  ASSERT_EQ(sources->front()->description().steps.size(), 1u);
  EXPECT_EQ(sources->front()->description().steps[0].number, 11);
  EXPECT_EQ(sources->front()->description().steps[0].end_ns, 2000);
}

// 1100 ns + 500 ps is half way: to the even nanosecond. 1100.5 + 0.3 = 1100.8 is 1101.
TEST(XPlaneSourceTest, PicosecondsAreRoundedAtBothEndsAndCounted) {
  std::vector<OwnPlane> planes = TwoStreams();
  planes[0].lines[0].events[0].offset_ps = 100'500;
  planes[0].lines[0].events[0].duration_ps = 300;
  const Result<TraceSources> sources = Open(SpaceOf(planes));
  ASSERT_TRUE(sources.has_value()) << sources.error().message();
  const RecordBatch all = ReadAll(*sources->front());
  EXPECT_EQ(all.kernels[0].start_ns, 1100);
  EXPECT_EQ(all.kernels[0].end_ns, 1101);
  ASSERT_FALSE(sources->front()->description().warnings.empty());
  EXPECT_EQ(sources->front()->description().warnings[0].kind, "sub_nanosecond");
}

TEST(XPlaneSourceTest, AnUnlaunchedKernelIsKeptAndNamed) {
  std::vector<OwnPlane> planes = TwoStreams();
  planes[1].lines[0].events.pop_back();
  const Result<TraceSources> sources = Open(SpaceOf(planes));
  ASSERT_TRUE(sources.has_value()) << sources.error().message();
  const RecordBatch all = ReadAll(*sources->front());
  ASSERT_EQ(all.kernels.size(), 3u);
  EXPECT_FALSE(all.kernels[2].launch_known);
  ASSERT_EQ(sources->front()->description().gaps.size(), 1u);
  EXPECT_EQ(sources->front()->description().gaps[0].kind, "unlaunched");
  EXPECT_EQ(sources->front()->description().gaps[0].time.ns(), 50);
}

TEST(XPlaneSourceTest, ThePathSaysPhaseAndClass) {
  EXPECT_EQ(PhaseOfJaxPath("jit(f)/jvp(g)/dot_general"), Phase::kForward);
  EXPECT_EQ(PhaseOfJaxPath("jit(f)/transpose(jvp(g))/dot_general"), Phase::kBackward);
  EXPECT_EQ(PhaseOfJaxPath("jit(f)/transpose(jvp(g))/checkpoint/rematted_computation/dot_general"),
            Phase::kRecompute);
  EXPECT_EQ(PhaseOfJaxPath("jit(f)/transpose"), Phase::kForward) << "a transposed matrix";
  EXPECT_EQ(ClassOfJaxPath("jit(f)/dot_general"), OpClass::kMatmul);
  EXPECT_EQ(ClassOfJaxPath(""), OpClass::kUnknown);
}

TEST(XPlaneSourceTest, GzipIsReadAndABombIsRefused) {
  const std::string bytes = SpaceOf(TwoStreams());
  const Result<TraceSources> sources = Open(Gzipped(bytes));
  ASSERT_TRUE(sources.has_value()) << sources.error().message();
  EXPECT_EQ(ReadAll(*sources->front()).kernels.size(), 3u);

  const OwnFile bomb("bomb.pb.gz", Gzipped(bytes + std::string(1 << 20, '\0')));
  TraceOptions options;
  options.max_inflated_bytes = 1 << 16;
  const Result<TraceSources> refused = OpenTrace(bomb.path(), options);
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message(), HasSubstr("more than 65536 bytes"));
  const Result<TraceSources> cut = Open(Gzipped(bytes).substr(0, Gzipped(bytes).size() * 3 / 4));
  ASSERT_FALSE(cut.has_value());
  EXPECT_THAT(cut.error().message(), HasSubstr("ends early"));
}

// Strict names a byte; lenient keeps whole planes and says that it lost the rest.
TEST(XPlaneSourceTest, EveryPrefixIsAnErrorOrSaidToBeCut) {
  const std::string bytes = SpaceOf(TwoStreams());
  std::string host;
  protozero::pbf_writer(host).add_message(1, OwnPlaneWriter(TwoStreams()[1]).Bytes());
  for (std::size_t size = 64; size < bytes.size(); ++size) {
    const Result<TraceSources> strict = Open(bytes.substr(0, size));
    const Result<TraceSources> lenient = Open(bytes.substr(0, size), /*lenient=*/true);
    ASSERT_TRUE(lenient.has_value()) << size << lenient.error().message();
    if (strict.has_value()) {
      // The cut is between two messages: nothing shows it.
      EXPECT_FALSE(lenient->front()->description().cut) << size;
      continue;
    }
    EXPECT_EQ(strict.error().code(), StatusCode::kDataLoss);
    EXPECT_THAT(strict.error().message(), HasSubstr(": byte ")) << size;
    EXPECT_TRUE(lenient->front()->description().cut) << size;
  }
}

TEST(XPlaneSourceTest, ASpaceWithoutDevicesIsAWarning) {
  std::vector<OwnPlane> planes = TwoStreams();
  planes.erase(planes.begin());
  const Result<TraceSources> sources = Open(SpaceOf(planes));
  ASSERT_TRUE(sources.has_value()) << sources.error().message();
  EXPECT_TRUE(ReadAll(*sources->front()).kernels.empty());
  ASSERT_EQ(sources->front()->description().warnings.size(), 1u);
  EXPECT_EQ(sources->front()->description().warnings[0].kind, "no_gpu_events");
}

TEST(XPlaneSourceTest, AnOccurrenceCountIsNoTime) {
  std::vector<OwnPlane> planes = TwoStreams();
  planes[0].lines[0].events.push_back({.name = "gemm", .duration_ps = 5'000'000, .occurrences = 4});
  const Result<TraceSources> sources = Open(SpaceOf(planes));
  ASSERT_TRUE(sources.has_value()) << sources.error().message();
  EXPECT_EQ(ReadAll(*sources->front()).kernels.size(), 3u);
  EXPECT_EQ(sources->front()->description().warnings.at(0).kind, "untimed_event");
}

}  // namespace
}  // namespace flopledger
