#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <queue>
#include <string>
#include <unordered_map>
#include <vector>

#include "collect/trace/nsys_layout.h"
#include "collect/trace/range_stacks.h"
#include "collect/trace/sqlite_file.h"
#include "collect/trace/trace_formats.h"

namespace flopledger {

/// One process of an Nsight Systems export: GPU work in launch order, joined to its runtime call by
/// process and correlation id, merged with the NVTX ranges of its threads, which give steps,
/// sections and, where PyTorch annotated them, ops.
///
/// Memory: the rows that are in flight, the open ranges, and the caches of SQLite.
class NsysSource final : public TraceSource {
 public:
  NsysSource(std::shared_ptr<SqliteFile> file, const NsysLayout& layout, NsysProcess process,
             int index, const TraceOptions& options);
  ~NsysSource() override;

  Result<bool> Read(RecordBatch& batch) override;

 private:
  struct Pending {
    std::int64_t time_ns = 0;
    MarkerRecord marker;
    bool operator>(const Pending& other) const { return time_ns > other.time_ns; }
  };
  struct Range {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    std::string text;
    std::int64_t thread = 0;
    bool nested = false;
    std::optional<std::int64_t> payload;
  };

  Result<bool> Begin();
  Result<bool> FillLaunches();
  Result<bool> CopyRows(const std::string& table, const NsysSelection& selection, int columns);
  Result<std::string> WorkTable();
  Result<std::string> RangeTable();
  Result<bool> NextWork();
  Result<bool> NextRange();
  Result<bool> TakeWork(RecordBatch& batch);
  void TakeRange(const Range& range, RecordBatch& batch);
  bool TakeStep(const Range& range, RecordBatch& batch);
  std::optional<SignatureId> InternOp(std::string_view text, RangeStacks::Range& range);
  Result<KernelId> InternKernel(KernelRecord::Kind kind);
  Result<std::string> NameOf(std::int64_t id);
  void Finish();

  std::shared_ptr<SqliteFile> file_;
  const NsysLayout layout_;
  const NsysProcess process_;
  const std::string index_;  // of the source, in names of temporary tables
  const std::string launches_;
  const bool lenient_;
  const std::vector<std::string> step_names_;
  const std::function<void(std::uint64_t, std::uint64_t)> progress_;

  bool begun_ = false;
  bool finished_ = false;
  std::optional<SqliteRows> work_;
  std::optional<SqliteRows> ranges_;
  std::optional<SqliteRows> strings_;
  bool have_work_ = false;
  std::optional<Range> range_;
  std::priority_queue<Pending, std::vector<Pending>, std::greater<>> ends_;
  RangeStacks stacks_;
  std::unordered_map<std::int64_t, std::string> names_;
  std::unordered_map<std::int64_t, std::string> copy_kinds_;

  std::optional<std::int64_t> step_thread_;
  std::optional<std::int64_t> section_thread_;
  std::int64_t step_end_ns_ = 0;
  std::int64_t next_step_ = 0;
};

}  // namespace flopledger
