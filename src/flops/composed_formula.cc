#include <utility>

#include "flopledger/model_flops.h"
#include "model_formula.h"

namespace flopledger {
namespace {

/// Work that the caller's code returns.
class FunctionFormula final : public ModelFlops::Formula {
 public:
  FunctionFormula(std::string_view name, PartsFunction function) : function_(std::move(function)) {
    description = "function " + std::string(name);
    needs_sequence_lengths = true;  // it may look at them
  }

  Result<DeclaredWork> Evaluate(const Workload& workload, const FlopConvention&) const override {
    Result<void> valid = flops::Validate(workload);
    if (!valid.has_value()) return tl::unexpected(valid.error());
    Result<std::vector<DeclaredPart>> parts = function_(workload);
    if (!parts.has_value()) return tl::unexpected(parts.error());
    flops::Exact forward;
    flops::Exact backward;
    for (DeclaredPart& part : *parts) {
      if (part.forward.count() < 0 || part.backward_input.count() < 0 ||
          part.backward_weight.count() < 0) {
        return InvalidArgument(description + " gives negative FLOPs for '" + part.name + "'");
      }
      if (workload.passes == Passes::kForwardOnly) {
        part.backward_input = {};
        part.backward_weight = {};
      }
      forward += part.forward.count();
      backward += flops::Exact(part.backward_input.count()) + part.backward_weight.count();
    }
    if (!(forward + backward).valid()) {
      return Fail(StatusCode::kOverflow, description + " gives more than 128 bits hold");
    }
    return DeclaredWork{.forward = Flops::FromInteger(forward.value()),
                        .backward = Flops::FromInteger(backward.value()),
                        .parts = *std::move(parts)};
  }

  Result<DeclaredTotal> EvaluateTotal(const Workload& workload,
                                      const FlopConvention& convention) const override {
    Result<DeclaredWork> work = Evaluate(workload, convention);
    if (!work.has_value()) return tl::unexpected(work.error());
    return DeclaredTotal{.forward = work->forward, .backward = work->backward};
  }

  Result<flops::TermList> Compile(const FlopConvention&) const override {
    return Fail(StatusCode::kUnsupported, description + " has no lines to explain");
  }

 private:
  PartsFunction function_;
};

/// A model with forward passes of another one beside it.
class PairedFormula final : public ModelFlops::Formula {
 public:
  PairedFormula(ModelFlops first, ModelFlops second, std::string_view name, std::int64_t passes)
      : first_(std::move(first)), second_(std::move(second)), name_(name), passes_(passes) {
    description =
        first_.Describe() + " + " + std::to_string(passes) + " forward of " + second_.Describe();
    needs_sequence_lengths = first_.NeedsSequenceLengths() || second_.NeedsSequenceLengths();
    size = first_.Size();
  }

  Result<DeclaredWork> Evaluate(const Workload& workload,
                                const FlopConvention& convention) const override {
    Result<DeclaredWork> work = first_.Evaluate(workload, convention);
    if (!work.has_value()) return work;
    Result<DeclaredWork> beside = second_.Evaluate(ForwardOnly(workload), convention);
    if (!beside.has_value()) return beside;
    Result<Flops> forward = Sum(work->forward, beside->forward);
    if (!forward.has_value()) return tl::unexpected(forward.error());
    work->forward = *forward;
    work->approximate = work->approximate || beside->approximate;
    for (DeclaredPart& part : beside->parts) {
      part.name = name_ + "." + part.name;
      part.forward = part.forward * passes_;
      part.kind = PartKind::kHead;  // nothing of it is kept for a backward pass, or replayed
      work->parts.push_back(std::move(part));
    }
    return work;
  }

  Result<DeclaredTotal> EvaluateTotal(const Workload& workload,
                                      const FlopConvention& convention) const override {
    Result<DeclaredTotal> total = first_.EvaluateTotal(workload, convention);
    if (!total.has_value()) return total;
    Result<DeclaredTotal> beside = second_.EvaluateTotal(ForwardOnly(workload), convention);
    if (!beside.has_value()) return beside;
    Result<Flops> forward = Sum(total->forward, beside->forward);
    if (!forward.has_value()) return tl::unexpected(forward.error());
    total->forward = *forward;
    return total;
  }

  Result<flops::TermList> Compile(const FlopConvention&) const override {
    return Fail(StatusCode::kUnsupported, description + ": explain the two models one by one");
  }

 private:
  static Workload ForwardOnly(const Workload& workload) {
    Workload forward = workload;
    forward.passes = Passes::kForwardOnly;
    return forward;
  }
  Result<Flops> Sum(Flops own, Flops beside) const {
    const flops::Exact sum = flops::Exact(beside.count()) * passes_ + own.count();
    if (!sum.valid()) {
      return Fail(StatusCode::kOverflow, "the work of this step leaves 128 bits");
    }
    return Flops::FromInteger(sum.value());
  }

  ModelFlops first_;
  ModelFlops second_;
  std::string name_;
  std::int64_t passes_;
};

}  // namespace

Result<ModelFlops> ModelFlops::FromFunction(std::string_view name, PartsFunction function) {
  if (!function) return InvalidArgument("the function of a model is empty");
  return ModelFlops(std::make_shared<FunctionFormula>(name, std::move(function)));
}

Result<ModelFlops> ModelFlops::WithForwardPassesOf(const ModelFlops& other, std::string_view name,
                                                   std::int64_t passes) const {
  if (passes < 1 || passes > (std::int64_t{1} << 30)) {
    return InvalidArgument("passes is " + std::to_string(passes) + "; accepted: 1 to 2^30");
  }
  return ModelFlops(std::make_shared<PairedFormula>(*this, other, name, passes));
}

}  // namespace flopledger
