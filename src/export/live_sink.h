#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>

#include "base/sync.h"
#include "export/snapshot.h"
#include "flopledger/report_sink.h"
#include "flopledger/run_totals.h"
#include "flopledger/status.h"
#include "flopledger/step_report.h"

namespace flopledger {

/// What the live page and its API read: the run, its state, the last step in full and a ring of
/// the last steps as points of a chart. What only the last one of counts (the step in full, the
/// totals) is made into text by whoever asks.
///
/// Thread: written by the worker, read by any. Ownership: shared by sink and server.
class LivePage {
 public:
  explicit LivePage(std::size_t capacity) : capacity_(capacity) {}

  void SetRun(std::string run, std::string conventions);
  void SetState(std::string state);
  void AddStep(const StepReport& report, const RunTotals& totals, const RunIdentity& identity,
               std::int64_t now_ns);
  void SetTotals(const RunTotals& totals, const RunIdentity& identity);

  /// `{"run": ..., "state": ..., "totals": ..., "snapshot_age_seconds": ...}`.
  std::string RunBody(std::int64_t now_ns) const;
  /// The steps whose number is above `since`, the last one in full, the state.
  std::string StepsBody(std::int64_t since, std::int64_t now_ns) const;
  std::string ConventionsBody() const;
  /// One line for a health check: how old the last step is.
  std::string HealthBody(std::int64_t now_ns) const;

 private:
  using Text = std::shared_ptr<const std::string>;
  struct Totals {
    RunTotals sums;
    RunIdentity identity;
  };
  struct Last {
    StepReport report;
    RunIdentity identity;
  };
  static std::string TextOf(const std::shared_ptr<const Totals>& totals);
  static std::string TextOf(const std::shared_ptr<const Last>& last);
  std::string AgeText(std::int64_t now_ns) const FLOPLEDGER_REQUIRES(mutex_);

  const std::size_t capacity_;
  mutable Mutex mutex_;  // held to copy pointers, never to make text of steps
  Text run_ FLOPLEDGER_GUARDED_BY(mutex_);
  Text conventions_ FLOPLEDGER_GUARDED_BY(mutex_);
  Text state_ FLOPLEDGER_GUARDED_BY(mutex_);
  std::shared_ptr<const Totals> totals_ FLOPLEDGER_GUARDED_BY(mutex_);
  std::shared_ptr<const Last> last_ FLOPLEDGER_GUARDED_BY(mutex_);
  std::deque<std::pair<std::int64_t, Text>> points_ FLOPLEDGER_GUARDED_BY(mutex_);
  std::int64_t published_ns_ FLOPLEDGER_GUARDED_BY(mutex_) = 0;
};

struct LiveSinkOptions {
  int steps = 512;  ///< kept for the chart, 1 to 100000
};

/// Keeps the live page up to date. Thread: as `ReportSink`. Fails: `Create` only.
class LiveSink final : public ReportSink {
 public:
  static Result<std::unique_ptr<LiveSink>> Create(LiveSinkOptions options = {});

  void Open(const RunDescription& run) override;
  void Announce(const SessionState& state) override;
  void Publish(const StepReport& report, const RunTotals& totals) override;
  void Finish(const RunTotals& totals) override;

  std::shared_ptr<const LivePage> page() const { return page_; }

 private:
  explicit LiveSink(std::shared_ptr<LivePage> page) : page_(std::move(page)) {}
  const std::shared_ptr<LivePage> page_;
  RunIdentity identity_;
  SessionState state_;
};

}  // namespace flopledger
