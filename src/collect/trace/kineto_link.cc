#include "collect/trace/kineto_link.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <tuple>

#include "collect/trace/range_names.h"

namespace flopledger {
namespace {

/// How far a kernel may begin before its launch call and still be believed: clocks of host and
/// device differ by some microseconds (pytorch/kineto 1380).
constexpr std::int64_t kSkewToleranceNs = 5'000;
constexpr std::size_t kPortion = 16384;
/// Ops deeper than this hold none: a limit to the work that a hostile file can ask for.
constexpr std::size_t kDeepest = 4096;

std::int64_t OrderOf(const KernelRecord& kernel) {
  return kernel.launch_known ? kernel.launch_order : kernel.start_ns;
}

}  // namespace

KinetoLinker::KinetoLinker(KinetoRecords records, SignatureTable& signatures,
                           const Countable& countable)
    : records_(std::move(records)) {
  SortSteps();
  NestOps(signatures);
  SetPhases();
  MarkComposites(signatures, countable);
  LinkWork();
  KeepCountedOps();
  SortOutput();
}

void KinetoLinker::SortSteps() {
  std::sort(
      records_.steps.begin(), records_.steps.end(), [](const KinetoStep& a, const KinetoStep& b) {
        return std::tie(a.start_ns, a.end_ns, a.name) < std::tie(b.start_ns, b.end_ns, b.name);
      });
  // The same step on several threads or in two categories is one step.
  records_.steps.erase(std::unique(records_.steps.begin(), records_.steps.end(),
                                   [](const KinetoStep& a, const KinetoStep& b) {
                                     return a.name == b.name && a.start_ns == b.start_ns;
                                   }),
                       records_.steps.end());
  std::int64_t position = 0;
  for (KinetoStep& step : records_.steps) {
    step.number = NumberInName(step.name).value_or(position);
    ++position;
    edges_.push_back({.time_ns = step.start_ns, .step = step.number, .begin = true});
    edges_.push_back({.time_ns = step.end_ns, .step = step.number, .begin = false});
  }
  std::sort(edges_.begin(), edges_.end(), [](const Edge& a, const Edge& b) {
    return std::tie(a.time_ns, a.begin, a.step) < std::tie(b.time_ns, b.begin, b.step);
  });
}

void KinetoLinker::NestOps(const SignatureTable& signatures) {
  GrowingArray<KinetoOp>& ops = records_.ops;
  std::sort(ops.begin(), ops.end(), [&signatures](const KinetoOp& a, const KinetoOp& b) {
    const auto key = [](const KinetoOp& op) {
      return std::make_tuple(op.thread, op.start_ns, -op.end_ns, op.order);
    };
    if (key(a) != key(b)) return key(a) < key(b);
    if (a.signature == b.signature) return false;
    const OpSignature* first = signatures.Find(a.signature);
    const OpSignature* second = signatures.Find(b.signature);
    if (first == nullptr || second == nullptr) return first == nullptr && second != nullptr;
    return first->name < second->name;
  });
  parents_.assign(ops.size(), kNone);
  std::vector<std::uint32_t> open;
  for (std::uint32_t i = 0; i < ops.size(); ++i) {
    if (i == 0 || ops[i].thread != ops[i - 1].thread) {
      open.clear();
      thread_ends_.resize(ops[i].thread, i);
    }
    while (!open.empty() && ops[open.back()].end_ns <= ops[i].start_ns) open.pop_back();
    if (!open.empty()) parents_[i] = open.back();
    if (ops[i].end_ns > ops[i].start_ns && open.size() < kDeepest) open.push_back(i);
  }
  thread_ends_.resize(std::size_t{0xffff} + 1, static_cast<std::uint32_t>(ops.size()));
}

void KinetoLinker::SetPhases() {
  // Ranges by thread and start; the innermost that encloses an op's start names its phase.
  std::vector<KinetoAnnotation>& ranges = records_.annotations;
  std::sort(ranges.begin(), ranges.end(), [](const KinetoAnnotation& a, const KinetoAnnotation& b) {
    return std::make_tuple(a.thread, a.start_ns, -a.end_ns, a.phase) <
           std::make_tuple(b.thread, b.start_ns, -b.end_ns, b.phase);
  });
  GrowingArray<KinetoOp>& ops = records_.ops;
  std::vector<const KinetoAnnotation*> open;
  std::size_t next = 0;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    KinetoOp& op = ops[i];
    if (i == 0 || op.thread != ops[i - 1].thread) open.clear();
    while (next < ranges.size() && ranges[next].thread < op.thread) ++next;
    for (; next < ranges.size() && ranges[next].thread == op.thread &&
           ranges[next].start_ns <= op.start_ns;
         ++next) {
      open.push_back(&ranges[next]);
    }
    while (!open.empty() && open.back()->end_ns <= op.start_ns) open.pop_back();
    const Phase outer = parents_[i] == kNone ? Phase::kForward : ops[parents_[i]].phase;
    op.phase = outer;
    if (op.autograd_node) {
      op.phase = Phase::kBackward;
    } else if (outer == Phase::kBackward || outer == Phase::kRecompute) {
      if (op.grad_mode) op.phase = Phase::kRecompute;
    } else if (!open.empty()) {
      op.phase = open.back()->phase;
    }
  }
}

void KinetoLinker::MarkComposites(SignatureTable& signatures, const Countable& countable) {
  GrowingArray<KinetoOp>& ops = records_.ops;
  constexpr std::uint8_t kUnknown = 0;
  constexpr std::uint8_t kYes = 1;
  constexpr std::uint8_t kNo = 2;
  std::vector<std::uint8_t> answers(signatures.size() + 1, kUnknown);
  const auto can_be_counted = [&](const KinetoOp& op) {
    std::uint8_t& answer = answers[op.signature];
    if (answer == kUnknown) {
      const OpSignature* signature = signatures.Find(op.signature);
      answer = signature != nullptr && countable && countable(*signature) ? kYes : kNo;
    }
    return answer == kYes;
  };
  composite_ = signatures.Intern({.name = "flopledger::composite", .arguments = {}});
  std::vector<bool> composite(ops.size(), false);
  // From the inside out: children have larger numbers than their parents.
  for (std::size_t i = ops.size(); i-- > 0;) {
    if (!ops[i].has_rule || composite[i] || !can_be_counted(ops[i])) continue;
    for (std::uint32_t up = parents_[i]; up != kNone; up = parents_[up]) {
      if (!ops[up].has_rule) continue;
      if (composite[up]) break;  // and so are those around it
      composite[up] = true;
    }
  }
  // What cannot be counted is part of the op around it that can, or itself the whole of it.
  for (std::size_t i = ops.size(); i-- > 0;) {
    if (!ops[i].has_rule || composite[i] || can_be_counted(ops[i])) continue;
    for (std::uint32_t up = parents_[i]; up != kNone; up = parents_[up]) {
      if (!ops[up].has_rule || composite[up]) continue;
      composite[can_be_counted(ops[up]) ? i : up] = true;
      if (composite[i]) break;
    }
  }
  for (std::uint32_t i = 0; i < ops.size(); ++i) {
    if (composite[i]) ops[i].signature = composite_;
  }
}

void KinetoLinker::KeepCountedOps() {
  GrowingArray<KinetoOp>& ops = records_.ops;
  parents_ = {};
  std::size_t kept = 0;
  for (const KinetoOp& op : ops) {
    if (op.has_rule && op.signature != composite_) ops[kept++] = op;
  }
  ops.Truncate(kept);
  std::sort(ops.begin(), ops.end(), [](const KinetoOp& a, const KinetoOp& b) {
    return std::tie(a.start_ns, a.end_ns, a.thread, a.order) <
           std::tie(b.start_ns, b.end_ns, b.thread, b.order);
  });
}

std::uint32_t KinetoLinker::InnermostAt(std::uint16_t thread, std::int64_t time_ns) const {
  const GrowingArray<KinetoOp>& ops = records_.ops;
  const auto begin = ops.begin() + (thread == 0 ? 0 : thread_ends_[thread - 1]);
  const auto end = ops.begin() + thread_ends_[thread];
  const auto after =
      std::upper_bound(begin, end, time_ns,
                       [](std::int64_t time, const KinetoOp& op) { return time < op.start_ns; });
  if (after == begin) return kNone;
  auto at = static_cast<std::uint32_t>(after - ops.begin()) - 1;
  while (at != kNone && ops[at].end_ns <= time_ns) at = parents_[at];
  return at;
}

void KinetoLinker::LinkOne(KinetoWork& work, const KinetoCall* call) {
  KernelRecord& record = work.record;
  const bool zero = record.start_ns == 0 && record.end_ns == 0;
  bool untimed = zero || record.end_ns < record.start_ns;
  if (call == nullptr) {
    ++counts_.unlaunched;
    if (!untimed) counts_.unlaunched_ns += record.end_ns - record.start_ns;
  } else {
    record.launch_known = true;
    record.launch_order = call->start_ns;
    if (!untimed && record.start_ns < call->start_ns - kSkewToleranceNs) {
      untimed = true;
      ++counts_.before_launch;
    }
    std::uint32_t op = InnermostAt(call->thread, call->start_ns);
    const std::uint32_t innermost = op;
    while (op != kNone && !records_.ops[op].has_rule) op = parents_[op];
    if (op == kNone) op = innermost;
    if (op != kNone) {
      record.op = records_.ops[op].signature;
      record.op_known = true;
      record.phase = records_.ops[innermost].phase;
      for (std::uint32_t up = op; up != kNone && records_.ops[up].device_plus_one == 0;
           up = parents_[up]) {
        records_.ops[up].device_plus_one = static_cast<std::uint16_t>(record.device + 1);
      }
    }
  }
  if (untimed) {
    // Both ends zero is what collectors report for "no timing"; consumers count it as such.
    ++counts_.untimed;
    record.start_ns = 0;
    record.end_ns = 0;
  }
}

void KinetoLinker::LinkWork() {
  GrowingArray<KinetoCall>& calls = records_.calls;
  std::sort(calls.begin(), calls.end(), [](const KinetoCall& a, const KinetoCall& b) {
    return std::tie(a.correlation, a.start_ns, a.thread) <
           std::tie(b.correlation, b.start_ns, b.thread);
  });
  // By correlation, so that calls and work are walked side by side.
  GrowingArray<KinetoWork>& all = records_.work;
  std::sort(all.begin(), all.end(), [](const KinetoWork& a, const KinetoWork& b) {
    const KernelRecord& x = a.record;
    const KernelRecord& y = b.record;
    return std::tie(a.has_correlation, a.correlation, x.device, x.stream, x.start_ns, x.end_ns) <
           std::tie(b.has_correlation, b.correlation, y.device, y.stream, y.start_ns, y.end_ns);
  });
  CountDuplicates();
  for (const KinetoWork& work : all) {
    if (&work == all.begin()) first_device_ = work.record.device;
    first_device_ = std::min(first_device_, work.record.device);
  }
  std::size_t call = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    while (call < calls.size() && calls[call].correlation < all[i].correlation) ++call;
    const bool launched = all[i].has_correlation && call < calls.size() &&
                          calls[call].correlation == all[i].correlation;
    LinkOne(all[i], launched ? &calls[call] : nullptr);
    if (launched && !calls[call].graph && i > 0 && all[i - 1].has_correlation &&
        all[i - 1].correlation == all[i].correlation) {
      ++counts_.shared_correlation;
    }
  }
  calls.Free();
}

void KinetoLinker::CountDuplicates() {
  const GrowingArray<KinetoWork>& all = records_.work;
  for (std::size_t i = 1; i < all.size(); ++i) {
    const KinetoWork& a = all[i - 1];
    const KinetoWork& b = all[i];
    const KernelRecord& x = a.record;
    const KernelRecord& y = b.record;
    if (a.has_correlation && b.has_correlation && a.correlation == b.correlation &&
        x.start_ns == y.start_ns && x.end_ns == y.end_ns && x.kernel == y.kernel &&
        x.stream == y.stream && x.device == y.device && x.end_ns > x.start_ns) {
      ++counts_.duplicates;
    }
  }
}

void KinetoLinker::SortOutput() {
  GrowingArray<KinetoWork>& all = records_.work;
  std::sort(all.begin(), all.end(), [](const KinetoWork& a, const KinetoWork& b) {
    const auto key = [](const KinetoWork& work) {
      const KernelRecord& record = work.record;
      return std::make_tuple(OrderOf(record), record.start_ns, record.end_ns, record.device,
                             record.stream, work.correlation);
    };
    return key(a) < key(b);
  });
}

bool KinetoLinker::Next(RecordBatch& batch) {
  const GrowingArray<KinetoOp>& ops = records_.ops;
  const GrowingArray<KinetoWork>& all = records_.work;
  if (next_work_ == all.size() && next_op_ == ops.size() && next_edge_ == edges_.size()) {
    return false;
  }
  const std::size_t last = std::min(next_work_ + kPortion, all.size());
  // The portion goes up to a time, so that its markers, ops and work belong together.
  std::int64_t until = std::numeric_limits<std::int64_t>::max();
  if (last < all.size()) until = OrderOf(all[last].record);
  const std::int64_t base = base_ns();
  for (; next_edge_ < edges_.size() && edges_[next_edge_].time_ns <= until; ++next_edge_) {
    const Edge& edge = edges_[next_edge_];
    batch.markers.push_back(
        {.time_ns = edge.time_ns + base,
         .step = edge.step,
         .kind = edge.begin ? MarkerRecord::Kind::kStepBegin : MarkerRecord::Kind::kStepEnd});
    batch.fences.push_back(
        {.boundary_ns = edge.time_ns + base, .launch_order = edge.time_ns + base});
  }
  for (; next_op_ < ops.size() && ops[next_op_].start_ns <= until; ++next_op_) {
    const KinetoOp& op = ops[next_op_];
    const int device = op.device_plus_one > 0 ? op.device_plus_one - 1 : first_device_;
    batch.ops.push_back({.start_ns = op.start_ns + base,
                         .end_ns = op.end_ns + base,
                         .self_ns = op.end_ns - op.start_ns,
                         .signature = op.signature,
                         .device = static_cast<std::uint16_t>(device),
                         .phase = op.phase});
  }
  for (; next_work_ < last; ++next_work_) {
    batch.kernels.push_back(all[next_work_].record);
    KernelRecord& kernel = batch.kernels.back();
    if (kernel.launch_known) kernel.launch_order += base;
    if (kernel.start_ns == 0 && kernel.end_ns == 0) continue;
    kernel.start_ns += base;
    kernel.end_ns += base;
  }
  return true;
}

}  // namespace flopledger
