#pragma once

#include <functional>
#include <memory>
#include <string>

#include "flopledger/model_flops.h"
#include "terms.h"

namespace flopledger {

/// How a model turns a workload into FLOPs.
struct ModelFlops::Formula {
  virtual ~Formula() = default;

  virtual Result<DeclaredWork> Evaluate(const Workload& workload,
                                        const FlopConvention& convention) const = 0;
  virtual Result<DeclaredTotal> EvaluateTotal(const Workload& workload,
                                              const FlopConvention& convention) const = 0;
  /// The lines of arithmetic, for people. Fails: kUnsupported for a formula without lines.
  virtual Result<flops::TermList> Compile(const FlopConvention& convention) const = 0;
  /// The workload as the lines see it: images as sequences of patches.
  virtual Workload Expand(const Workload& workload) const { return workload; }

  std::string description;
  bool needs_sequence_lengths = false;
  ModelSize size;
};

namespace flops {

/// A model that is a list of terms: compiled once for the house convention, on demand for others.
class TermFormula final : public ModelFlops::Formula {
 public:
  using Compiler = std::function<Result<TermList>(const FlopConvention&)>;
  /// Sequences that a workload's samples stand for (an image is a sequence of patches).
  using Expander = std::function<Workload(const Workload&)>;

  static Result<ModelFlops> Create(std::string description, Compiler compiler,
                                   Expander expander = nullptr);

  Result<DeclaredWork> Evaluate(const Workload& workload,
                                const FlopConvention& convention) const override;
  Result<DeclaredTotal> EvaluateTotal(const Workload& workload,
                                      const FlopConvention& convention) const override;
  Result<TermList> Compile(const FlopConvention& convention) const override;
  Workload Expand(const Workload& workload) const override {
    return expander_ ? expander_(workload) : workload;
  }

 private:
  Compiler compiler_;
  Expander expander_;
  TermList house_;
};

Result<DeclaredWork> EvaluateParts(const TermList& list, const Workload& workload);
Result<DeclaredTotal> EvaluateTotals(const TermList& list, const Workload& workload);

}  // namespace flops
}  // namespace flopledger
