#include "session/engine.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "export/exit_summary.h"
#include "export/log_line.h"
#include "export/report_text.h"
#include "flopledger/version.h"

// The worker wakes every few milliseconds, takes what has arrived through the stages and publishes
// the steps that closed. Nobody waits for it: training threads only write into rings.

namespace flopledger {
namespace {

constexpr auto kPumpInterval = std::chrono::milliseconds(5);
constexpr std::size_t kValueNames = 16;
constexpr std::size_t kGapsInSummary = 10;
constexpr DurationNs kFlushLimit(1'000'000'000);

std::int64_t ThreadCpuNs() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

StepBuilder::Options BuilderOptions(const SessionOptions& options, std::int64_t start_ns) {
  StepBuilder::Options result;
  result.observed = options.host_ops;
  result.session_start_ns = start_ns;
  return result;
}

}  // namespace

Session::Engine::Engine(SessionOptions options, SessionParts parts, RunDescription description,
                        std::unique_ptr<Log> log, std::unique_ptr<Outlets> outlets)
    : options_(std::move(options)),
      clock_(std::move(parts.clock)),
      description_(std::move(description)),
      peak_{
          .rates = options_.peaks, .dtype = options_.dtype, .device_count = options_.device_count},
      start_ns_(clock_->MonotonicNs()),
      log_(std::move(log)),
      source_(HostSource::Create({}, clock_.get(), ClassifyOp, std::move(parts.device))),
      device_(source_->device()),
      marks_(std::make_shared<TrainingMarks>(source_, options_.sequence_length)),
      nvtx_(options_.nvtx, marks_),
      builder_(BuilderOptions(options_, start_ns_)),
      resolver_({{FlopSource::kOpShapes, CountOp}}),
      outlets_(std::move(outlets)),
      budget_(options_.overhead_budget_ratio),
      since_log_(static_cast<std::size_t>(std::max(options_.log_every_steps, 1))) {
  ops_observed_ = options_.host_ops;
  state_.capabilities = outlets_->capabilities();
  state_.capabilities.push_back({.name = "step_api", .available = true, .reason = "ok"});
  UpdateStateLocked();
}

Session::Engine::~Engine() = default;

void Session::Engine::Start() {
  outlets_->Open(description_);
  AnnounceState();
  ListenToForks(weak_from_this());
  if (options_.manual_pump) return;
  if (options_.handle_sigterm) termination_ = TerminationHook::Install();
  // The host's signals are for the host's threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  // The thread owns a share, so that an engine which could not be joined in time stays alive.
  worker_ = std::thread([self = shared_from_this()] { self->Work(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_setname_np(worker_.native_handle(), "flopledger");
}

void Session::Engine::SetValue(std::string_view name, double value) noexcept {
  try {
    std::uint32_t id = 0;
    {
      MutexLock lock(mutex_);
      const auto found = std::find(value_names_.begin(), value_names_.end(), name);
      id = static_cast<std::uint32_t>(found - value_names_.begin());
      if (found == value_names_.end()) {
        if (value_names_.size() >= kValueNames) {
          too_many_values_ = true;
          return;
        }
        value_names_.emplace_back(name);
      }
    }
    source_->SetValue(id, value);
  } catch (...) {
    // Out of memory for a name: the value is not shown.
  }
}

void Session::Engine::SetCapability(std::string_view name, bool available,
                                    std::string_view reason) noexcept {
  try {
    MutexLock lock(mutex_);
    Capability next{
        .name = std::string(name), .available = available, .reason = std::string(reason)};
    if (name == "host_ops") ops_observed_ = available;
    const auto known =
        std::find_if(state_.capabilities.begin(), state_.capabilities.end(),
                     [&](const Capability& capability) { return capability.name == name; });
    if (known != state_.capabilities.end()) {
      *known = std::move(next);
    } else {
      state_.capabilities.push_back(std::move(next));
    }
    UpdateStateLocked();
  } catch (...) {
  }
}

void Session::Engine::UpdateStateLocked() {
  const std::vector<Capability>& capabilities = state_.capabilities;
  const auto has = [&capabilities](std::string_view name) {
    return std::any_of(capabilities.begin(), capabilities.end(),
                       [&](const Capability& each) { return each.name == name && each.available; });
  };
  const bool kernels = has("cupti_activity");
  using Collector = SessionState::Collector;
  if (state_.collector != Collector::kDisabled) {
    state_.collector = ops_observed_ ? Collector::kCounting
                       : kernels     ? Collector::kTimingOnly
                                     : Collector::kStepsOnly;
  }
  state_.rung = ops_observed_ ? 4 : kernels ? 2 : has("nvtx") ? 1 : 0;
  state_changed_ = true;
}

void Session::Engine::Warn(std::string_view text) noexcept {
  if (inert()) return;
  try {
    log_->WarnOnce(std::string(text), std::string(text));
  } catch (...) {
  }
}

void Session::Engine::AnnounceState() {
  for (const Capability& failed : outlets_->TakeFailures()) {
    SetCapability(failed.name, failed.available, failed.reason);
  }
  if (std::optional<Capability> change = capture_ ? capture_->TakeChange(*log_) : std::nullopt) {
    SetCapability(change->name, change->available, change->reason);
  }
  if (const std::optional<Capability> nvtx = nvtx_.TakeChange(*log_)) {
    SetCapability(nvtx->name, nvtx->available, nvtx->reason);
  }
  if (const std::optional<Capability> device = device_.TakeChange(*log_)) {
    SetCapability(device->name, device->available, device->reason);
  }
  if (const auto devices = device_.TakeDevices()) {
    if (capture_) capture_->tap().Describe(*devices);
    MutexLock lock(mutex_);
    state_.devices.clear();
    for (const DeviceDescription& device : *devices) state_.devices.push_back(Observed(device));
    state_changed_ = true;
  }
  SessionState state;
  bool too_many_values = false;
  {
    MutexLock lock(mutex_);
    too_many_values = too_many_values_;
    if (!state_changed_ && !too_many_values) return;
    state_changed_ = false;
    state = state_;
  }
  if (too_many_values) {
    log_->WarnOnce("values", fmt::format("more than {} names of values; the first {} are shown",
                                         kValueNames, kValueNames));
  }
  outlets_->Announce(state);
}

Result<bool> Session::Engine::OpenCapture() {
  auto capture = CaptureOutput::Create(options_, description_, start_ns_);
  if (!capture) return tl::unexpected(capture.error());
  capture_ = *std::move(capture);
  return true;
}

void Session::Engine::Capture() {
  if (!capture_) return;
  std::vector<std::string> names;
  if (!batch_.values.empty()) {
    MutexLock lock(mutex_);
    names = value_names_;
  }
  capture_->tap().Write(batch_, {.ops = &source_->signatures(),
                                 .kernels = device_.kernels(),
                                 .value_names = names,
                                 .now_ns = clock_->MonotonicNs(),
                                 .device_counting = device_.counting()});
}

void Session::Engine::TakeRecords() {
  batch_.Clear();
  device_.Drain(batch_);
  source_->Drain(batch_);
  batch_.drained_at_ns = clock_->MonotonicNs();
  builder_.SetDeviceCounting(device_.counting());
  builder_.Add(batch_);
  Capture();
}

void Session::Engine::Pump() {
  TakeRecords();
  while (std::optional<StepTimeline> timeline = builder_.Take()) Publish(*std::move(timeline));
  AnnounceState();
}

void Session::Engine::Publish(StepTimeline timeline) {
  const std::int64_t begin_ns = ThreadCpuNs();
  const std::vector<ResolvedOp> ops = resolver_.Resolve(timeline.ops, source_->signatures());
  std::vector<ResolvedKernel> kernels;
  if (device_.kernels() != nullptr) {
    kernels = resolver_.ResolveKernels(timeline.kernels, *device_.kernels(), source_->signatures());
  }
  const StepDeclaration declaration =
      EvaluateDeclaration(options_.model, options_.convention, timeline);
  auto report = std::make_shared<StepReport>(
      Reconcile(timeline, ops, declaration, description_.convention, peak_, kernels));
  if (report->result == StepResult::kComplete && complete_steps_++ < options_.warmup_steps) {
    report->result = StepResult::kWarmup;
  }
  report->end_unix_seconds =
      clock_->UnixSeconds() - DurationNs(clock_->MonotonicNs() - report->end_ns).seconds();
  report->overhead = DurationNs(ThreadCpuNs() - begin_ns);

  gaps_.Add(*report);
  std::vector<CoverageGap> largest = gaps_.Largest(kGapsInSummary);
  RunTotals totals;
  {
    MutexLock lock(mutex_);
    for (const ValueRecord& value : timeline.values) {
      if (value.name_id < value_names_.size()) {
        report->values.push_back({.name = value_names_[value.name_id], .value = value.value});
      }
    }
    totals_.Add(*report);
    totals = totals_;
    last_ = report;
    largest_gaps_ = std::move(largest);
  }
  outlets_->Publish(*report, totals);
  LogStep(*report);
  if (report->result != StepResult::kComplete) return;
  if (const auto cost = budget_.Add(CostToTraining(*report), report->wall)) {
    device_.StepDown(*cost, options_.overhead_budget_ratio);
  }
}

void Session::Engine::LogStep(const StepReport& report) {
  if (report.utilization.mfu_refusal != RefusalReason::kNone) {
    log_->WarnOnce("mfu " + std::string(ToString(report.utilization.mfu_refusal)),
                   fmt::format("step {}: no MFU: {}", report.step,
                               ReasonText(report.utilization.mfu_refusal)));
  }
  for (const Finding& finding : report.findings) {
    log_->WarnOnce(finding.id, fmt::format("step {}: {} (ratio {:.4g}): {}", report.step,
                                           finding.id, finding.ratio, finding.suspect));
  }
  since_log_.Add(report);
  const std::int64_t steps = complete_steps_;
  if (options_.log_every_steps <= 0 || description_.identity.rank != 0) return;
  if (report.result != StepResult::kComplete || steps % options_.log_every_steps != 0) return;
  log_->Say(RenderLogLine(report, since_log_.Ratios()));
}

void Session::Engine::Conclude() {
  Pump();
  nvtx_.Stop();
  device_.Stop();
  source_->Stop();
  TakeRecords();
  if (capture_) capture_->tap().Finish(close_ns_);
  const DurationNs trailing = builder_.Finish(close_ns_);
  while (std::optional<StepTimeline> timeline = builder_.Take()) Publish(*std::move(timeline));
  RunTotals totals;
  {
    MutexLock lock(mutex_);
    if (trailing.ns() > 0) totals_.Exclude("after_last_step", trailing);
    state_.run_finished = true;
    state_changed_ = true;
    totals = totals_;
  }
  AnnounceState();
  outlets_->Finish(totals);
  outlets_->Flush(kFlushLimit);
  if (description_.identity.rank == 0 && totals.steps != RunTotals().steps) {
    log_->Say("the run's books\n" + Summary());
  }
  outlets_->StopServing();
  log_->Flush();
}

void Session::Engine::Work() {
  bool failed = false;
  for (bool last = false; !last;) {
    {
      std::unique_lock lock(work_mutex_);
      work_changed_.wait_for(lock, kPumpInterval, [this] { return stop_; });
      last = stop_;
    }
    const bool terminated = TerminationHook::Pending();
    if ((last || terminated) && close_ns_ == 0) close_ns_ = clock_->MonotonicNs();
    try {
      if (failed) {
        RecordBatch dropped;
        device_.Drain(dropped);
        source_->Drain(dropped);
      } else if (last || terminated) {
        Conclude();
      } else {
        Pump();
      }
    } catch (const std::exception& error) {
      failed = true;
      Disable(error.what());
    } catch (...) {
      failed = true;
      Disable("unknown exception");
    }
    if (terminated) TerminationHook::EndProcess();
  }
  const std::lock_guard lock(work_mutex_);
  done_ = true;
  work_changed_.notify_all();
}

void Session::Engine::Disable(const std::string& why) noexcept {
  try {
    nvtx_.Stop();
    device_.Stop();
    source_->Stop();
    log_->Warn("flopledger stops counting, the training goes on: " + why);
    {
      MutexLock lock(mutex_);
      state_.collector = SessionState::Collector::kDisabled;
      state_changed_ = true;
    }
    AnnounceState();
  } catch (...) {
  }
}

void Session::Engine::PumpOnce() noexcept {
  if (!options_.manual_pump || closed_ || inert()) return;
  try {
    Pump();
  } catch (const std::exception& error) {
    Disable(error.what());
  } catch (...) {
    Disable("unknown exception");
  }
}

void Session::Engine::Close(DurationNs limit) noexcept {
  if (inert()) return;
  try {
    std::unique_lock lock(work_mutex_);
    if (closed_) return;
    closed_ = true;
    close_ns_ = clock_->MonotonicNs();
    if (options_.manual_pump) {
      lock.unlock();
      Conclude();
      return;
    }
    stop_ = true;
    work_changed_.notify_all();
    const bool in_time = work_changed_.wait_for(lock, std::chrono::nanoseconds(limit.ns()),
                                                [this] { return done_; });
    lock.unlock();
    if (in_time) {
      worker_.join();
      termination_.reset();
    } else {
      log_->Warn("the worker did not end in time and is left behind");
      worker_.detach();
    }
  } catch (const std::exception& error) {
    Disable(error.what());
  } catch (...) {
    Disable("unknown exception");
  }
}

void Session::Engine::BecomeInert() noexcept {
  inert_.store(true, std::memory_order_relaxed);
  nvtx_.BecomeInert();
  source_->BecomeInert();
  outlets_->CloseInChild();
}

std::shared_ptr<const StepReport> Session::Engine::LastReport() const {
  MutexLock lock(mutex_);
  return last_;
}

RunTotals Session::Engine::Totals() const {
  MutexLock lock(mutex_);
  return totals_;
}

std::string Session::Engine::Summary() const {
  RunTotals totals;
  std::vector<CoverageGap> gaps;
  {
    MutexLock lock(mutex_);
    totals = totals_;
    gaps = largest_gaps_;
  }
  return RenderSummary(description_, totals, gaps);
}

SessionState Session::Engine::State() const {
  MutexLock lock(mutex_);
  return state_;
}

}  // namespace flopledger
