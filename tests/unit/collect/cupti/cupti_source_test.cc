// What a healthy library delivers: kernels, copies, fills, fences, ops, devices, in any order.

#include <cupti.h>

#include "unit/collect/cupti/cupti_fixture.h"

namespace flopledger {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;
using Kind = DeviceSourceState::Kind;

class CuptiSourceTest : public CuptiFixture {};

TEST_F(CuptiSourceTest, CountsWithTheKindsOfTheDesign) {
  CuptiSource& source = Start();
  EXPECT_EQ(source.state().kind, Kind::kCounting);
  EXPECT_EQ(source.state().reason, "ok");
  for (int kind : {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                   CUPTI_ACTIVITY_KIND_MEMSET, CUPTI_ACTIVITY_KIND_OVERHEAD,
                   CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION}) {
    EXPECT_TRUE(fakecupti_kind_enabled(kind)) << kind;
  }
  EXPECT_FALSE(fakecupti_kind_enabled(CUPTI_ACTIVITY_KIND_KERNEL));  // serializes kernels
  EXPECT_FALSE(fakecupti_kind_enabled(CUPTI_ACTIVITY_KIND_DRIVER));
  EXPECT_EQ(fakecupti_calls("cuptiActivityRegisterTimestampCallback"), 0u);
}

TEST_F(CuptiSourceTest, ReportsAKernelOnTheSessionsClock) {
  Start();
  Advance(5000);
  const std::uint32_t correlation = Launch();
  const std::int64_t start = now_ns();
  Advance(kSecond);
  const RecordBatch batch = Drain();
  ASSERT_THAT(batch.kernels, SizeIs(1));
  const KernelRecord& kernel = batch.kernels[0];
  EXPECT_EQ(kernel.start_ns, start);
  EXPECT_EQ(kernel.end_ns, start + 1000);
  EXPECT_TRUE(kernel.launch_known);
  EXPECT_EQ(kernel.launch_order, correlation);
  EXPECT_EQ(kernel.stream, 7u);
  EXPECT_EQ(kernel.device, 0);
  EXPECT_EQ(kernel.kind, KernelRecord::Kind::kKernel);
  EXPECT_EQ(kernel.op_class, OpClass::kMatmul);
  EXPECT_FALSE(kernel.op_known);
  const KernelSignature* signature = source_->kernels().Find(kernel.kernel);
  ASSERT_NE(signature, nullptr);
  EXPECT_EQ(
      *signature,
      (KernelSignature{
          .name = "gemm", .grid = {2, 3, 4}, .block = {128, 1, 1}, .shared_memory_bytes = 1024}));
  EXPECT_TRUE(batch.losses.empty());
}

TEST_F(CuptiSourceTest, ReportsCopiesAndFills) {
  Start();
  const std::uint64_t start = Stamp(now_ns());
  fakecupti_add_memcpy(start, start + 10, 0, 3, 11, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, 0);
  fakecupti_add_memcpy(start, start + 20, 1, 4, 12, CUPTI_ACTIVITY_MEMCPY_KIND_PTOP, 1);
  fakecupti_add_memset(start, start + 30, 0, 5, 13);
  const RecordBatch batch = Drain();
  ASSERT_THAT(batch.kernels, SizeIs(3));
  const char* const names[] = {"memcpy HtoD", "memcpy PtoP", "memset"};
  for (std::size_t i = 0; i < 3; ++i) {
    const KernelRecord& copy = batch.kernels[i];
    EXPECT_EQ(source_->kernels().Find(copy.kernel)->name, names[i]);
    EXPECT_EQ(copy.op_class, OpClass::kCopy);
    EXPECT_EQ(copy.end_ns - copy.start_ns, 10 * static_cast<std::int64_t>(i + 1));
    EXPECT_EQ(copy.launch_order, 11 + static_cast<std::int64_t>(i));
    EXPECT_EQ(copy.stream, 3 + i);
  }
  EXPECT_EQ(batch.kernels[0].kind, KernelRecord::Kind::kMemcpy);
  EXPECT_EQ(batch.kernels[1].kind, KernelRecord::Kind::kMemcpy);
  EXPECT_EQ(batch.kernels[2].kind, KernelRecord::Kind::kMemset);
  EXPECT_EQ(batch.kernels[1].device, 1);
}

TEST_F(CuptiSourceTest, FencePutsABoundaryIntoTheOrderOfLaunches) {
  CuptiSource& source = Start();
  const std::uint32_t before = Launch();
  const std::int64_t boundary = now_ns() + 123;
  source.Fence(boundary);
  const std::uint32_t after = Launch();
  Advance(kSecond);
  const RecordBatch batch = Drain();
  ASSERT_THAT(batch.fences, SizeIs(1));
  EXPECT_EQ(batch.fences[0].boundary_ns, boundary);
  EXPECT_GT(batch.fences[0].launch_order, before);
  EXPECT_LT(batch.fences[0].launch_order, after);
  EXPECT_EQ(fakecupti_depth(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2), 0);
  EXPECT_EQ(source.counts().fences_set, 1);
  EXPECT_EQ(source.counts().fences_seen, 1);
}

TEST_F(CuptiSourceTest, FenceTracesOneCallAndNoLaunch) {
  CuptiSource& source = Start();
  Launch();
  Launch();
  source.Fence(now_ns());
  Drain();
  // The fence's external id and the call it stands before; a launch is not traced.
  EXPECT_EQ(source.counts().records, 2 + 2);
}

TEST_F(CuptiSourceTest, CorrelationIdsGoOnWhereThirtyTwoBitsEnd) {
  CuptiSource& source = Start();
  fakecupti_set_next_correlation(0xFFFFFFFE);
  Launch();
  Launch();
  source.Fence(now_ns());  // the id after 2^32 - 1: 0
  Launch();
  const RecordBatch batch = Drain();
  ASSERT_THAT(batch.kernels, SizeIs(3));
  constexpr std::int64_t kEnd = std::int64_t{1} << 32;
  EXPECT_EQ(batch.kernels[0].launch_order, kEnd - 2);
  EXPECT_EQ(batch.kernels[1].launch_order, kEnd - 1);
  ASSERT_THAT(batch.fences, SizeIs(1));
  EXPECT_EQ(batch.fences[0].launch_order, kEnd);
  EXPECT_EQ(batch.kernels[2].launch_order, kEnd + 1);
}

TEST_F(CuptiSourceTest, AGraphIsManyKernelsOnOneLaunch) {
  Start();
  const std::uint32_t launch = fakecupti_graph_launch();
  for (std::uint64_t node = 1; node <= 5; ++node) {
    fakecupti_kernel kernel = Kernel(launch);
    kernel.graph_node = node;
    kernel.graph = 9;
    fakecupti_add_kernel(&kernel);
  }
  const RecordBatch batch = Drain();
  ASSERT_THAT(batch.kernels, SizeIs(5));
  for (const KernelRecord& kernel : batch.kernels) EXPECT_EQ(kernel.launch_order, launch);
  EXPECT_EQ(source_->counts().graph_kernels, 5);
}

TEST_F(CuptiSourceTest, WorkThatTheDeviceLaunchedHasNoKnownLaunch) {
  Start();
  fakecupti_kernel kernel = Kernel(0);
  kernel.launched_by_device = 1;
  kernel.graph_node = 1;
  fakecupti_add_kernel(&kernel);
  const RecordBatch batch = Drain();
  ASSERT_THAT(batch.kernels, SizeIs(1));
  EXPECT_FALSE(batch.kernels[0].launch_known);
}

TEST_F(CuptiSourceTest, KernelsCarryTheOpThatLaunchedThem) {
  CuptiOptions options = Manual();
  options.link_ops = true;
  CuptiSource& source = Start(options);
  Launch();
  source.PushOp(41, Phase::kForward);
  source.PushOp(42, Phase::kRecompute);
  Launch();
  source.Fence(now_ns());  // inside an op: does not disturb it
  source.PopOp();
  Launch();
  source.PopOp();
  Launch();
  const RecordBatch batch = Drain();
  ASSERT_THAT(batch.kernels, SizeIs(4));
  EXPECT_FALSE(batch.kernels[0].op_known);
  EXPECT_TRUE(batch.kernels[1].op_known);
  EXPECT_EQ(batch.kernels[1].op, 42u);
  EXPECT_EQ(batch.kernels[1].phase, Phase::kRecompute);
  EXPECT_TRUE(batch.kernels[2].op_known);
  EXPECT_EQ(batch.kernels[2].op, 41u);
  EXPECT_EQ(batch.kernels[2].phase, Phase::kForward);
  EXPECT_FALSE(batch.kernels[3].op_known);
  EXPECT_THAT(batch.fences, SizeIs(1));
  EXPECT_EQ(fakecupti_depth(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2), 0);
}

TEST_F(CuptiSourceTest, AnOpBehindItsKernelStillCounts) {
  CuptiOptions options = Manual();
  options.link_ops = true;
  CuptiSource& source = Start(options);
  fakecupti_kernel kernel = Kernel(500);
  fakecupti_add_kernel(&kernel);
  fakecupti_set_next_correlation(500);
  source.PushOp(7, Phase::kBackward);
  fakecupti_launch();
  source.PopOp();
  const RecordBatch batch = Drain();
  ASSERT_THAT(batch.kernels, SizeIs(1));
  EXPECT_EQ(batch.kernels[0].op, 7u);
  EXPECT_EQ(batch.kernels[0].phase, Phase::kBackward);
}

TEST_F(CuptiSourceTest, PopsFitTheirPushesWhateverHappensBetween) {
  CuptiOptions options = Manual();
  options.link_ops = true;
  CuptiSource& source = Start(options);
  for (int i = 0; i < 100; ++i) source.PushOp(1, Phase::kForward);
  EXPECT_EQ(fakecupti_depth(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2), 64);
  source.Stop();
  for (int i = 0; i < 101; ++i) source.PopOp();  // one too many
  EXPECT_EQ(fakecupti_depth(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2), 0);
  source.PushOp(1, Phase::kForward);
  EXPECT_EQ(fakecupti_depth(CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2), 0);
  source.PopOp();
}

TEST_F(CuptiSourceTest, OtherToolsIdsAreNotOurs) {
  Start();
  for (int kind : {CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM0, CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM1,
                   CUPTI_EXTERNAL_CORRELATION_KIND_CUSTOM2}) {
    fakecupti_add_external(kind, 12345, 77);
  }
  const RecordBatch batch = Drain();
  EXPECT_TRUE(batch.fences.empty());
  EXPECT_EQ(source_->counts().skipped_records, 3);
}

TEST_F(CuptiSourceTest, ReportsTheLibrarysOwnCost) {
  Start();
  const std::int64_t start = now_ns();
  fakecupti_add_overhead(CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH, Stamp(start),
                         Stamp(start + 9));
  fakecupti_add_overhead(CUPTI_ACTIVITY_OVERHEAD_CUPTI_INSTRUMENTATION, Stamp(start),
                         Stamp(start + 8));
  fakecupti_add_overhead(CUPTI_ACTIVITY_OVERHEAD_CUPTI_RESOURCE, Stamp(start), Stamp(start + 7));
  fakecupti_add_overhead(CUPTI_ACTIVITY_OVERHEAD_DRIVER_COMPILER, Stamp(start), Stamp(start + 6));
  fakecupti_add_overhead(CUPTI_ACTIVITY_OVERHEAD_LAZY_FUNCTION_LOADING, Stamp(start),
                         Stamp(start + 5));
  const RecordBatch batch = Drain();
  ASSERT_THAT(batch.overheads, SizeIs(5));
  const OverheadRecord::Kind kinds[] = {
      OverheadRecord::Kind::kBufferFlush, OverheadRecord::Kind::kInstrumentation,
      OverheadRecord::Kind::kResource, OverheadRecord::Kind::kCompiler,
      OverheadRecord::Kind::kOther};
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(batch.overheads[i].kind, kinds[i]);
    EXPECT_EQ(batch.overheads[i].start_ns, start);
    EXPECT_EQ(batch.overheads[i].end_ns, start + 9 - static_cast<std::int64_t>(i));
  }
}

TEST_F(CuptiSourceTest, DescribesTheDevicesThatWorked) {
  CuptiSource& source = Start();
  EXPECT_TRUE(source.devices().empty());
  fakecupti_kernel kernel = Kernel(1);
  kernel.device = 1;
  fakecupti_add_kernel(&kernel);
  Drain();
  Drain();
  ASSERT_THAT(source.devices(), SizeIs(1));
  const DeviceDescription device = source.devices()[0];
  EXPECT_EQ(device.device, 1);
  EXPECT_EQ(device.name, "Double of a GPU 1");
  EXPECT_EQ(device.pci_bus_id, "0000:3c:00.0");
  EXPECT_EQ(device.uuid, "GPU-10111213-1415-1617-1819-1a1b1c1d1e1f");
  EXPECT_EQ(device.compute_capability_major, 9);
  EXPECT_EQ(device.compute_capability_minor, 0);
  EXPECT_EQ(device.multiprocessors, 132);
  EXPECT_EQ(device.memory_bytes, std::int64_t{80} << 30);
}

TEST_F(CuptiSourceTest, ANameIsTakenAnewWhenItsTextChanges) {
  Start();
  char name[] = "gemm";
  fakecupti_kernel kernel = Kernel(1);
  kernel.name = name;
  fakecupti_add_kernel(&kernel);
  const KernelId first = Drain().kernels.at(0).kernel;
  name[0] = 'h';  // the module was unloaded, another one lies there
  fakecupti_add_kernel(&kernel);
  const KernelId second = Drain().kernels.at(0).kernel;
  EXPECT_NE(first, second);
  EXPECT_EQ(source_->kernels().Find(second)->name, "hemm");
}

TEST_F(CuptiSourceTest, AKernelWithoutANameIsOne) {
  Start();
  fakecupti_kernel kernel = Kernel(1);
  kernel.name = nullptr;
  fakecupti_add_kernel(&kernel);
  const RecordBatch batch = Drain();
  ASSERT_THAT(batch.kernels, SizeIs(1));
  EXPECT_EQ(source_->kernels().Find(batch.kernels[0].kernel)->name, "");
}

TEST_F(CuptiSourceTest, MoreSignaturesThanTheTableHolds) {
  CuptiOptions options = Manual();
  options.kernel_signatures = 3;  // two and the overflow
  Start(options);
  for (std::int32_t extent = 1; extent <= 4; ++extent) {
    fakecupti_kernel kernel = Kernel(1);
    kernel.grid[0] = extent;
    fakecupti_add_kernel(&kernel);
  }
  const RecordBatch batch = Drain();
  ASSERT_THAT(batch.kernels, SizeIs(4));
  EXPECT_NE(batch.kernels[1].kernel, kOverflowKernel);
  EXPECT_EQ(batch.kernels[2].kernel, kOverflowKernel);
  EXPECT_EQ(batch.kernels[3].kernel, kOverflowKernel);
}

TEST_F(CuptiSourceTest, StopsKindsFlushesAndNeverFinalizes) {
  CuptiSource& source = Start();
  Launch();
  source.Stop();
  EXPECT_EQ(source.state().kind, Kind::kDisabled);
  EXPECT_EQ(source.state().reason, "stopped");
  EXPECT_FALSE(fakecupti_kind_enabled(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL));
  EXPECT_THAT(Drain().kernels, SizeIs(1)) << "what was taken can still be drained";
  EXPECT_EQ(fakecupti_calls("cuptiFinalize"), 0u);
  const std::uint64_t calls = fakecupti_calls(nullptr);
  source.Stop();
  source.Fence(now_ns());
  Drain();
  EXPECT_EQ(fakecupti_calls(nullptr), calls) << "after the end the library is left alone";
}

TEST_F(CuptiSourceTest, AProcessMayStartAgain) {
  Start();
  Launch();
  source_.reset();
  CuptiSource& again = Start();
  EXPECT_EQ(again.state().kind, Kind::kCounting);
  Launch();
  EXPECT_THAT(Drain().kernels, SizeIs(1));
}

TEST_F(CuptiSourceTest, TwoSourcesDoNotShareTheCallbacks) {
  Start();
  auto second = CuptiSource::Create(Manual(), &clock_, Classify);
  ASSERT_TRUE(second.has_value());
  EXPECT_EQ((*second)->state().kind, Kind::kUnavailable);
  EXPECT_EQ((*second)->state().reason, "already_running");
  Launch();
  EXPECT_THAT(Drain().kernels, SizeIs(1));
}

TEST_F(CuptiSourceTest, RefusesOptionsThatCannotBe) {
  CuptiOptions options;
  options.buffer_bytes = 1000;
  EXPECT_EQ(CuptiSource::Create(options, &clock_, Classify).error().message(),
            "buffer_bytes is 1000; accepted: a multiple of 4096, up to 1073741824");
  options = {};
  options.buffers = 1;
  EXPECT_EQ(CuptiSource::Create(options, &clock_, Classify).error().message(),
            "buffers is 1; accepted: 2 to 4096");
  options = {};
  options.cap_bytes = 1 << 20;
  EXPECT_EQ(CuptiSource::Create(options, &clock_, Classify).error().message(),
            "cap_bytes is 1048576; accepted: at least buffers x buffer_bytes = 16777216");
  options = {};
  options.flush_interval_ms = -1;
  EXPECT_EQ(CuptiSource::Create(options, &clock_, Classify).error().message(),
            "flush_interval_ms is -1; accepted: 0 (no thread) to 60000");
  options = {};
  options.kernel_signatures = 0;
  EXPECT_EQ(CuptiSource::Create(options, &clock_, Classify).error().message(),
            "kernel_signatures is 0; accepted: 2 to 16777216");
}

// Every struct version from CUDA 9.0 to 13.0 has what is read at the same places (C46: layouts go
// by the loaded library, not by the headers).
class CuptiRecordSizeTest : public CuptiFixture, public ::testing::WithParamInterface<int> {};

TEST_P(CuptiRecordSizeTest, ReadsTheCommonPrefix) {
  fakecupti_set_kernel_record(GetParam());
  Start();
  for (std::uint32_t i = 1; i <= 3; ++i) {
    const fakecupti_kernel kernel = Kernel(i, 100 * i);
    fakecupti_add_kernel(&kernel);
    fakecupti_add_marker();
  }
  const RecordBatch batch = Drain();
  ASSERT_THAT(batch.kernels, SizeIs(3));
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(batch.kernels[i].launch_order, i + 1);
    EXPECT_EQ(batch.kernels[i].end_ns - batch.kernels[i].start_ns, 100 * (i + 1));
    EXPECT_EQ(batch.kernels[i].stream, 7u);
    EXPECT_EQ(source_->kernels().Find(batch.kernels[i].kernel)->shared_memory_bytes, 1024u);
  }
  EXPECT_EQ(source_->counts().skipped_records, 3) << "kinds of no use are stepped over";
  EXPECT_TRUE(batch.losses.empty());
}

INSTANTIATE_TEST_SUITE_P(Versions, CuptiRecordSizeTest, ::testing::Range(4, 11));

}  // namespace
}  // namespace flopledger
