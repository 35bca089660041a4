#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/kernel_table.h"
#include "base/signature_table.h"
#include "collect/device_source.h"
#include "collect/record_source.h"
#include "flopledger/status.h"

namespace flopledger {

/// How a trace file is read. The classifiers are the counting rules' (this layer has none).
struct TraceOptions {
  bool lenient = false;  ///< recover from broken text, and say what was lost
  /// A compressed file that inflates to more is refused.
  std::uint64_t max_inflated_bytes = std::uint64_t{16} << 30;
  /// Called now and then with the bytes of the file that are read, and its size.
  std::function<void(std::uint64_t done_bytes, std::uint64_t total_bytes)> progress;
  KernelTable::Classifier classify_kernel;
  SignatureTable::Classifier classify_op;
  /// Names of ops whose arguments matter; sorted. Of an op of these that contains another of these
  /// only the inner one is reported under its name (`flopledger::composite`).
  std::vector<std::string_view> counted_ops;
  /// Names of annotated ranges that are steps (`*` any text, `?` any letter); empty:
  /// `ProfilerStep*`, and `step`, `train_step`, `iteration` with a number (range_names.h).
  std::vector<std::string> step_names;
  /// Can a call of these be counted? Of ops within each other the innermost that can keeps its
  /// name.
  std::function<bool(const OpSignature&)> countable;
  std::size_t table_capacity = 65536;  ///< kernel and op signatures, each
};

/// Something odd that was read all the same, counted by kind.
struct TraceWarning {
  std::string kind;  ///< closed set, lower snake case: `negative_duration`
  std::int64_t count = 0;
  std::string text;  ///< one sentence for people, of the first case
};

/// Work that is kept, but of which something is unknown: `unlaunched`, `no_shapes`, `untimed`.
struct TraceGap {
  std::string kind;
  std::int64_t count = 0;
  DurationNs time;
  std::string text;
};

/// A step as the file names it: its host window.
struct TraceStep {
  std::string name;         ///< as recorded: `ProfilerStep#15`
  std::int64_t number = 0;  ///< what its markers carry
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
};

/// A hardware counter that the file holds, summed over its ranges.
struct TraceCounter {
  std::string name;
  std::int64_t sum = 0;
  std::int64_t ranges = 0;
};

/// What a trace says about itself. Complete after the last `Read`.
struct TraceDescription {
  std::string format;  ///< `kineto`, `nsys`, `xplane`, `capture`
  std::string name;    ///< of the part of the file, if it has several: a member, a process
  std::optional<int> rank;
  std::optional<int> world_size;
  std::vector<DeviceDescription> devices;  ///< those that worked; names as recorded, maybe empty
  std::vector<TraceStep> steps;            ///< sorted by start
  std::vector<TraceWarning> warnings;
  std::vector<TraceGap> gaps;
  std::vector<TraceCounter> counters;
  bool cut = false;  ///< lenient: the file ended early
  std::uint64_t file_bytes = 0;
  std::uint64_t text_bytes = 0;  ///< inflated
  std::int64_t events = 0;
};

/// The records of one process (rank) in a trace file.
///
///     auto sources = OpenTrace("trace.json.gz", options);          // trace_formats.h
///     for (RecordBatch batch; ; batch.Clear()) {
///       Result<bool> more = sources->front()->Read(batch);         // fails: position and reason
///       if (!more.has_value() || !*more) break;
///     }
///
/// Portions come in launch order (`KernelRecord::launch_order` where it is known, else the start),
/// with step markers (`kStepBegin`, one `FenceRecord` of the same time, `kStepEnd`) before what
/// comes after them: so no step has to stay open for long. Ops carry host times.
///
/// Thread: one. Ownership: tables and description live as long as the source.
class TraceSource : public RecordSource {
 public:
  /// Appends the next portion; false, with nothing appended, at the end of the trace.
  virtual Result<bool> Read(RecordBatch& batch) = 0;

  /// `Read`, with a failure kept in `failure()`.
  void Drain(RecordBatch& batch) override;
  void Stop() override { stopped_ = true; }
  const std::optional<Status>& failure() const { return failure_; }

  const TraceDescription& description() const { return description_; }
  const KernelTable& kernels() const { return kernels_; }
  const SignatureTable& signatures() const { return signatures_; }

 protected:
  explicit TraceSource(const TraceOptions& options);

  /// Counts a warning; the text of the first of a kind is kept.
  void Warn(std::string_view kind, std::string_view text, std::int64_t count = 1);
  void Gap(std::string_view kind, std::string_view text, std::int64_t count, DurationNs time);

  TraceDescription description_;
  KernelTable kernels_;
  SignatureTable signatures_;

 private:
  bool stopped_ = false;
  std::optional<Status> failure_;
};

}  // namespace flopledger
