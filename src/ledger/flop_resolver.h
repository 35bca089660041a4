#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/kernel_table.h"
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

/// Device work of one signature that one op launched in one phase: what it is, and whether its
/// FLOPs are known (they are in the op's count, never here). `name` lives in the kernel table.
struct ResolvedKernel {
  KernelSum sum;
  std::string_view name;
  OpClass op_class = OpClass::kUnknown;
  CoverageKind coverage = CoverageKind::kUnknown;
  GapReason reason = GapReason::kNoOp;
  std::optional<DType> dtype;  ///< of the op's count
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

  /// Work of a kernel is known if the op that launched it is counted. Copies and communication are
  /// what they are, whatever launched them; beyond that an op's rule decides before the kernel's
  /// name does.
  std::vector<ResolvedKernel> ResolveKernels(const std::vector<KernelSum>& sums,
                                             const KernelTable& kernels, const SignatureTable& ops);

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
