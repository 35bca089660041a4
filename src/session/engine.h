#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/sync.h"
#include "collect/host_source.h"
#include "export/gap_totals.h"
#include "export/step_window.h"
#include "flopledger/session.h"
#include "ledger/flop_resolver.h"
#include "ledger/reconcile.h"
#include "session/capture_output.h"
#include "session/device_input.h"
#include "session/log.h"
#include "session/nvtx_input.h"
#include "session/outlets.h"
#include "session/overhead_budget.h"
#include "session/process_hooks.h"
#include "session/session_parts.h"
#include "session/training_marks.h"
#include "timeline/step_builder.h"

namespace flopledger {

/// The one place that builds and owns the stages, and the worker that pumps records through them.
///
/// Thread: the pipeline (`Pump`) belongs to the worker, or to the owner with `manual_pump`; marks
/// come from training threads and touch `source_` only; readers copy what was last published.
class Session::Engine final : public ProcessListener,
                              public std::enable_shared_from_this<Session::Engine> {
 public:
  static Result<std::shared_ptr<Engine>> Create(SessionOptions options, SessionParts parts);
  ~Engine() override;

  HostSource& source() { return *source_; }
  TrainingMarks& marks() { return *marks_; }
  const SessionOptions& options() const { return options_; }
  bool inert() const { return inert_.load(std::memory_order_relaxed); }
  void SetValue(std::string_view name, double value) noexcept;
  void SetCapability(std::string_view name, bool available, std::string_view reason) noexcept;

  void Warn(std::string_view text) noexcept;
  void PumpOnce() noexcept;
  void Close(DurationNs limit) noexcept;
  void BecomeInert() noexcept override;

  std::shared_ptr<const StepReport> LastReport() const;
  RunTotals Totals() const;
  std::string Summary() const;
  SessionState State() const;
  RunDescription Description() const { return description_; }
  std::string Address() const { return outlets_->address(); }

 private:
  Engine(SessionOptions options, SessionParts parts, RunDescription description,
         std::unique_ptr<Log> log, std::unique_ptr<Outlets> outlets);
  void Start();
  void Work();
  void Pump();
  Result<bool> OpenCapture();
  void Capture();
  void Publish(StepTimeline timeline);
  void LogStep(const StepReport& report);
  void Conclude();
  void AnnounceState();
  void TakeRecords();
  void UpdateStateLocked() FLOPLEDGER_REQUIRES(mutex_);
  void Disable(const std::string& why) noexcept;

  const SessionOptions options_;
  const std::unique_ptr<Clock> clock_;
  const RunDescription description_;
  const EligiblePeak peak_;
  const std::int64_t start_ns_;
  const std::unique_ptr<Log> log_;
  std::shared_ptr<HostSource> source_;
  DeviceInput device_;
  const std::shared_ptr<TrainingMarks> marks_;
  NvtxInput nvtx_;
  StepBuilder builder_;
  FlopResolver resolver_;
  const std::unique_ptr<Outlets> outlets_;
  RecordBatch batch_;
  std::unique_ptr<CaptureOutput> capture_;
  int complete_steps_ = 0;
  OverheadBudget budget_;
  StepWindow since_log_;
  GapTotals gaps_;

  std::atomic<bool> inert_{false};

  mutable Mutex mutex_;
  std::shared_ptr<const StepReport> last_ FLOPLEDGER_GUARDED_BY(mutex_);
  RunTotals totals_ FLOPLEDGER_GUARDED_BY(mutex_);
  std::vector<CoverageGap> largest_gaps_ FLOPLEDGER_GUARDED_BY(mutex_);
  SessionState state_ FLOPLEDGER_GUARDED_BY(mutex_);
  bool ops_observed_ FLOPLEDGER_GUARDED_BY(mutex_) = false;
  bool state_changed_ FLOPLEDGER_GUARDED_BY(mutex_) = true;
  std::vector<std::string> value_names_ FLOPLEDGER_GUARDED_BY(mutex_);
  bool too_many_values_ FLOPLEDGER_GUARDED_BY(mutex_) = false;

  // The worker and its end.
  std::mutex work_mutex_;
  std::condition_variable work_changed_;
  bool stop_ = false;
  bool done_ = false;
  bool closed_ = false;
  std::int64_t close_ns_ = 0;
  std::thread worker_;
  std::unique_ptr<TerminationHook> termination_;
};

}  // namespace flopledger
