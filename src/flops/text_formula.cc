#include <utility>

#include "expression.h"
#include "flopledger/model_flops.h"
#include "model_formula.h"

namespace flopledger {
namespace {

using flops::Expression;
using flops::Rational;

/// Training FLOPs by a formula text: of one sequence, summed over the sequences.
class TextFormula final : public ModelFlops::Formula {
 public:
  TextFormula(std::string text, Expression expression, FormulaVariables variables)
      : expression_(std::move(expression)), variables_(std::move(variables)) {
    per_sequence_ = expression_.Uses("T") || expression_.Uses("S");
    needs_sequence_lengths = expression_.Uses("S");
    description = "formula " + std::move(text);
    const auto parameters = variables_.find("N");
    if (parameters != variables_.end()) {
      size = {.parameters = parameters->second, .active_parameters = parameters->second};
    }
  }

  Result<DeclaredWork> Evaluate(const Workload& workload,
                                const FlopConvention& convention) const override {
    Result<DeclaredTotal> total = EvaluateTotal(workload, convention);
    if (!total.has_value()) return tl::unexpected(total.error());
    return DeclaredWork{.forward = total->forward,
                        .backward = total->backward,
                        .parts = {{.name = "formula",
                                   .forward = total->forward,
                                   .backward_input = total->backward}},
                        .approximate = true};
  }

  Result<DeclaredTotal> EvaluateTotal(const Workload& workload,
                                      const FlopConvention&) const override {
    Result<void> valid = flops::Validate(workload);
    if (!valid.has_value()) return tl::unexpected(valid.error());
    Result<flops::Exact> sum = Sum(workload);
    if (!sum.has_value()) return tl::unexpected(sum.error());
    if (!sum->valid()) return Fail(StatusCode::kOverflow, "the formula's sum leaves 128 bits");
    if (sum->value() < 0) {
      return InvalidArgument("the formula gives " + ToString(sum->value()) +
                             " FLOPs; accepted: 0 and more");
    }
    const Int128 forward = sum->value() / 3;
    return DeclaredTotal{.forward = Flops::FromInteger(forward),
                         .backward = Flops::FromInteger(
                             workload.passes == Passes::kForwardOnly ? 0 : sum->value() - forward)};
  }

  Result<flops::TermList> Compile(const FlopConvention&) const override {
    return Fail(StatusCode::kUnsupported,
                "a formula text has no lines to explain; it is its own explanation");
  }

 private:
  Result<flops::Exact> Sum(const Workload& workload) const {
    FormulaVariables variables = variables_;
    if (!per_sequence_) {
      flops::Exact samples = workload.samples;
      if (workload.samples == 0) {
        for (const SequenceGroup& group : workload.sequences) samples += group.count;
      }
      variables["B"] = samples.value();
      Result<Int128> value = Round(variables);
      if (!value.has_value()) return tl::unexpected(value.error());
      return flops::Exact(*value);
    }
    flops::Exact sum = 0;
    for (const SequenceGroup& group : workload.sequences) {
      variables["T"] = group.length;
      variables["S"] = group.length;
      Result<Int128> value = Round(variables);
      if (!value.has_value()) return tl::unexpected(value.error());
      sum += flops::Exact(*value) * group.count;
    }
    return sum;
  }

  Result<Int128> Round(const FormulaVariables& variables) const {
    Result<Rational> value = expression_.Evaluate(variables);
    if (!value.has_value()) return tl::unexpected(value.error());
    const std::optional<Int128> rounded = value->Round();
    if (!rounded.has_value()) {
      return Fail(StatusCode::kOverflow, "the formula's value leaves 128 bits");
    }
    return *rounded;
  }

  Expression expression_;
  FormulaVariables variables_;
  bool per_sequence_ = false;
};

}  // namespace

Result<ModelFlops> ModelFlops::FromFormula(std::string_view text,
                                           const FormulaVariables& variables) {
  Result<Expression> expression = Expression::Parse(text);
  if (!expression.has_value()) return tl::unexpected(expression.error());
  std::string missing;
  const bool per_sequence = expression->Uses("T") || expression->Uses("S");
  for (const std::string& name : expression->variables()) {
    const bool bound = name == "T" || name == "S" || (name == "B" && !per_sequence);
    if (bound) {
      if (variables.count(name) > 0) {
        return InvalidArgument("variable '" + name +
                               "' is bound to the step's tokens and takes no value");
      }
      continue;
    }
    if (variables.count(name) == 0) missing += (missing.empty() ? "" : ", ") + name;
  }
  if (!missing.empty()) return InvalidArgument("formula: no value for " + missing);
  return ModelFlops(
      std::make_shared<TextFormula>(std::string(text), *std::move(expression), variables));
}

}  // namespace flopledger
