// The rules of the reader on exports of our own, one rule each.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <random>

#include "nsys_file.h"
#include "random_batch.h"
#include "trace_measure.h"

namespace flopledger {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> With(std::vector<std::string> statements) {
  std::vector<std::string> all = NsysFile::Tables();
  all.insert(all.end(), statements.begin(), statements.end());
  return all;
}

TraceSources Open(const std::string& path, const TraceOptions& options = ClassifyingOptions()) {
  Result<TraceSources> sources = OpenTrace(path, options);
  EXPECT_TRUE(sources.has_value()) << sources.error().message();
  return sources.has_value() ? *std::move(sources) : TraceSources();
}

std::vector<std::string> WarningsOf(const TraceSource& source) {
  std::vector<std::string> kinds;
  for (const TraceWarning& warning : source.description().warnings) kinds.push_back(warning.kind);
  return kinds;
}

const TraceGap* GapOf(const TraceSource& source, const std::string& kind) {
  for (const TraceGap& gap : source.description().gaps) {
    if (gap.kind == kind) return &gap;
  }
  return nullptr;
}

TEST(NsysSourceTest, CorrelationIdsAreOfTheirProcess) {
  NsysFile file;
  file.Run(With({NsysFile::Kernel(100, 200, 1, NsysFile::kProcess, 0),
                 NsysFile::Kernel(150, 300, 1, NsysFile::kOther, 1),
                 NsysFile::Call(90, 95, 1, NsysFile::kProcess),
                 NsysFile::Call(20, 25, 1, NsysFile::kOther)}));
  const TraceSources sources = Open(file.path());
  ASSERT_EQ(sources.size(), 2u);
  const RecordBatch first = ReadAll(*sources[0]);
  const RecordBatch second = ReadAll(*sources[1]);
  ASSERT_EQ(first.kernels.size(), 1u);
  ASSERT_EQ(second.kernels.size(), 1u);
  EXPECT_EQ(first.kernels[0].launch_order, 90);
  EXPECT_EQ(first.kernels[0].device, 0);
  EXPECT_EQ(second.kernels[0].launch_order, 20);
  EXPECT_EQ(second.kernels[0].device, 1);
  EXPECT_EQ(sources[1]->description().name, "pid 145");
}

TEST(NsysSourceTest, SignaturesAndCopiesHaveTheirNames) {
  NsysFile file;
  file.Run(With({NsysFile::Kernel(100, 200, 1),
                 "INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY "
                 "VALUES(300,310,0,7,2,281477392629760,1)",
                 "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES(400,410,0,7,3,281477392629760)"}));
  const TraceSources sources = Open(file.path());
  const RecordBatch all = ReadAll(*sources.at(0));
  ASSERT_EQ(all.kernels.size(), 3u);
  const KernelSignature& gemm = *sources[0]->kernels().Find(all.kernels[0].kernel);
  EXPECT_EQ(gemm.name, "gemm");
  EXPECT_THAT(gemm.grid, ElementsAre(2, 3, 4));
  EXPECT_THAT(gemm.block, ElementsAre(32, 1, 1));
  EXPECT_EQ(gemm.shared_memory_bytes, 48u);
  EXPECT_EQ(all.kernels[0].op_class, OpClass::kMatmul);
  EXPECT_EQ(sources[0]->kernels().Find(all.kernels[1].kernel)->name, "Memcpy Host-to-Device");
  EXPECT_EQ(all.kernels[1].kind, KernelRecord::Kind::kMemcpy);
  EXPECT_EQ(all.kernels[2].kind, KernelRecord::Kind::kMemset);
}

TEST(NsysSourceTest, TheOrderOfRowsChangesNothing) {
  std::vector<std::string> rows;
  for (int i = 0; i < 60; ++i) {
    const std::int64_t launch = 1000 + i * 10;
    // Streams run behind each other, so that completion is not the order of launches.
    rows.push_back(NsysFile::Kernel(5000 - i * 37, 6000 + i, i, NsysFile::kProcess, i % 2, i % 3));
    if (i % 5 != 0) rows.push_back(NsysFile::Call(launch, launch + 4, i));
  }
  rows.push_back(NsysFile::Range(1100, "1500", "'step 1'"));
  rows.push_back(NsysFile::Range(1500, "1700", "'step 2'"));
  std::string expected;
  std::mt19937 random(3);
  for (int round = 0; round < 4; ++round) {
    NsysFile file;
    file.Run(With(rows));
    const TraceSources sources = Open(file.path());
    const RecordBatch all = ReadAll(*sources.at(0));
    EXPECT_TRUE(std::is_sorted(all.kernels.begin(), all.kernels.end(),
                               [](const KernelRecord& a, const KernelRecord& b) {
                                 return (a.launch_known ? a.launch_order : a.start_ns) <
                                        (b.launch_known ? b.launch_order : b.start_ns);
                               }));
    if (round == 0) expected = TextOf(all);
    EXPECT_EQ(TextOf(all), expected);
    std::shuffle(rows.begin(), rows.end(), random);
  }
}

TEST(NsysSourceTest, KernelsOfAGraphShareItsLaunch) {
  NsysFile file;
  file.Run(With({NsysFile::Kernel(100, 200, 4), NsysFile::Kernel(200, 300, 4),
                 NsysFile::Kernel(300, 400, 4), NsysFile::Call(50, 60, 4)}));
  const TraceSources sources = Open(file.path());
  for (const KernelRecord& kernel : ReadAll(*sources.at(0)).kernels) {
    EXPECT_TRUE(kernel.launch_known);
    EXPECT_EQ(kernel.launch_order, 50);
  }
}

TEST(NsysSourceTest, AGraphThatWasNotExpandedIsWorkWithAGap) {
  NsysFile file;
  file.Run(
      With({"CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE(start INTEGER, end INTEGER, "
            "deviceId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER)",
            "INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES(10,40,0,7,9,"
            "281477392629760)"}));
  const TraceSources sources = Open(file.path());
  EXPECT_EQ(FiguresOf(ReadAll(*sources.at(0)).kernels).at(0).busy_kernels_ns, 30);
  const TraceGap* gap = GapOf(*sources[0], "graph_not_expanded");
  ASSERT_NE(gap, nullptr);
  EXPECT_EQ(gap->time.ns(), 30);
}

TEST(NsysSourceTest, StepsComeFromRanges) {
  NsysFile file;
  file.Run(With({NsysFile::Kernel(1010, 1020, 1), NsysFile::Call(1000, 1001, 1),
                 NsysFile::Range(1000, "1100", "'ProfilerStep#41'"),
                 NsysFile::Range(1010, "1090", "'step 5'"),  // a part of the step around it
                 NsysFile::Range(1100, "1200", "'Iteration 42'"),
                 NsysFile::Range(1150, "1160", "'step 77'", 6),  // another thread
                 NsysFile::Range(1200, "1300", "NULL", 5, "43"),
                 "UPDATE NVTX_EVENTS SET textId=3 WHERE text IS NULL",
                 NsysFile::Range(1300, "NULL", "'step'", 5, "50"),
                 NsysFile::Range(1050, "1060", "'stepper motor'")}));
  const TraceSources sources = Open(file.path());
  const RecordBatch all = ReadAll(*sources.at(0));
  std::vector<std::int64_t> begins;
  std::vector<std::int64_t> ends;
  for (const MarkerRecord& marker : all.markers) {
    (marker.kind == MarkerRecord::Kind::kStepBegin ? begins : ends).push_back(marker.time_ns);
  }
  EXPECT_THAT(begins, ElementsAre(1000, 1100, 1200, 1300));
  EXPECT_THAT(ends, ElementsAre(1100, 1200, 1300)) << "the last one was open when it ended";
  std::vector<std::int64_t> numbers;
  for (const TraceStep& step : sources[0]->description().steps) numbers.push_back(step.number);
  EXPECT_THAT(numbers, ElementsAre(41, 42, 9, 50)) << "by name, registered name, payload";
  // Begins and ends each stand in the order of launches.
  ASSERT_EQ(all.fences.size(), 7u);
  for (const FenceRecord& fence : all.fences) EXPECT_EQ(fence.boundary_ns, fence.launch_order);
  EXPECT_THAT(WarningsOf(*sources[0]), ElementsAre("steps_of_other_threads"));
}

TEST(NsysSourceTest, StepNamesCanBeChosen) {
  NsysFile file;
  file.Run(With({NsysFile::Kernel(1010, 1020, 1), NsysFile::Range(1000, "1100", "'train.3.go'"),
                 NsysFile::Range(1100, "1200", "'step 4'")}));
  TraceOptions options = ClassifyingOptions();
  options.step_names = {"tr??n.*.go"};
  const TraceSources sources = Open(file.path(), options);
  ReadAll(*sources.at(0));
  ASSERT_EQ(sources[0]->description().steps.size(), 1u);
  EXPECT_EQ(sources[0]->description().steps[0].name, "train.3.go");
  EXPECT_EQ(sources[0]->description().steps[0].number, 3);
}

TEST(NsysSourceTest, SectionsAreOfTheThreadThatSteps) {
  NsysFile file;
  file.Run(
      With({NsysFile::Kernel(2000, 2010, 1), NsysFile::Call(1010, 1011, 1),
            NsysFile::Kernel(2010, 2020, 2), NsysFile::Call(1060, 1061, 2),
            NsysFile::Kernel(2020, 2030, 3), NsysFile::Call(1070, 1071, 3, NsysFile::kProcess, 9),
            NsysFile::Range(1000, "1100", "'step 1'"), NsysFile::Range(1005, "1050", "'forward'"),
            NsysFile::Range(1050, "1090", "'Optimizer.step#Adam.step'"),
            NsysFile::Range(1060, "1080", "'checkpoint'", 9)}));
  const TraceSources sources = Open(file.path());
  const RecordBatch all = ReadAll(*sources.at(0));
  std::vector<std::pair<std::int64_t, Phase>> sections;
  for (const MarkerRecord& marker : all.markers) {
    if (marker.kind == MarkerRecord::Kind::kSectionBegin) {
      sections.emplace_back(marker.time_ns, marker.phase);
    }
  }
  EXPECT_THAT(sections,
              ElementsAre(std::pair(1005, Phase::kForward), std::pair(1050, Phase::kOptimizer)));
  ASSERT_EQ(all.kernels.size(), 3u);
  EXPECT_EQ(all.kernels[0].phase, Phase::kForward);
  EXPECT_EQ(all.kernels[1].phase, Phase::kOptimizer);
  EXPECT_EQ(all.kernels[2].phase, Phase::kCheckpoint) << "a launch is of its own thread's ranges";
}

// emit_nvtx: a forward op that runs inside of a backward node with gradients on runs again.
TEST(NsysSourceTest, RecomputationIsAnOpWithGradientsInTheBackwardPass) {
  NsysFile file;
  file.Run(
      With({NsysFile::Range(100, "200", "'aten::mm, seq = 7, op_id = 1'"),
            NsysFile::Call(110, 111, 1), NsysFile::Kernel(1000, 1010, 1),
            NsysFile::Range(300, "600", "'CheckpointFunctionBackward, seq = 7, op_id = 2'", 6),
            NsysFile::Range(310, "400", "'aten::mm, seq = 8, op_id = 3'", 6),
            NsysFile::Call(320, 321, 2, NsysFile::kProcess, 6), NsysFile::Kernel(1010, 1020, 2),
            NsysFile::Range(400, "500",
                            "'autograd::engine::evaluate_function: MmBackward0, op_id = 4'", 6),
            NsysFile::Range(405, "500", "'MmBackward0, seq = 8, op_id = 5'", 6),
            NsysFile::Range(410, "450", "'aten::mm, op_id = 6'", 6),
            NsysFile::Call(420, 421, 3, NsysFile::kProcess, 6), NsysFile::Kernel(1020, 1030, 3)}));
  const TraceSources sources = Open(file.path());
  const RecordBatch all = ReadAll(*sources.at(0));
  ASSERT_EQ(all.kernels.size(), 3u);
  EXPECT_EQ(all.kernels[0].phase, Phase::kForward);
  EXPECT_EQ(all.kernels[1].phase, Phase::kRecompute);
  EXPECT_EQ(all.kernels[2].phase, Phase::kBackward);
  for (const KernelRecord& kernel : all.kernels) {
    EXPECT_EQ(sources[0]->signatures().Find(kernel.op)->name, "aten::mm");
  }
}

TEST(NsysSourceTest, TheInnermostOpIsTheOneAroundTheLaunch) {
  NsysFile file;
  file.Run(With({NsysFile::Range(100, "500", "'aten::linear, op_id = 1'"),
                 NsysFile::Range(110, "400", "'aten::addmm, op_id = 2, sizes = [[4], [2, 3], []]'"),
                 NsysFile::Range(120, "130", "'aten::empty, op_id = 3'"),
                 NsysFile::Call(130, 140, 1), NsysFile::Kernel(1000, 1010, 1),
                 NsysFile::Call(450, 460, 2), NsysFile::Kernel(1010, 1020, 2),
                 NsysFile::Call(500, 510, 3), NsysFile::Kernel(1020, 1030, 3)}));
  const TraceSources sources = Open(file.path());
  const RecordBatch all = ReadAll(*sources.at(0));
  ASSERT_EQ(all.kernels.size(), 3u);
  const OpSignature& addmm = *sources[0]->signatures().Find(all.kernels[0].op);
  EXPECT_EQ(addmm.name, "aten::addmm");
  ASSERT_EQ(addmm.arguments.size(), 3u);
  EXPECT_THAT(addmm.arguments[1].integers, ElementsAre(2, 3));
  EXPECT_EQ(sources[0]->signatures().Find(all.kernels[1].op)->name, "aten::linear");
  EXPECT_FALSE(all.kernels[2].op_known) << "an interval does not hold its end";
}

TEST(NsysSourceTest, WhatAVersionLacksIsAWarningAndAGap) {
  NsysFile file;
  file.Run(
      {"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start INTEGER, end INTEGER, shortName INTEGER)",
       "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES(100,200,1),(300,350,2)"});
  const TraceSources sources = Open(file.path());
  ASSERT_EQ(sources.size(), 1u);
  const RecordBatch all = ReadAll(*sources[0]);
  EXPECT_EQ(FiguresOf(all.kernels).at(0).busy_kernels_ns, 150);
  EXPECT_THAT(WarningsOf(*sources[0]), testing::Contains("missing_table"));
  const TraceGap* gap = GapOf(*sources[0], "unlaunched");
  ASSERT_NE(gap, nullptr);
  EXPECT_EQ(gap->count, 2);
  EXPECT_EQ(gap->time.ns(), 150);
}

TEST(NsysSourceTest, OddTimesDoNotMoveBusyTime) {
  NsysFile file;
  file.Run(With(
      {NsysFile::Kernel(100, 200, 1), NsysFile::Kernel(300, 250, 2), NsysFile::Kernel(0, 0, 3)}));
  const TraceSources sources = Open(file.path());
  const RecordBatch all = ReadAll(*sources.at(0));
  EXPECT_EQ(FiguresOf(all.kernels).at(0).busy_kernels_ns, 100);
  EXPECT_EQ(all.kernels.size(), 2u);
  ASSERT_EQ(all.losses.size(), 1u);
  EXPECT_EQ(all.losses[0].reason, LossRecord::Reason::kInvalidTime);
  EXPECT_THAT(WarningsOf(*sources[0]), testing::Contains("negative_duration"));
}

TEST(NsysSourceTest, DevicesAreNumberedByTheirProcess) {
  NsysFile file;
  file.Run(With({NsysFile::Kernel(100, 200, 1, NsysFile::kProcess, 0),
                 NsysFile::Kernel(100, 200, 1, NsysFile::kOther, 0),
                 "CREATE TABLE TARGET_INFO_GPU(id INTEGER, name TEXT, smCount INTEGER, "
                 "computeMajor INTEGER, computeMinor INTEGER, totalMemory INTEGER)",
                 "INSERT INTO TARGET_INFO_GPU VALUES(5,'H100',132,9,0,80),(6,'A100',108,8,0,40)",
                 "CREATE TABLE TARGET_INFO_CUDA_DEVICE(gpuId INTEGER, cudaId INTEGER, pid INTEGER)",
                 "INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES(6,0,144),(5,0,145)"}));
  const TraceSources sources = Open(file.path());
  ASSERT_EQ(sources.size(), 2u);
  EXPECT_EQ(sources[0]->description().devices.at(0).name, "A100");
  EXPECT_EQ(sources[0]->description().devices.at(0).multiprocessors, 108);
  EXPECT_EQ(sources[1]->description().devices.at(0).name, "H100");
  EXPECT_EQ(sources[1]->description().devices.at(0).compute_capability_major, 9);
}

TEST(NsysSourceTest, ASchemaCannotAct) {
  NsysFile file;
  file.Run(With({NsysFile::Kernel(100, 200, 1), "DROP TABLE CUPTI_ACTIVITY_KIND_MEMCPY",
                 // A view that would give rows without end.
                 "CREATE VIEW CUPTI_ACTIVITY_KIND_MEMCPY AS WITH RECURSIVE c(start) AS (VALUES(1) "
                 "UNION ALL SELECT start+1 FROM c) SELECT start, start AS end FROM c"}));
  const TraceSources sources = Open(file.path());
  EXPECT_EQ(ReadAll(*sources.at(0)).kernels.size(), 1u);
}

TEST(NsysSourceTest, AnotherDatabaseIsRefusedByName) {
  NsysFile file;
  file.Run({"CREATE TABLE cats(name TEXT)"});
  const Result<TraceSources> sources = OpenTrace(file.path(), {});
  ASSERT_FALSE(sources.has_value());
  EXPECT_EQ(sources.error().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(sources.error().message(), HasSubstr(file.path()));
  EXPECT_THAT(sources.error().message(), HasSubstr("nsys export"));
}

// One leaf of the kernels' table is lost: strict names the row, lenient has the rows around it.
TEST(NsysSourceTest, LenientReadsAroundACorruptPage) {
  std::vector<std::string> rows = {"BEGIN"};
  for (int i = 1; i <= 1000; ++i) {
    rows.push_back(NsysFile::Kernel(100 + i * 10, 105 + i * 10, i));
    rows.push_back(NsysFile::Call(50 + i * 10, 51 + i * 10, i));
  }
  rows.push_back("COMMIT");
  NsysFile file;
  file.Run(With(rows));
  std::ifstream in(file.path(), std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  // The leaf that holds a kernel in the middle: its start time stands in it, big-endian.
  const std::string start = {'\x14', '\x50', '\x14', '\x55'};  // 5200, 5205
  const std::size_t at = bytes.find(start);
  ASSERT_NE(at, std::string::npos);
  bytes[at / 4096 * 4096] = '\x77';  // no kind of page
  NsysFile broken("broken");
  std::ofstream(broken.path(), std::ios::binary) << bytes;

  const Result<TraceSources> strict = OpenTrace(broken.path(), ClassifyingOptions());
  ASSERT_FALSE(strict.has_value());
  EXPECT_EQ(strict.error().code(), StatusCode::kDataLoss);
  EXPECT_THAT(strict.error().message(), HasSubstr("CUPTI_ACTIVITY_KIND_KERNEL, row "));

  TraceOptions options = ClassifyingOptions();
  options.lenient = true;
  const TraceSources sources = Open(broken.path(), options);
  const RecordBatch all = ReadAll(*sources.at(0));
  EXPECT_GT(all.kernels.size(), 850u) << "one page of many is lost";
  EXPECT_LT(all.kernels.size(), 1000u);
  EXPECT_EQ(all.kernels.front().start_ns, 110);
  EXPECT_EQ(all.kernels.back().start_ns, 10100) << "what is behind the page is read";
  for (const KernelRecord& kernel : all.kernels) EXPECT_TRUE(kernel.launch_known);
  EXPECT_TRUE(sources[0]->description().cut);
  ASSERT_FALSE(sources[0]->description().warnings.empty());
  EXPECT_EQ(sources[0]->description().warnings[0].kind, "corrupt_pages");
  EXPECT_THAT(sources[0]->description().warnings[0].text, HasSubstr("CUPTI_ACTIVITY_KIND_KERNEL"));
}

// Any page may be anything. What comes out is a status that names the file and the table, or rows.
TEST(NsysSourceTest, CorruptPagesAreAStatus) {
  std::vector<std::string> rows;
  for (int i = 0; i < 300; ++i) {
    rows.push_back(NsysFile::Kernel(100 + i * 10, 105 + i * 10, i));
    rows.push_back(NsysFile::Call(50 + i * 10, 51 + i * 10, i));
    rows.push_back(NsysFile::Range(40 + i * 10, std::to_string(60 + i * 10),
                                   "'step " + std::to_string(i) + "'"));
  }
  NsysFile whole;
  rows.insert(rows.begin(), "BEGIN");
  rows.push_back("COMMIT");
  whole.Run(With(rows));
  std::ifstream in(whole.path(), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(in), {}};
  ASSERT_GT(bytes.size(), 40000u);
  std::mt19937 random(11);
  int refused = 0;
  NsysFile broken("broken");
  for (int round = 0; round < 300; ++round) {
    std::string copy = bytes;
    if (round % 10 == 0) copy.resize(random() % copy.size());
    // Headers of pages and their cells' pointers hold what can lead astray.
    for (int change = 0; change < 4 && copy.size() > 4096; ++change) {
      const std::size_t page = random() % (copy.size() / 4096);
      copy[page * 4096 + random() % 64 + (page == 0 ? 100 : 0)] = static_cast<char>(random());
    }
    std::ofstream(broken.path(), std::ios::binary) << copy;
    const Result<TraceSources> sources = OpenTrace(broken.path(), {});
    if (!sources.has_value()) {
      ++refused;
      EXPECT_THAT(sources.error().message(), HasSubstr(broken.path()));
      continue;
    }
    for (const auto& source : *sources) {
      RecordBatch batch;
      for (;;) {
        const Result<bool> more = source->Read(batch);
        if (!more.has_value()) {
          ++refused;
          EXPECT_THAT(more.error().message(), HasSubstr(broken.path() + ": "));
        }
        if (!more.has_value() || !*more) break;
        ASSERT_LT(batch.kernels.size(), 100000u);
      }
    }
  }
  EXPECT_GT(refused, 30);
}

}  // namespace
}  // namespace flopledger
