#include "flops/op_rules.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <utility>

#include "flops/op_classes.h"
#include "flops/op_count_rules.h"

namespace flopledger {
namespace {

using RuleByName = std::unordered_map<std::string_view, const CountRule*>;

const RuleByName& Rules() {
  static const RuleByName rules = [] {
    RuleByName by_name;
    for (const auto* family : {&MatmulRules(), &AttentionRules(), &ConvolutionRules()}) {
      for (const CountRule& rule : *family) by_name.emplace(rule.name, &rule);
    }
    return by_name;
  }();
  return rules;
}

const CountRule* FindRule(std::string_view name) {
  const auto found = Rules().find(name);
  return found == Rules().end() ? nullptr : found->second;
}

OpCost Unknown(OpClass op_class, GapReason reason) {
  OpCost cost;
  cost.op_class = op_class;
  cost.reason = reason;
  return cost;
}

OpCost Apply(const CountRule& rule, const OpSignature& signature, bool all_pairs) {
  const ArgumentReader arguments(signature, all_pairs);
  const std::optional<CountedWork> work = rule.count(arguments);
  if (!work) return Unknown(rule.op_class, GapReason::kNoShape);
  OpCost cost;
  cost.dtype = arguments.TypeOf(rule.operand);
  // Integers are no floating-point work and complex numbers cost more than two per multiply-add;
  // the type does not say which of them it is.
  if (cost.dtype == DType::kOther) return Unknown(rule.op_class, GapReason::kNoRule);
  cost.coverage = CoverageKind::kCounted;
  cost.op_class = rule.op_class;
  cost.executed = Flops::FromInteger(work->executed);
  if (work->score_recompute != 0) {
    cost.excess.push_back({"attention_score_recompute", Flops::FromInteger(work->score_recompute)});
  }
  return cost;
}

}  // namespace

bool operator==(const OpCost& a, const OpCost& b) {
  const auto same = [](const ExcessPart& x, const ExcessPart& y) {
    return x.cause == y.cause && x.flops == y.flops;
  };
  return a.coverage == b.coverage && a.op_class == b.op_class && a.dtype == b.dtype &&
         a.executed == b.executed && a.reason == b.reason &&
         std::equal(a.excess.begin(), a.excess.end(), b.excess.begin(), b.excess.end(), same);
}

OpCost CountOp(const OpSignature& signature) {
  if (const CountRule* rule = FindRule(signature.name)) return Apply(*rule, signature, false);
  const std::optional<OpClass> op_class = ClassifyName(signature.name);
  if (!op_class) return Unknown(OpClass::kUnknown, GapReason::kNoRule);
  OpCost cost;
  cost.coverage = CoverageKind::kOutside;
  cost.op_class = *op_class;
  return cost;
}

std::optional<Flops> CountOpAllPairs(const OpSignature& signature) {
  const CountRule* rule = FindRule(signature.name);
  if (rule == nullptr) return std::nullopt;
  const OpCost cost = Apply(*rule, signature, true);
  if (cost.coverage != CoverageKind::kCounted) return std::nullopt;
  return cost.executed;
}

OpClass ClassifyOp(const OpSignature& signature) {
  if (const CountRule* rule = FindRule(signature.name)) return rule->op_class;
  return ClassifyName(signature.name).value_or(OpClass::kUnknown);
}

std::vector<std::string_view> CountedOpNames() {
  std::vector<std::string_view> names;
  names.reserve(Rules().size());
  for (const auto& [name, rule] : Rules()) names.push_back(name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace flopledger
