// What the tap writes is what the source reads, and nothing that happens to a file on its way is
// taken for a smaller run without a word.
#include "collect/trace/capture_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "collect/capture_tap.h"
#include "flops/kernel_classes.h"
#include "random_batch.h"

namespace flopledger {
namespace {

using testing::HasSubstr;

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct Reading {
  std::optional<Status> failure;
  std::vector<std::string> batches;
  std::int64_t losses = 0;
  std::vector<TraceWarning> warnings;
  bool cut = false;
};

class CaptureSourceTest : public testing::Test {
 protected:
  CaptureSourceTest()
      : path_((std::filesystem::temp_directory_path() /
               ("flopledger_capture_" + std::to_string(getpid()) + ".flopcap"))
                  .string()),
        ops_(1024, [](const OpSignature&) { return OpClass::kMatmul; }),
        kernels_(1024, ClassifyKernel) {}
  ~CaptureSourceTest() override { std::filesystem::remove(path_); }

  static CaptureRun Run() {
    CaptureRun run;
    run.description.identity = {
        .run_id = "r7", .rank = 3, .local_rank = 1, .world_size = 8, .rank_source = "arguments"};
    run.description.model = "llama";
    run.description.convention = {.name = "house", .hash = 0xfedcba9876543210ULL};
    run.description.peaks = {{.device_model = "H100",
                              .dtype = DType::kBfloat16,
                              .rate = FlopsPerSecond(989.4e12),
                              .source = "sheet",
                              .evidence = PeakEvidence::kPublished,
                              .spread_low_ratio = 0.25,
                              .spread_high_ratio = std::nullopt}};
    run.description.peak_dtype = DType::kBfloat16;
    run.description.version = "0.1.0";
    run.convention = {{.name = "router", .value = "out"}};
    run.device_count = 2;
    run.warmup_steps = 5;
    run.host_ops = false;
    run.session_start_ns = -17;
    return run;
  }

  // `blocks` flushes: a second of the session's clock passes between two of them.
  std::vector<std::string> WriteCapture(int batches, std::size_t most_records,
                                        std::int64_t max_bytes = std::int64_t{1} << 30,
                                        bool finish = true) {
    auto tap = CaptureTap::Create({.path = path_, .max_bytes = max_bytes}, Run());
    EXPECT_TRUE(tap.has_value()) << tap.error().message();
    (*tap)->Describe({{.device = 4, .name = "NVIDIA H100", .multiprocessors = 132}});
    std::mt19937_64 random(7);
    std::vector<std::string> written;
    for (int i = 0; i < batches; ++i) {
      const auto size = static_cast<std::uint32_t>(i + 1);
      ops_.Intern({.name = "aten::mm",
                   .arguments = {{.kind = OpArgument::Kind::kTensor,
                                  .dtype = DType::kFloat16,
                                  .integers = {i, -1},
                                  .real = 0.5}}});
      kernels_.Intern({.name = "gemm", .grid = {size, 1, 1}, .shared_memory_bytes = 48});
      const RecordBatch batch =
          i % 3 == 2 ? RecordBatch() : RandomRecords(random).Batch(most_records);
      (*tap)->Write(batch, {.ops = &ops_,
                            .kernels = &kernels_,
                            .value_names = names_,
                            .now_ns = i * std::int64_t{600'000'000},
                            .device_counting = i > 4});
      written.push_back(TextOf(batch));
    }
    if (finish) (*tap)->Finish(12345);
    state_ = (*tap)->state();
    return written;
  }

  Reading ReadCapture(bool lenient = false) {
    Reading reading;
    TraceOptions options;
    options.lenient = lenient;
    auto source = CaptureSource::Open(path_, options);
    if (!source.has_value()) {
      reading.failure = source.error();
      return reading;
    }
    for (;;) {
      RecordBatch batch;
      const Result<bool> more = (*source)->Read(batch);
      if (!more.has_value()) reading.failure = more.error();
      if (!more.has_value() || !*more) break;
      for (const LossRecord& loss : batch.losses) {
        // The reader's own; random batches hold others, of any size.
        if (loss.reason == LossRecord::Reason::kUnknownCount && loss.count == 1) ++reading.losses;
      }
      reading.batches.push_back(TextOf(batch));
    }
    reading.warnings = (*source)->description().warnings;
    reading.cut = (*source)->description().cut;
    source_ = *std::move(source);
    return reading;
  }

  void Put(const std::string& bytes) { std::ofstream(path_, std::ios::binary) << bytes; }

  const std::string path_;
  SignatureTable ops_;
  KernelTable kernels_;
  const std::vector<std::string> names_ = {"loss", "lr"};
  CaptureTap::State state_;
  std::unique_ptr<CaptureSource> source_;
};

TEST_F(CaptureSourceTest, EveryFieldOfEveryBatchComesBackWithItsBoundaries) {
  const std::vector<std::string> written = WriteCapture(40, 30);
  const Reading reading = ReadCapture();
  ASSERT_FALSE(reading.failure) << reading.failure->message();
  EXPECT_EQ(reading.batches, written);
  EXPECT_TRUE(reading.warnings.empty());
  ASSERT_TRUE(source_->end());
  EXPECT_EQ(source_->end()->close_ns, 12345);
  EXPECT_EQ(source_->end()->batches, 40);
  EXPECT_EQ(source_->value_names(), names_);
  EXPECT_TRUE(source_->device_counting());
  EXPECT_EQ(static_cast<std::uint64_t>(state_.bytes), std::filesystem::file_size(path_));
}

TEST_F(CaptureSourceTest, TablesKeepTheirNumbers) {
  WriteCapture(9, 3);
  ASSERT_FALSE(ReadCapture().failure);
  ASSERT_EQ(source_->signatures().size(), 9u);
  ASSERT_EQ(source_->kernels().size(), 9u);
  for (std::uint32_t id = 1; id <= 9; ++id) {
    EXPECT_EQ(*source_->signatures().Find(id), *ops_.Find(id));
    EXPECT_EQ(*source_->kernels().Find(id), *kernels_.Find(id));
  }
  ASSERT_EQ(source_->description().devices.size(), 1u);
  EXPECT_EQ(source_->description().devices[0].device, 4);
  EXPECT_EQ(source_->description().devices[0].multiprocessors, 132);
}

TEST_F(CaptureSourceTest, TheRunComesBack) {
  WriteCapture(1, 1);
  ASSERT_FALSE(ReadCapture().failure);
  const CaptureRun expected = Run();
  const CaptureRun& run = source_->run();
  EXPECT_EQ(run.description.identity.run_id, "r7");
  EXPECT_EQ(run.description.identity.rank, 3);
  EXPECT_EQ(run.description.identity.world_size, 8);
  EXPECT_EQ(run.description.model, "llama");
  EXPECT_EQ(run.description.convention, expected.description.convention);
  ASSERT_EQ(run.description.peaks.size(), 1u);
  EXPECT_EQ(run.description.peaks[0].rate.value(), 989.4e12);
  EXPECT_EQ(run.description.peaks[0].spread_low_ratio, 0.25);
  EXPECT_EQ(run.description.peaks[0].spread_high_ratio, std::nullopt);
  EXPECT_EQ(run.convention, expected.convention);
  EXPECT_EQ(run.device_count, 2);
  EXPECT_EQ(run.warmup_steps, 5);
  EXPECT_FALSE(run.host_ops);
  EXPECT_EQ(run.session_start_ns, -17);
}

// A killed process leaves any prefix. What can be read of it is a prefix of the run, and it is
// said.
TEST_F(CaptureSourceTest, EveryPrefixIsReadAsThePrefixThatItIs) {
  const std::vector<std::string> written = WriteCapture(12, 2);
  const std::string whole = ReadFile(path_);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    Put(whole.substr(0, size));
    const Reading reading = ReadCapture();
    if (reading.failure) {
      EXPECT_TRUE(reading.batches.empty()) << size;
      EXPECT_THAT(reading.failure->message(), HasSubstr("byte ")) << size;
      continue;
    }
    ASSERT_LE(reading.batches.size(), written.size()) << size;
    EXPECT_TRUE(std::equal(reading.batches.begin(), reading.batches.end(), written.begin()))
        << size;
    ASSERT_EQ(reading.warnings.size(), 1u) << size;
    EXPECT_THAT(reading.warnings[0].kind, testing::AnyOf("cut", "no_end")) << size;
    EXPECT_EQ(reading.cut, reading.warnings[0].kind == "cut") << size;
  }
}

TEST_F(CaptureSourceTest, EveryFlippedBitIsNoticed) {
  const std::vector<std::string> written = WriteCapture(7, 2);
  const std::string whole = ReadFile(path_);
  for (std::size_t byte = 0; byte < whole.size(); ++byte) {
    std::string broken = whole;
    broken[byte] = static_cast<char>(broken[byte] ^ (1 << (byte % 8)));
    Put(broken);
    const Reading reading = ReadCapture();
    EXPECT_TRUE(reading.failure || !reading.warnings.empty()) << "byte " << byte;
    if (reading.failure) {
      EXPECT_THAT(reading.failure->message(), HasSubstr("byte ")) << byte;
    }

    const Reading lenient = ReadCapture(/*lenient=*/true);
    EXPECT_TRUE(lenient.failure || byte >= kCaptureHeaderBytes) << byte;
    if (lenient.failure) continue;
    EXPECT_FALSE(lenient.warnings.empty()) << byte;
    EXPECT_GE(written.size() + 1, lenient.batches.size()) << byte;
  }
}

TEST_F(CaptureSourceTest, LenientLeavesOutOneBlockAndSaysSo) {
  const std::vector<std::string> written = WriteCapture(12, 20);
  std::string bytes = ReadFile(path_);
  // The second block of batches.
  std::size_t at = kCaptureHeaderBytes;
  std::vector<std::size_t> blocks;
  while (at < bytes.size()) {
    if (Fixed32At(bytes, at + 4) == static_cast<std::uint32_t>(BlockKind::kBatches)) {
      blocks.push_back(at);
    }
    at += kBlockHeaderBytes + Fixed32At(bytes, at + 8);
  }
  ASSERT_GE(blocks.size(), 3u);
  bytes[blocks[1] + kBlockHeaderBytes + 5] ^= 1;
  Put(bytes);

  const Reading strict = ReadCapture();
  ASSERT_TRUE(strict.failure);
  EXPECT_EQ(strict.failure->code(), StatusCode::kDataLoss);
  EXPECT_THAT(strict.failure->message(), HasSubstr("at byte " + std::to_string(blocks[1])));
  EXPECT_THAT(strict.failure->message(), HasSubstr("checksum"));

  const Reading lenient = ReadCapture(/*lenient=*/true);
  ASSERT_FALSE(lenient.failure) << lenient.failure->message();
  ASSERT_EQ(lenient.warnings.size(), 1u);
  EXPECT_EQ(lenient.warnings[0].kind, "broken_block");
  EXPECT_EQ(lenient.warnings[0].count, 1);
  EXPECT_GE(lenient.losses, 1) << "coverage has to see it";
  EXPECT_EQ(lenient.batches.back(), written.back());
  EXPECT_LT(lenient.batches.size(), written.size());
}

TEST_F(CaptureSourceTest, AVersionFromTheFutureIsRefusedByName) {
  Put(CaptureHeader(kCaptureVersion + 1) + "anything");
  const Reading reading = ReadCapture();
  ASSERT_TRUE(reading.failure);
  EXPECT_EQ(reading.failure->code(), StatusCode::kUnsupported);
  EXPECT_THAT(reading.failure->message(), HasSubstr("version 2"));
  EXPECT_THAT(reading.failure->message(), HasSubstr("accepted: up to 1"));
}

TEST_F(CaptureSourceTest, ABlockOfAnotherKindIsPassedOver) {
  const std::vector<std::string> written = WriteCapture(6, 4);
  const std::string whole = ReadFile(path_);
  const std::size_t run =
      kCaptureHeaderBytes + kBlockHeaderBytes + Fixed32At(whole, kCaptureHeaderBytes + 8);
  Put(whole.substr(0, run) + MakeBlock(static_cast<BlockKind>(99), "later") + whole.substr(run));
  const Reading reading = ReadCapture();
  ASSERT_FALSE(reading.failure);
  EXPECT_EQ(reading.batches, written);
  ASSERT_EQ(reading.warnings.size(), 1u);
  EXPECT_EQ(reading.warnings[0].kind, "unknown_block");
}

TEST_F(CaptureSourceTest, AFullCaptureCountsWhatItLeavesOut) {
  constexpr std::int64_t kLimit = 64 << 10;
  const std::vector<std::string> written = WriteCapture(400, 40, kLimit);
  EXPECT_EQ(state_.reason, "full");
  EXPECT_THAT(state_.text, HasSubstr("65536 bytes"));
  EXPECT_LE(std::filesystem::file_size(path_), static_cast<std::uint64_t>(kLimit));
  const Reading reading = ReadCapture();
  ASSERT_FALSE(reading.failure) << reading.failure->message();
  EXPECT_EQ(reading.batches.size() + static_cast<std::size_t>(state_.lost_batches), 400u);
  EXPECT_TRUE(std::equal(reading.batches.begin(), reading.batches.end(), written.begin()));
  ASSERT_EQ(reading.warnings.size(), 1u);
  EXPECT_EQ(reading.warnings[0].kind, "full");
  EXPECT_EQ(reading.warnings[0].count, state_.lost_records);
  EXPECT_GT(state_.lost_records, 0);
}

TEST_F(CaptureSourceTest, ADiskWithoutRoomEndsTheCapture) {
  auto tap = CaptureTap::Create({.path = "/dev/full"}, Run());
  ASSERT_FALSE(tap.has_value());
  EXPECT_THAT(tap.error().message(), HasSubstr("/dev/full"));
  EXPECT_THAT(tap.error().message(), HasSubstr("No space left"));
}

TEST_F(CaptureSourceTest, AWrongPathOrLimitIsNamed) {
  EXPECT_THAT(CaptureTap::Create({.path = ""}, Run()).error().message(), HasSubstr("empty"));
  EXPECT_THAT(CaptureTap::Create({.path = "/nowhere/x.flopcap"}, Run()).error().message(),
              HasSubstr("'/nowhere/x.flopcap'"));
  EXPECT_THAT(CaptureTap::Create({.path = path_, .max_bytes = 100}, Run()).error().message(),
              HasSubstr("max_bytes is 100; accepted: 65536 or more"));
}

TEST_F(CaptureSourceTest, OpenTraceKnowsACapture) {
  WriteCapture(2, 2);
  const Result<TraceSources> sources = OpenTrace(path_, {});
  ASSERT_TRUE(sources.has_value()) << sources.error().message();
  ASSERT_EQ(sources->size(), 1u);
  EXPECT_EQ(sources->front()->description().format, "capture");
  EXPECT_EQ(sources->front()->description().rank, 3);
}

// A text whose length is what remained before the length itself was read.
TEST(CaptureWireTest, ALengthCountsWhatFollowsIt) {
  WireReader in("\x05\x01\x02\x03\x04");
  EXPECT_EQ(in.Text(), "");
  EXPECT_FALSE(in.ok());
  WireReader whole("\x04\x01\x02\x03\x04");
  EXPECT_EQ(whole.Text().size(), 4u);
  EXPECT_TRUE(whole.ok() && whole.AtEnd());
}

// Independent of the code: the check value of CRC-32 that its definition gives.
TEST(CaptureFormatTest, TheChecksumIsCrc32) {
  EXPECT_EQ(Checksum("123456789"), 0xcbf43926U);
  EXPECT_EQ(Checksum("6789", Checksum("12345")), 0xcbf43926U);
}

}  // namespace
}  // namespace flopledger
