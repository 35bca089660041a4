#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "base/signature_table.h"
#include "collect/trace/kineto_records.h"
#include "flopledger/records.h"

namespace flopledger {

/// What linking found to be odd.
struct KinetoLinkCounts {
  std::int64_t unlaunched = 0;  ///< work without the record of its launch
  std::int64_t unlaunched_ns = 0;
  std::int64_t untimed = 0;             ///< work whose times cannot be
  std::int64_t before_launch = 0;       ///< of these: begins well before its launch
  std::int64_t shared_correlation = 0;  ///< work beyond the first of a launch that is no graph
  std::int64_t duplicates = 0;
};

/// Joins what a trace recorded apart: work to the call that launched it (by correlation id), the
/// call to the ops that enclose it (innermost first, on its thread), ops to phases. Then hands all
/// out in launch order.
///
/// * The op of a piece of work is the nearest one around its launch that has a counting rule, or
///   the innermost if none has.
/// * Of ops with a counting rule within each other only the innermost that can be counted keeps its
///   name, the others are `flopledger::composite`: nothing is counted twice.
/// * An op under an autograd node is backward; one that autograd records there is recomputation.
/// * External ids are not used: they name the op that was open when the profiler looked.
///
/// Thread: one. Fails: never.
class KinetoLinker {
 public:
  /// Can the op behind this signature be counted?
  using Countable = std::function<bool(const OpSignature&)>;

  KinetoLinker(KinetoRecords records, SignatureTable& signatures, const Countable& countable);

  /// The next records in launch order; false at the end.
  bool Next(RecordBatch& batch);
  const KinetoLinkCounts& counts() const { return counts_; }
  const std::vector<KinetoStep>& steps() const { return records_.steps; }
  std::int64_t base_ns() const { return records_.base_ns.value_or(0); }

 private:
  struct Edge {
    std::int64_t time_ns = 0;
    std::int64_t step = 0;
    bool begin = false;
  };
  static constexpr std::uint32_t kNone = 0xffffffff;

  void SortSteps();
  void NestOps(const SignatureTable& signatures);
  void SetPhases();
  void MarkComposites(SignatureTable& signatures, const Countable& countable);
  void LinkWork();
  void LinkOne(KinetoWork& work, const KinetoCall* call);
  std::uint32_t InnermostAt(std::uint16_t thread, std::int64_t time_ns) const;
  void SortOutput();
  void KeepCountedOps();
  void CountDuplicates();

  KinetoRecords records_;
  KinetoLinkCounts counts_;
  std::vector<std::uint32_t> parents_;      // of ops; kNone: outermost
  std::vector<std::uint32_t> thread_ends_;  // ops of thread t end before [t]
  std::vector<Edge> edges_;
  std::uint16_t first_device_ = 0;  // for ops that gave work to none
  SignatureId composite_ = kOverflowSignature;
  std::size_t next_work_ = 0;
  std::size_t next_op_ = 0;
  std::size_t next_edge_ = 0;
};

}  // namespace flopledger
