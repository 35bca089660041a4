#include "ledger/flop_resolver.h"

namespace flopledger {
namespace {

// Kinds that every convention leaves out; the others may have FLOPs, and without an op nobody
// knows how many.
bool IsOutside(OpClass op_class) {
  switch (op_class) {
    case OpClass::kElementwise:
    case OpClass::kNormalization:
    case OpClass::kReduction:
    case OpClass::kIndexing:
    case OpClass::kRandom:
    case OpClass::kCopy:
    case OpClass::kCommunication:
      return true;
    default:
      return false;
  }
}

ResolvedKernel ByName(const KernelSum& sum, GapReason reason) {
  return {.sum = sum,
          .op_class = sum.op_class,
          .coverage = IsOutside(sum.op_class) ? CoverageKind::kOutside : CoverageKind::kUnknown,
          .reason = reason};
}

ResolvedKernel ByOp(const KernelSum& sum, const OpCost& cost) {
  if (cost.coverage == CoverageKind::kUnknown) return ByName(sum, cost.reason);
  ResolvedKernel kernel{.sum = sum, .op_class = cost.op_class, .coverage = cost.coverage};
  if (cost.coverage == CoverageKind::kCounted) kernel.dtype = cost.dtype;
  return kernel;
}

}  // namespace

const ResolvedOp& FlopResolver::AnswerOf(SignatureId id, const SignatureTable& table) {
  if (answers_.size() <= id) answers_.resize(id + 1);
  Answer& answer = answers_[id];
  if (answer.known) return answer.op;
  answer.known = true;
  const OpSignature* signature = table.Find(id);
  if (signature == nullptr) {
    answer.op.name = "(signature table full)";
    answer.op.cost.reason = GapReason::kSignatureTableFull;
    return answer.op;
  }
  answer.op.name = signature->name;
  bool first = true;
  for (const Evidence& evidence : evidence_) {
    OpCost cost = evidence.count(*signature);
    if (!first && cost.coverage == CoverageKind::kUnknown) continue;
    first = false;
    answer.op.source = evidence.source;
    answer.op.cost = std::move(cost);
    if (answer.op.cost.coverage != CoverageKind::kUnknown) break;
  }
  return answer.op;
}

std::vector<ResolvedOp> FlopResolver::Resolve(const std::vector<OpSum>& sums,
                                              const SignatureTable& table) {
  std::vector<ResolvedOp> resolved;
  resolved.reserve(sums.size());
  for (const OpSum& sum : sums) {
    resolved.push_back(AnswerOf(sum.signature, table));
    resolved.back().sum = sum;
  }
  return resolved;
}

std::vector<ResolvedKernel> FlopResolver::ResolveKernels(const std::vector<KernelSum>& sums,
                                                         const KernelTable& kernels,
                                                         const SignatureTable& ops) {
  std::vector<ResolvedKernel> resolved;
  resolved.reserve(sums.size());
  for (const KernelSum& sum : sums) {
    const bool own_class = ActivityOf(sum.op_class) != ActivityClass::kCompute;
    if (own_class || !sum.op_known) {
      resolved.push_back(ByName(sum, GapReason::kNoOp));
    } else {
      const OpCost& cost = AnswerOf(sum.op, ops).cost;
      // A composite op computes nothing itself: what it launched is not its count.
      resolved.push_back(ActivityOf(cost.op_class) == ActivityClass::kNone
                             ? ByName(sum, GapReason::kNoRule)
                             : ByOp(sum, cost));
    }
    const KernelSignature* signature = kernels.Find(sum.kernel);
    if (signature == nullptr) {
      resolved.back().name = "(kernel table full)";
    } else {
      resolved.back().name =
          signature->name.empty() ? "(kernel without a name)" : std::string_view(signature->name);
    }
  }
  return resolved;
}

}  // namespace flopledger
