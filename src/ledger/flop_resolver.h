#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/signature_table.h"
#include "flopledger/step_report.h"
#include "flops/op_rules.h"
#include "timeline/step_timeline.h"

namespace flopledger {

/// Ops of one signature in one phase, with their cost and where it is from.
struct ResolvedOp {
  OpSum sum;
  std::string name;
  OpCost cost;
  FlopSource source = FlopSource::kOpShapes;
};

/// Finds the FLOPs of a signature: asks its evidence in order of trust and takes the first answer
/// that is not `unknown`. Answers are kept, since a signature never changes.
///
///     FlopResolver resolver({{FlopSource::kOpShapes, CountOp}});
///     std::vector<ResolvedOp> ops = resolver.Resolve(timeline.ops, table);
///
/// Thread: one. Fails: never; without an answer the op stays `unknown`, with the reason.
class FlopResolver {
 public:
  struct Evidence {
    FlopSource source = FlopSource::kOpShapes;
    std::function<OpCost(const OpSignature&)> count;
  };

  explicit FlopResolver(std::vector<Evidence> evidence) : evidence_(std::move(evidence)) {}

  std::vector<ResolvedOp> Resolve(const std::vector<OpSum>& sums, const SignatureTable& table);

 private:
  struct Answer {
    bool known = false;
    ResolvedOp op;
  };
  const ResolvedOp& AnswerOf(SignatureId id, const SignatureTable& table);

  const std::vector<Evidence> evidence_;
  std::vector<Answer> answers_;  // by signature id
};

}  // namespace flopledger
