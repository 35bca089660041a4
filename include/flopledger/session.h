#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flopledger/convention.h"
#include "flopledger/host_ops.h"
#include "flopledger/model_flops.h"
#include "flopledger/nvtx.h"
#include "flopledger/peak.h"
#include "flopledger/report_sink.h"
#include "flopledger/run_totals.h"
#include "flopledger/status.h"
#include "flopledger/step_report.h"

namespace flopledger {

/// Where the metrics page listens. Loopback only, unless `allow_remote` says otherwise.
struct HttpOptions {
  bool enabled = true;
  std::string address = "127.0.0.1";
  int base_port = 9410;               ///< port = base_port + local rank; 0: any free port
  bool fallback_to_any = true;        ///< a taken port: take a free one, say so once
  bool allow_remote = false;          ///< permit an address other than loopback
  std::string discovery_folder = {};  ///< write a Prometheus file_sd JSON here; empty: none
};

/// Are kernels of GPUs to be recorded? `kAuto`: where the library and the driver allow it.
enum class DeviceRecords : std::uint8_t { kAuto, kOff };

/// Everything that a session is built from. An aggregate with defaults: set what you need.
struct SessionOptions {
  RunIdentity identity = {};             ///< empty run_id: made from the start time and process id
  std::optional<ModelFlops> model = {};  ///< no formula: MFU is refused with `no_declaration`
  FlopConvention convention = {};
  std::vector<PeakRate> peaks = {};  ///< per dtype, of one device
  DType dtype = DType::kFloat32;     ///< what the run's matmuls are declared to be
  int device_count = 1;              ///< devices of this process that take part
  std::int64_t sequence_length = 0;  ///< default row length of `Tokens`; 0: every call gives it
  int warmup_steps = 1;
  int window_steps = 20;     ///< of the `flopledger_window_...` gauges and the log line
  int log_every_steps = 10;  ///< 0: no log line
  bool host_ops = true;      ///< an observer will feed `HostOps()`
  DeviceRecords device_records = DeviceRecords::kAuto;
  double overhead_budget_ratio = 0.01;  ///< above it device records are switched off; 0: no limit
  std::string jsonl_path = {};          ///< step log; empty: none
  std::string capture_path = {};        ///< raw records for `flopledger replay`; empty: none
  std::int64_t capture_max_bytes = std::int64_t{1} << 30;  ///< the capture ends there, and says so
  std::string log_level = "info";                          ///< debug, info, warning, error, off
  HttpOptions http = {};
  NvtxOptions nvtx = {};
  bool handle_sigterm = true;  ///< flush closed steps when SIGTERM would end the process
  bool manual_pump = false;    ///< no worker thread; the owner calls `PumpOnce`
  std::vector<std::unique_ptr<ReportSink>> sinks = {};  ///< besides the built-in ones
};

/// Tokens of one micro-batch. Give `lengths` (useful tokens per row) where rows are padded or
/// packed; without them the useful tokens are split evenly over the rows, and the report says so.
struct TokenDeclaration {
  std::int64_t useful = 0;
  std::int64_t padded = 0;           ///< all tokens that were computed; 0: as many as useful
  std::int64_t sequence_length = 0;  ///< row length; 0: the session's default
  std::span<const std::int64_t> lengths = {};  ///< useful tokens per row (or per packed document)
};

/// The engine in a process: one run's books from records to reports. Construct it before training,
/// mark the steps, close it at the end.
///
///     auto session = Session::Create({.model = *model, .peaks = {peak}, .sequence_length = 128});
///     for (...) {
///       auto step = (*session)->Step();
///       train();
///       step.Tokens({.useful = 8 * 128});
///     }
///     (*session)->Close();
///
/// Thread: `Step`, sections and tokens from any one thread at a time; the rest from any thread.
/// Ownership: owns its worker, server, sinks. After `fork` the child's copy is inert.
/// Fails: `Create` only, with the name of the field. Afterwards nothing throws, blocks without
/// limit or ends the process; a fault latches `SessionState::Collector::kDisabled` and is said
/// once.
class FLOPLEDGER_EXPORT Session {
 public:
  static Result<std::unique_ptr<Session>> Create(SessionOptions options);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Marks a step for as long as it lives; an exception that unwinds it makes the step incomplete.
  class FLOPLEDGER_EXPORT StepScope {
   public:
    explicit StepScope(Session* session, std::optional<std::int64_t> step);
    ~StepScope();
    StepScope(const StepScope&) = delete;
    StepScope& operator=(const StepScope&) = delete;
    void Tokens(const TokenDeclaration& tokens) noexcept { session_->Tokens(tokens); }

   private:
    Session* session_;
    int exceptions_;
  };
  /// Marks a section (`Phase::kEval`, `Phase::kData`, ...) for as long as it lives. Sections nest.
  class FLOPLEDGER_EXPORT SectionScope {
   public:
    SectionScope(Session* session, Phase phase);
    ~SectionScope();
    SectionScope(const SectionScope&) = delete;
    SectionScope& operator=(const SectionScope&) = delete;

   private:
    Session* session_;
    Phase phase_;
  };

  [[nodiscard]] StepScope Step(std::optional<std::int64_t> step = std::nullopt) noexcept {
    return StepScope(this, step);
  }
  [[nodiscard]] SectionScope Section(Phase phase) noexcept { return SectionScope(this, phase); }

  /// The same without scopes, for bindings. One clock read and one ring write each.
  void BeginStep(std::optional<std::int64_t> step = std::nullopt) noexcept;
  void EndStep(bool failed = false) noexcept;
  void BeginSection(Phase phase) noexcept;
  void EndSection(Phase phase) noexcept;
  void Tokens(const TokenDeclaration& tokens) noexcept;
  /// Work that the caller's own formula gives for the open step.
  void DeclareWork(Flops forward, Flops backward, std::int64_t tokens) noexcept;
  /// The open step's tokens are not to be trusted: its MFU is refused, not wrong.
  void RefuseDeclaration() noexcept;
  /// Says something in our log, each text once.
  void Warn(std::string_view text) noexcept;
  /// A number to publish beside the books: loss, learning rate. At most 16 names.
  void SetValue(std::string_view name, double value) noexcept;
  /// An outcome of a probe outside (an observer that could not be built), for `capability{...}`.
  void SetCapability(std::string_view name, bool available, std::string_view reason) noexcept;

  /// The door for framework observers; valid until the process ends.
  const flopledger_host_ops* HostOps() noexcept;

  /// The last closed step; null before the first one.
  std::shared_ptr<const StepReport> LastReport() const;
  /// The last closed step as flat numbers (`flopledger/mfu`, ...), for a user's own logger.
  /// What is not known is left out.
  std::vector<std::pair<std::string, double>> LastValues() const;
  RunTotals Totals() const;
  /// The table that is also printed at exit.
  std::string Summary() const;
  RunDescription Description() const;
  SessionState State() const;
  /// `http://127.0.0.1:9410`, or empty.
  std::string Address() const;
  std::string JsonlPath() const;

  /// Takes what has arrived through the pipeline now, on the calling thread (`manual_pump` only).
  void PumpOnce() noexcept;
  /// Closes the last step, flushes, stops. Waits `limit` at the most. Twice is once.
  void Close(DurationNs limit = DurationNs(5'000'000'000)) noexcept;

 private:
  class Engine;
  friend struct SessionParts;
  explicit Session(std::shared_ptr<Engine> engine);
  std::shared_ptr<Engine> engine_;
};

}  // namespace flopledger
