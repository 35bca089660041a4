#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "collect/cupti/cupti_source.h"
#include "fakes/fake_cupti/fake_cupti_script.h"

namespace flopledger {

/// A source over the double, with clocks that the test moves: the session's at `now_ns()`, the
/// library's `kEpochNs` ahead of it. Flushes in `Drain` unless the test wants the thread.
class CuptiFixture : public ::testing::Test {
 protected:
  static constexpr std::int64_t kEpochNs = 1'764'000'000'000'000'000;
  static constexpr std::int64_t kSecond = 1'000'000'000;

  void SetUp() override {
    fakecupti_reset();
    fakecuda_set_devices(2);
    Advance(0);
  }
  void TearDown() override {
    source_.reset();
    EXPECT_EQ(fakecupti_violations(), 0u);
    fakecupti_reset();
  }

  static CuptiOptions Manual() {
    CuptiOptions options;
    options.flush_interval_ms = 0;
    options.buffer_bytes = 65536;
    options.buffers = 4;
    options.cap_bytes = 16 * 65536;
    return options;
  }

  CuptiSource& Start(const CuptiOptions& options = Manual()) {
    auto created = CuptiSource::Create(options, &clock_, Classify);
    EXPECT_TRUE(created.has_value()) << created.error().message();
    source_ = std::move(*created);
    return *source_;
  }

  void Advance(std::int64_t ns) {
    clock_.Advance(ns);
    fakecupti_set_clock(static_cast<std::uint64_t>(kEpochNs + clock_.MonotonicNs()));
  }
  std::int64_t now_ns() const { return clock_.MonotonicNs(); }
  static std::uint64_t Stamp(std::int64_t session_ns) {
    return static_cast<std::uint64_t>(kEpochNs + session_ns);
  }

  /// A kernel of `length_ns` that begins now, launched by `correlation`.
  fakecupti_kernel Kernel(std::uint32_t correlation, std::int64_t length_ns = 1000) const {
    return {.name = "gemm",
            .start = Stamp(now_ns()),
            .end = Stamp(now_ns() + length_ns),
            .device = 0,
            .context = 1,
            .stream = 7,
            .correlation = correlation,
            .grid = {2, 3, 4},
            .block = {128, 1, 1},
            .static_shared_bytes = 1000,
            .dynamic_shared_bytes = 24};
  }
  std::uint32_t Launch() {
    const std::uint32_t correlation = fakecupti_launch();
    const fakecupti_kernel kernel = Kernel(correlation);
    fakecupti_add_kernel(&kernel);
    return correlation;
  }

  RecordBatch Drain() {
    RecordBatch batch;
    source_->Drain(batch);
    return batch;
  }

  static std::int64_t Lost(const RecordBatch& batch, LossRecord::Reason reason) {
    std::int64_t count = 0;
    for (const LossRecord& loss : batch.losses) {
      EXPECT_EQ(loss.where, LossRecord::Where::kDevice);
      if (loss.reason == reason) count += loss.count;
    }
    return count;
  }

  static OpClass Classify(std::string_view name) {
    return name == "gemm" ? OpClass::kMatmul : OpClass::kUnknown;
  }

  ManualClock clock_{100 * kSecond};
  std::unique_ptr<CuptiSource> source_;
};

}  // namespace flopledger
