#include "terms.h"

#include <algorithm>
#include <utility>

namespace flopledger::flops {
namespace {

std::string WeightShape(const TermBuilder::Weight& weight) {
  std::string text = std::to_string(weight.in) + " -> " + std::to_string(weight.out);
  if (weight.copies > 1) {
    text =
        std::to_string(weight.met) + " of " + std::to_string(weight.copies) + " x (" + text + ")";
  }
  if (weight.rows > 1) text += ", " + std::to_string(weight.rows) + " rows";
  return text;
}

bool HasWeight(TermClass term_class) {
  return term_class == TermClass::kLinear || term_class == TermClass::kHead;
}

bool IsReplayed(ReplayedForward replayed, TermClass term_class) {
  switch (replayed) {
    case ReplayedForward::kNone:
      return false;
    case ReplayedForward::kCoreAttention:
    case ReplayedForward::kWholeCoreAttention:
      return term_class == TermClass::kScores || term_class == TermClass::kValues;
    case ReplayedForward::kLayers:
      return term_class != TermClass::kHead;
    case ReplayedForward::kEverything:
      return true;
  }
  return false;
}

}  // namespace

void TermBuilder::Linear(std::string_view part, std::int64_t times, const Weight& weight,
                         Quantity quantity, Gradients gradients, TermClass term_class) {
  if (weight.counts_as_parameter) {
    const Exact one = Exact(times) * weight.in * weight.out;
    Parameters(one * weight.copies, one * weight.met);
  }
  const Exact work = Exact(2) * weight.in * weight.out * weight.rows;
  if (!work.valid()) overflow_ = true;
  Term term{.part = std::string(part),
            .shape = WeightShape(weight),
            .term_class = term_class,
            .quantity = quantity,
            .times = times,
            .forward = work.value()};
  switch (convention_.backward) {
    case BackwardRule::kTrainable:
      break;
    case BackwardRule::kTwiceForward:
      gradients = {.input = true, .weight = true};
      break;
    case BackwardRule::kEveryInput:
      gradients.input = true;
      break;
    case BackwardRule::kInputsOnly:
      gradients = {.input = true, .weight = false};
      break;
  }
  if (gradients.input) term.backward_input = work.value();
  if (gradients.weight) term.backward_weight = work.value();
  Add(std::move(term));
}

void TermBuilder::Core(std::string_view part, std::int64_t times, const Quantity& pairs,
                       const AttentionCore& core) {
  if (convention_.attention_mask == AttentionMask::kNone) return;
  // Per half pair: one multiply-add, two FLOPs, halved.
  const Exact units = core.half_pairs_per_unit * core.heads;
  const Int128 scores = (units * core.score_dim).value();
  const Int128 values = (units * core.value_dim).value();
  if (!(units * core.score_dim * 4 + units * core.value_dim * 4).valid()) overflow_ = true;
  const bool probabilities_gradient = core.query_gradient || core.key_gradient;
  const std::string heads = std::to_string(core.heads) + " x ";
  Add({.part = std::string(part),
       .shape = "scores " + heads + std::to_string(core.score_dim),
       .term_class = TermClass::kScores,
       .quantity = pairs,
       .times = times,
       .forward = scores,
       .backward_input =
           scores * (core.query_gradient ? 1 : 0) + scores * (core.key_gradient ? 1 : 0)});
  Add({.part = std::string(part),
       .shape = "values " + heads + std::to_string(core.value_dim),
       .term_class = TermClass::kValues,
       .quantity = pairs,
       .times = times,
       .forward = values,
       .backward_input =
           values * (core.value_gradient ? 1 : 0) + values * (probabilities_gradient ? 1 : 0)});
}

void TermBuilder::Add(Term term) {
  if (term.times == 0 || term.forward == 0) return;
  term.quantity.computed = convention_.tokens == CountedTokens::kComputed;
  if (!HasWeight(term.term_class) && convention_.backward != BackwardRule::kTrainable) {
    // A product without weights has a gradient for each of its two sides.
    term.backward_input = term.forward * 2;
  }
  list_.terms.push_back(std::move(term));
}

void TermBuilder::Parameters(Exact all, Exact active) {
  parameters_ += all;
  active_parameters_ += active;
}

void TermBuilder::ReplaceLinearByParameters(Int128 counted) {
  std::erase_if(list_.terms, [](const Term& term) { return HasWeight(term.term_class); });
  const Exact work = Exact(2) * counted;
  if (!work.valid()) overflow_ = true;
  Term term{.part = "parameters",
            .shape = "2 x " + ToString(counted),
            .forward = work.value(),
            .backward_input = work.value(),
            .backward_weight = work.value()};
  if (convention_.backward == BackwardRule::kInputsOnly) term.backward_weight = 0;
  list_.terms.insert(list_.terms.begin(), std::move(term));
}

void TermBuilder::ApplyPassSwitches() {
  for (Term& term : list_.terms) {
    Exact backward = term.backward_input;
    if (IsReplayed(convention_.replayed_forward, term.term_class)) {
      backward += term.forward;
      if (convention_.replayed_forward == ReplayedForward::kWholeCoreAttention) {
        backward += term.backward_input;
      }
    }
    if (convention_.score_recompute && term.term_class == TermClass::kScores &&
        term.backward_input != 0) {
      backward += term.forward;
    }
    if (!backward.valid()) overflow_ = true;
    term.backward_input = backward.value();
  }
}

void TermBuilder::MergeAlikeTerms() {
  std::vector<Term> merged;
  for (Term& term : list_.terms) {
    const auto alike = std::find_if(merged.begin(), merged.end(), [&term](const Term& other) {
      return other.part == term.part && other.shape == term.shape &&
             other.term_class == term.term_class && other.quantity == term.quantity &&
             other.forward == term.forward && other.backward_input == term.backward_input &&
             other.backward_weight == term.backward_weight;
    });
    if (alike == merged.end()) {
      merged.push_back(std::move(term));
    } else {
      alike->times += term.times;
    }
  }
  list_.terms = std::move(merged);
}

Result<TermList> TermBuilder::Finish(std::int64_t declared_parameters,
                                     std::int64_t input_lookup_parameters) {
  list_.parameters = parameters_.value();
  list_.active_parameters = active_parameters_.value();
  if (declared_parameters > 0) {
    list_.parameters = declared_parameters;
    list_.active_parameters = declared_parameters;
  }
  if (convention_.linear_work == LinearWork::kAllParameters) {
    ReplaceLinearByParameters(list_.active_parameters);
  } else if (convention_.linear_work == LinearWork::kParametersWithoutInputLookup) {
    ReplaceLinearByParameters(list_.active_parameters - input_lookup_parameters);
  }
  ApplyPassSwitches();
  MergeAlikeTerms();
  list_.halved = convention_.flops_per_multiply_add == 1;
  list_.approximate = std::any_of(list_.terms.begin(), list_.terms.end(), [](const Term& term) {
    return term.term_class == TermClass::kRecurrent;
  });
  if (overflow_ || !parameters_.valid() || !active_parameters_.valid()) {
    return Fail(StatusCode::kOverflow, "the model's FLOPs per token leave 128 bits");
  }
  for (const Term& term : list_.terms) {
    auto total =
        std::find_if(list_.totals.begin(), list_.totals.end(),
                     [&term](const QuantityTotal& t) { return t.quantity == term.quantity; });
    if (total == list_.totals.end()) {
      total = list_.totals.insert(list_.totals.end(), QuantityTotal{.quantity = term.quantity});
    }
    total->forward += Exact(term.forward) * term.times;
    total->backward += (Exact(term.backward_input) + term.backward_weight) * term.times;
    if (!total->forward.valid() || !total->backward.valid()) {
      return Fail(StatusCode::kOverflow, "the model's FLOPs per token leave 128 bits");
    }
  }
  return std::move(list_);
}

PassTotals EvaluateTerm(const Term& term, const Workload& workload) {
  const Exact units = Measure(term.quantity, workload) * term.times;
  PassTotals totals;
  totals.forward = units * term.forward;
  if (workload.passes == Passes::kForwardOnly) return totals;
  totals.backward_input = units * term.backward_input;
  totals.backward_weight = units * term.backward_weight;
  return totals;
}

}  // namespace flopledger::flops
