#include "model_formula.h"

#include <algorithm>
#include <utility>

namespace flopledger::flops {
namespace {

bool IsPairs(QuantityKind kind) {
  return kind == QuantityKind::kHalfPairs || kind == QuantityKind::kSourceHalfPairs ||
         kind == QuantityKind::kCrossHalfPairs;
}

PartKind KindOf(TermClass term_class) {
  switch (term_class) {
    case TermClass::kScores:
    case TermClass::kValues:
      return PartKind::kCoreAttention;
    case TermClass::kHead:
      return PartKind::kHead;
    default:
      return PartKind::kLayers;
  }
}

tl::unexpected<Status> Overflow() {
  return Fail(StatusCode::kOverflow,
              "the work of this step leaves 128 bits; check lengths and counts");
}

}  // namespace

Result<DeclaredWork> EvaluateParts(const TermList& list, const Workload& workload) {
  Result<void> valid = Validate(workload);
  if (!valid.has_value()) return tl::unexpected(valid.error());
  struct Sum {
    std::string_view name;
    PartKind kind = PartKind::kLayers;
    PassTotals totals;
  };
  std::vector<Sum> sums;
  for (const Term& term : list.terms) {
    const PassTotals totals = EvaluateTerm(term, workload);
    auto sum = std::find_if(sums.begin(), sums.end(),
                            [&term](const Sum& s) { return s.name == term.part; });
    if (sum == sums.end())
      sum = sums.insert(sums.end(),
                        Sum{.name = term.part, .kind = KindOf(term.term_class), .totals = {}});
    sum->totals.forward += totals.forward;
    sum->totals.backward_input += totals.backward_input;
    sum->totals.backward_weight += totals.backward_weight;
  }
  const std::int64_t divisor = list.halved ? 2 : 1;
  DeclaredWork work{.approximate = list.approximate};
  Exact forward;
  Exact backward;
  work.parts.reserve(sums.size());
  for (const Sum& sum : sums) {
    const Exact part_forward = sum.totals.forward / divisor;
    const Exact part_input = sum.totals.backward_input / divisor;
    const Exact part_weight = sum.totals.backward_weight / divisor;
    forward += part_forward;
    backward += part_input + part_weight;
    work.parts.push_back({.name = std::string(sum.name),
                          .forward = Flops::FromInteger(part_forward.value()),
                          .backward_input = Flops::FromInteger(part_input.value()),
                          .backward_weight = Flops::FromInteger(part_weight.value()),
                          .kind = sum.kind});
  }
  if (!(forward + backward).valid()) return Overflow();
  work.forward = Flops::FromInteger(forward.value());
  work.backward = Flops::FromInteger(backward.value());
  return work;
}

Result<DeclaredTotal> EvaluateTotals(const TermList& list, const Workload& workload) {
  Result<void> valid = Validate(workload);
  if (!valid.has_value()) return tl::unexpected(valid.error());
  Exact forward;
  Exact backward;
  for (const QuantityTotal& total : list.totals) {
    const Exact units = Measure(total.quantity, workload);
    forward += units * total.forward;
    backward += units * total.backward;
  }
  if (workload.passes == Passes::kForwardOnly) backward = 0;
  if (!(forward + backward).valid()) return Overflow();
  const std::int64_t divisor = list.halved ? 2 : 1;
  return DeclaredTotal{.forward = Flops::FromInteger((forward / divisor).value()),
                       .backward = Flops::FromInteger((backward / divisor).value())};
}

Result<ModelFlops> TermFormula::Create(std::string description, Compiler compiler,
                                       Expander expander) {
  Result<TermList> house = compiler(FlopConvention{});
  if (!house.has_value()) return tl::unexpected(house.error());
  auto formula = std::make_shared<TermFormula>();
  formula->description = std::move(description);
  formula->size = {.parameters = house->parameters, .active_parameters = house->active_parameters};
  formula->needs_sequence_lengths =
      std::any_of(house->terms.begin(), house->terms.end(),
                  [](const Term& term) { return IsPairs(term.quantity.kind); });
  formula->house_ = *std::move(house);
  formula->compiler_ = std::move(compiler);
  formula->expander_ = std::move(expander);
  return ModelFlops(std::move(formula));
}

Result<DeclaredWork> TermFormula::Evaluate(const Workload& workload,
                                           const FlopConvention& convention) const {
  if (convention == FlopConvention{} && !expander_) return EvaluateParts(house_, workload);
  Result<TermList> list = compiler_(convention);
  if (!list.has_value()) return tl::unexpected(list.error());
  return EvaluateParts(*list, expander_ ? expander_(workload) : workload);
}

Result<DeclaredTotal> TermFormula::EvaluateTotal(const Workload& workload,
                                                 const FlopConvention& convention) const {
  if (convention == FlopConvention{}) {
    return EvaluateTotals(house_, expander_ ? expander_(workload) : workload);
  }
  Result<TermList> list = compiler_(convention);
  if (!list.has_value()) return tl::unexpected(list.error());
  return EvaluateTotals(*list, expander_ ? expander_(workload) : workload);
}

Result<TermList> TermFormula::Compile(const FlopConvention& convention) const {
  return compiler_(convention);
}

}  // namespace flopledger::flops
