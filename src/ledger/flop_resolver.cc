#include "ledger/flop_resolver.h"

namespace flopledger {

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

}  // namespace flopledger
