// One small trace in every dialect: the figures are the same, and worked out here by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cstring>
#include <string>

#include "fakes/kineto_file.h"
#include "session/replay.h"

namespace flopledger {
namespace {

using fakes::KinetoEvents;
using fakes::TemporaryFile;
using ::testing::HasSubstr;

// A step of 100 us. An addmm [32,16] x [16,64] launches a gemm, 30 to 40 us on stream 7; an
// all-reduce runs 35 to 50 us on stream 9; a copy 60 to 65 us.
struct Words {
  std::string op = "cpu_op";
  std::string call = "cuda_runtime";
  std::string kernel = "kernel";
  std::string copy = "gpu_memcpy";
  std::string dims = "Input Dims";
  std::string launch = "cudaLaunchKernel";
  std::string gemm = "ampere_sgemm_128x64_nn";
  std::string collective = "ncclKernel_AllReduce_RING_LL_Sum_float";
  std::string correlation = "5";
  std::string q;  // around times
  std::string fraction;
};

std::string Device(const std::string& stream, const std::string& correlation) {
  return R"("device": 0, "stream": )" + stream + R"(, "correlation": )" + correlation;
}

KinetoEvents Small(const Words& w) {
  const auto time = [&w](const char* whole) { return w.q + whole + w.fraction + w.q; };
  KinetoEvents events;
  events.Step("1", time("1000"), time("100"));
  events.Add(w.op, "aten::linear", "7", time("1009"), time("12"));
  events.Add(w.op, "aten::addmm", "7", time("1010"), time("10"),
             "\"" + w.dims +
                 R"(": [[64], [32, 16], [16, 64], [], []], "Input type": )"
                 R"(["float", "float", "float", "Scalar", "Scalar"])");
  events.Add(w.call, w.launch, "7", time("1012"), time("2"), R"("correlation": )" + w.correlation);
  events.Add(w.call, w.launch, "7", time("1025"), time("2"), R"("correlation": 6)");
  events.Add(w.call, "cudaMemcpyAsync", "7", time("1030"), time("2"), R"("correlation": 8)");
  events.Add(w.kernel, w.gemm, "7", time("1030"), time("10"), Device("7", w.correlation));
  events.Add(w.kernel, w.collective, "9", time("1035"), time("15"), Device("9", "6"));
  events.Add(w.copy, "Memcpy DtoH (Device -> Pinned)", "7", time("1060"), time("5"),
             Device("7", "8"));
  events.Add("python_function", "train.py(3): step", "7", time("1000"), time("90"));
  events.Add("gpu_user_annotation", "ProfilerStep#1", "7", time("1030"), time("30"));
  events.Raw(
      R"({"ph": "s", "id": 5, "pid": 100, "tid": 7, "ts": 1012, "cat": "ac2g", "name": "ac2g"})");
  return events;
}

ReplayTrace ReadOne(const std::string& content, const std::string& name = "trace.json") {
  const TemporaryFile file(content, name);
  Result<ReplayResult> result = Replay({file.path()}, {});
  EXPECT_TRUE(result.has_value()) << (result.has_value() ? "" : result.error().message());
  if (!result.has_value() || result->traces.empty()) return {};
  return std::move(result->traces.front());
}

void ExpectFigures(const ReplayTrace& trace) {
  const DeviceActivity& at = trace.total.activity;
  EXPECT_EQ(at.kernels, 2);
  EXPECT_EQ(at.memcpys, 1);
  EXPECT_EQ(at.kernel_time_sum_ns, 25'000);
  EXPECT_EQ(at.busy_kernels_ns, 20'000);
  EXPECT_EQ(at.busy_all_ns, 25'000);
  EXPECT_EQ(at.span.end_ns - at.span.start_ns, 35'000);
  EXPECT_EQ(at.idle_ns, 10'000);
  EXPECT_EQ(at.communication_union_ns, 15'000);
  EXPECT_EQ(at.compute_union_ns, 10'000);
  EXPECT_EQ(at.exposed_communication_ns, 10'000);
  EXPECT_EQ(at.unlaunched, 0);
  EXPECT_EQ(trace.total.flops.all_pairs.count(), 2 * 32 * 16 * 64);
  EXPECT_EQ(trace.total.counted_kernel_time_ns, 10'000);
  ASSERT_EQ(trace.total.steps.size(), 1U);
  const ReplayStep& step = trace.total.steps.front();
  EXPECT_EQ(step.name, "ProfilerStep#1");
  EXPECT_EQ(step.activity.host.end_ns - step.activity.host.start_ns, 100'000);
  EXPECT_EQ(step.activity.launched_kernels, 2);
  EXPECT_EQ(step.activity.launched_work, 3);
  EXPECT_EQ(step.activity.started_kernels, 2);
  EXPECT_EQ(step.activity.busy_clipped_ns, 25'000);
  EXPECT_EQ(step.flops.all_pairs.count(), 2 * 32 * 16 * 64);
}

std::int64_t CountOf(const ReplayTrace& trace, const std::string& kind) {
  for (const TraceWarning& warning : trace.description.warnings) {
    if (warning.kind == kind) return warning.count;
  }
  return 0;
}

std::string Gzip(const std::string& text) {
  z_stream stream{};
  EXPECT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(deflateBound(&stream, text.size()) + 64, '\0');
  std::string in = text;
  stream.next_in = reinterpret_cast<Bytef*>(in.data());
  stream.avail_in = static_cast<uInt>(in.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

std::string TarMemberOf(const std::string& name, const std::string& content) {
  std::string header(512, '\0');
  std::memcpy(header.data(), name.data(), name.size());
  std::snprintf(header.data() + 100, 8, "%07o", 0644);
  std::snprintf(header.data() + 124, 12, "%011zo", content.size());
  std::memset(header.data() + 148, ' ', 8);
  header[156] = '0';
  std::memcpy(header.data() + 257, "ustar\00000", 8);
  unsigned sum = 0;
  for (const char letter : header) sum += static_cast<unsigned char>(letter);
  std::snprintf(header.data() + 148, 8, "%06o", sum);
  std::string block = content;
  block.resize((content.size() + 511) / 512 * 512, '\0');
  return header + block;
}

TEST(ReplayDialects, Plain) {
  const ReplayTrace trace = ReadOne(Small({}).Document());
  ExpectFigures(trace);
  EXPECT_TRUE(trace.description.warnings.empty());
  EXPECT_TRUE(trace.description.gaps.empty() || trace.description.gaps.front().kind == "no_op");
}

TEST(ReplayDialects, AnArrayAlone) { ExpectFigures(ReadOne(Small({}).Array())); }

TEST(ReplayDialects, NamesOf2021) {
  Words words;
  words.op = "Operator";
  words.call = "Runtime";
  words.kernel = "Kernel";
  words.copy = "Memcpy";
  words.dims = "Input dims";
  ExpectFigures(ReadOne(Small(words).Document()));
}

TEST(ReplayDialects, NamesOfRocm) {
  Words words;
  words.launch = "hipExtModuleLaunchKernel";
  words.gemm = "Cijk_Alik_Bljk_SB_MT64x16x32_MI16x16x1";
  words.collective = "rcclGenericKernel";
  ExpectFigures(ReadOne(Small(words).Document()));
}

TEST(ReplayDialects, CustomAllReduce) {
  Words words;
  words.collective = "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(int*)";
  ExpectFigures(ReadOne(Small(words).Document()));
}

TEST(ReplayDialects, DecimalAndStringTimes) {
  Words words;
  words.fraction = ".000";
  ExpectFigures(ReadOne(Small(words).Document()));
  words.q = "\"";
  const ReplayTrace trace = ReadOne(Small(words).Document());
  ExpectFigures(trace);
  EXPECT_GT(CountOf(trace, "string_number"), 0);
}

TEST(ReplayDialects, IdsBeyond63Bits) {
  Words words;
  words.correlation = "18446744073709551615";
  const ReplayTrace trace = ReadOne(Small(words).Document());
  ExpectFigures(trace);
  EXPECT_EQ(CountOf(trace, "huge_id"), 2);
}

TEST(ReplayDialects, ByteOrderMarkAndCarriageReturns) {
  std::string text = Small({}).Document();
  for (std::size_t at = 0; (at = text.find('\n', at)) != text.npos; at += 2) {
    text.replace(at, 1, "\r\n");
  }
  const ReplayTrace trace = ReadOne("\xef\xbb\xbf" + text);
  ExpectFigures(trace);
  EXPECT_EQ(CountOf(trace, "byte_order_mark"), 1);
}

TEST(ReplayDialects, BaseTimeDevicesAndRank) {
  const ReplayTrace trace = ReadOne(Small({}).Document(
      R"("deviceProperties": [{"id": 0, "name": "NVIDIA A100-SXM4-80GB", "numSms": 108, )"
      R"("computeMajor": 8, "computeMinor": 0}, {"id": 1, "name": "idle"}], )"
      R"("distributedInfo": {"backend": "nccl", "rank": 3, "world_size": 8}, )"
      R"("baseTimeNanoseconds": 1700000000000000000, )"));
  ExpectFigures(trace);
  EXPECT_EQ(trace.total.steps.front().activity.host.start_ns, 1'700'000'000'001'000'000);
  EXPECT_EQ(trace.description.rank, 3);
  EXPECT_EQ(trace.description.world_size, 8);
  ASSERT_EQ(trace.description.devices.size(), 1U);
  EXPECT_EQ(trace.description.devices.front().name, "NVIDIA A100-SXM4-80GB");
  EXPECT_EQ(trace.description.devices.front().multiprocessors, 108);
}

TEST(ReplayDialects, GzipOneMemberOrSeveralWithPadding) {
  const std::string text = Small({}).Document();
  const ReplayTrace one = ReadOne(Gzip(text));
  ExpectFigures(one);
  EXPECT_TRUE(one.description.warnings.empty());
  const std::string three =
      Gzip(text.substr(0, 100)) + Gzip(text.substr(100, 1)) + Gzip(text.substr(101));
  const ReplayTrace several = ReadOne(three + std::string(700, '\0'));
  ExpectFigures(several);
  EXPECT_EQ(CountOf(several, "several_gzip_members"), 3);
  EXPECT_EQ(CountOf(several, "gzip_padding"), 700);
  const ReplayTrace foreign = ReadOne(Gzip(text) + "not gzip");
  ExpectFigures(foreign);
  EXPECT_EQ(CountOf(foreign, "foreign_bytes"), 8);
}

TEST(ReplayDialects, AnArchiveOfRanks) {
  const std::string members = R"("distributedInfo": {"rank": )";
  const std::string tar = TarMemberOf("run/worker1.json", Small({}).Document(members + "1}, ")) +
                          TarMemberOf("run/worker0.json", Small({}).Document(members + "0}, ")) +
                          std::string(1024, '\0');
  for (const std::string& content : {tar, Gzip(tar)}) {
    const TemporaryFile file(content, "ranks.tar.gz");
    const Result<ReplayResult> result = Replay({file.path()}, {});
    ASSERT_TRUE(result.has_value()) << result.error().message();
    ASSERT_EQ(result->traces.size(), 2U);
    for (int rank = 0; rank < 2; ++rank) {
      const ReplayTrace& trace = result->traces[static_cast<std::size_t>(rank)];
      ExpectFigures(trace);
      EXPECT_EQ(trace.description.rank, rank);
      EXPECT_EQ(trace.description.name, "run/worker" + std::to_string(rank) + ".json");
    }
    ASSERT_EQ(result->global_steps.size(), 1U);
    EXPECT_EQ(result->global_steps.front().all_pairs.count(), 2 * 65'536);
  }
}

TEST(ReplayDialects, EventsLargerThanAWindowAndBracesInNames) {
  Words words;
  words.gemm = "gemm<{lambda(float)#1}, at::detail::Array<char*, 3> >, {";
  KinetoEvents events = Small(words);
  events.Add("python_function", std::string(3 << 20, 'x'), "7", "1000", "90");
  ExpectFigures(ReadOne(events.Document()));
}

TEST(ReplayDialects, ABombIsRefusedUntilTheLimitIsRaised) {
  KinetoEvents events = Small({});
  events.Add("python_function", std::string(4 << 20, 'x'), "7", "1000", "90");
  const TemporaryFile file(Gzip(events.Document()));
  ReplayOptions options;
  options.max_inflated_bytes = 1 << 20;
  const Result<ReplayResult> refused = Replay({file.path()}, options);
  ASSERT_FALSE(refused.has_value());
  EXPECT_THAT(refused.error().message(), HasSubstr("more than 1048576 bytes"));
  options.max_inflated_bytes = 8 << 20;
  EXPECT_TRUE(Replay({file.path()}, options).has_value());
}

}  // namespace
}  // namespace flopledger
