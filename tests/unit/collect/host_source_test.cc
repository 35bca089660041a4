#include "collect/host_source.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace flopledger {
namespace {

OpClass AlwaysMatmul(const OpSignature&) { return OpClass::kMatmul; }

std::uint32_t InternMm(const flopledger_host_ops* ops, std::int64_t m) {
  const std::int64_t shape[2] = {m, 4};
  const flopledger_op_argument argument{
      .kind = static_cast<std::uint8_t>(OpArgument::Kind::kTensor),
      .dtype = static_cast<std::uint8_t>(DType::kBfloat16),
      .reserved = 0,
      .integer_count = 2,
      .integers = shape,
      .real = 0};
  return ops->intern(ops->context, "aten::mm", &argument, 1);
}

void WriteOp(const flopledger_host_ops* ops, std::uint32_t signature, std::int64_t start_ns) {
  const flopledger_op_record record{.start_ns = start_ns,
                                    .end_ns = start_ns + 10,
                                    .self_ns = 10,
                                    .signature = signature,
                                    .phase = static_cast<std::uint8_t>(Phase::kBackward),
                                    .reserved = {}};
  ops->write(ops->context, &record);
}

TEST(HostSourceTest, AnOpArrivesWithItsSignatureClassAndPhase) {
  ManualClock clock(100);
  auto source = HostSource::Create({}, &clock, AlwaysMatmul);
  const flopledger_host_ops* ops = source->host_ops();
  ASSERT_EQ(ops->version, static_cast<std::uint32_t>(FLOPLEDGER_HOST_OPS_VERSION));
  ASSERT_EQ(ops->size, sizeof(flopledger_host_ops));
  const std::uint32_t id = InternMm(ops, 3);
  WriteOp(ops, id, 50);
  RecordBatch batch;
  source->Drain(batch);
  ASSERT_EQ(batch.ops.size(), 1u);
  EXPECT_EQ(batch.ops[0].start_ns, 50);
  EXPECT_EQ(batch.ops[0].op_class, OpClass::kMatmul);
  EXPECT_EQ(batch.ops[0].phase, Phase::kBackward);
  ASSERT_NE(source->signatures().Find(id), nullptr);
  EXPECT_EQ(ToString(*source->signatures().Find(id)), "aten::mm [bf16 3x4]");
}

TEST(HostSourceTest, WhatTheFullRingsRefuseIsCountedToTheRecord) {
  ManualClock clock;
  auto source = HostSource::Create({.op_ring_slots = 8, .marker_ring_slots = 4}, &clock, {});
  const flopledger_host_ops* ops = source->host_ops();
  const std::uint32_t id = InternMm(ops, 1);
  for (int i = 0; i < 20; ++i) WriteOp(ops, id, i);
  for (int i = 0; i < 7; ++i) source->Mark(MarkerRecord::Kind::kStepBegin, i);
  RecordBatch batch;
  source->Drain(batch);
  EXPECT_EQ(batch.ops.size(), 8u);
  EXPECT_EQ(batch.markers.size(), 4u);
  ASSERT_EQ(batch.losses.size(), 2u);
  EXPECT_EQ(batch.losses[0].where, LossRecord::Where::kHostRing);
  EXPECT_EQ(batch.losses[0].count, 12);
  EXPECT_EQ(batch.losses[1].where, LossRecord::Where::kMarkerRing);
  EXPECT_EQ(batch.losses[1].count, 3);
  // Said once: the next drain has nothing new to report.
  batch.Clear();
  source->Drain(batch);
  EXPECT_TRUE(batch.losses.empty());
}

TEST(HostSourceTest, EqualRowsAreOneRecordAndNoneIsLost) {
  ManualClock clock;
  auto source = HostSource::Create({}, &clock, {});
  const std::vector<std::int64_t> lengths = {512, 512, 300, 512};
  source->DeclareRows(lengths, 512);
  RecordBatch batch;
  source->Drain(batch);
  ASSERT_EQ(batch.tokens.size(), 3u);
  std::int64_t rows = 0;
  std::int64_t useful = 0;
  for (const TokenRecord& record : batch.tokens) {
    rows += record.count;
    useful += record.count * record.useful_length;
    EXPECT_EQ(record.length, 512);
  }
  EXPECT_EQ(rows, 4);
  EXPECT_EQ(useful, 512 + 512 + 300 + 512);
}

TEST(HostSourceTest, DeclaredWorkKeepsAll128Bits) {
  ManualClock clock;
  auto source = HostSource::Create({}, &clock, {});
  const Flops forward = Flops::FromInteger((Int128{1} << 100) + 17);
  const Flops backward = Flops::FromInteger((Int128{1} << 64) - 1);
  source->DeclareWork(forward, backward, 5);
  RecordBatch batch;
  source->Drain(batch);
  ASSERT_EQ(batch.declared.size(), 1u);
  EXPECT_EQ(batch.declared[0].forward.ToString(), forward.ToString());
  EXPECT_EQ(batch.declared[0].backward.ToString(), "18446744073709551615");
  EXPECT_EQ(batch.declared[0].tokens, 5);
}

TEST(HostSourceTest, NothingIsLostWithThreadsThatComeAndGo) {
  SystemClock clock;
  auto source = HostSource::Create({.op_ring_slots = 1 << 14, .threads = 128}, &clock, {});
  const flopledger_host_ops* ops = source->host_ops();
  const std::uint32_t id = InternMm(ops, 1);
  std::atomic<bool> done{false};
  std::int64_t received = 0;
  std::int64_t lost = 0;
  std::thread reader([&] {
    RecordBatch batch;
    for (bool last = false; !last;) {
      last = done.load();
      batch.Clear();
      source->Drain(batch);
      received += static_cast<std::int64_t>(batch.ops.size());
      for (const LossRecord& loss : batch.losses) lost += loss.count;
    }
  });
  constexpr int kThreads = 40;
  constexpr int kOps = 2000;
  for (int round = 0; round < kThreads / 4; ++round) {
    std::vector<std::thread> writers;
    for (int t = 0; t < 4; ++t) {
      writers.emplace_back([&] {
        for (int i = 0; i < kOps; ++i) WriteOp(ops, id, i);
      });
    }
    for (std::thread& writer : writers) writer.join();
  }
  done.store(true);
  reader.join();
  EXPECT_EQ(received + lost, std::int64_t{kThreads} * kOps);
}

TEST(HostSourceTest, ATableThatOutlivesItsSessionDoesNothing) {
  ManualClock clock;
  auto source = HostSource::Create({}, &clock, {});
  const flopledger_host_ops* ops = source->host_ops();
  const std::uint32_t id = InternMm(ops, 1);
  source->Stop();
  RecordBatch batch;
  source->Drain(batch);
  source.reset();
  WriteOp(ops, id, 1);
  ops->aborted(ops->context, 1);
  EXPECT_EQ(InternMm(ops, 9), kOverflowSignature);
}

}  // namespace
}  // namespace flopledger
