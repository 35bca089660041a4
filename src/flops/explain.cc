#include "flopledger/explain.h"

#include <algorithm>
#include <utility>

#include "model_formula.h"
#include "number_text.h"

namespace flopledger {
namespace {

using flops::Exact;
using flops::QuantityKind;

bool IsHalved(QuantityKind kind) {
  return kind == QuantityKind::kHalfPairs || kind == QuantityKind::kSourceHalfPairs ||
         kind == QuantityKind::kCrossHalfPairs;
}

/// `12345678` -> `12,345,678`.
std::string Grouped(const std::string& digits) {
  std::string text;
  const bool negative = !digits.empty() && digits[0] == '-';
  const std::size_t start = negative ? 1 : 0;
  for (std::size_t i = start; i < digits.size(); ++i) {
    if (i > start && (digits.size() - i) % 3 == 0) text += ',';
    text += digits[i];
  }
  return (negative ? "-" : "") + text;
}

std::string Grouped(Flops flops) { return Grouped(flops.ToString()); }

std::string Pad(std::string text, std::size_t width, bool right) {
  if (text.size() >= width) return text + (right ? "" : " ");
  const std::string blanks(width - text.size(), ' ');
  return right ? blanks + text : text + blanks;
}

std::vector<ExplainedLine> LinesOf(const flops::TermList& list, const Workload& workload) {
  const std::int64_t divisor = list.halved ? 2 : 1;
  std::vector<ExplainedLine> lines;
  for (const flops::Term& term : list.terms) {
    const Exact units = flops::Measure(term.quantity, workload);
    const flops::PassTotals totals = flops::EvaluateTerm(term, workload);
    lines.push_back(
        {.part = term.part,
         .shape = term.shape,
         .quantity = flops::Describe(term.quantity),
         .units_doubled = (IsHalved(term.quantity.kind) ? units : units * 2).value(),
         .times = term.times,
         .forward = Flops::FromInteger((totals.forward / divisor).value()),
         .backward_input = Flops::FromInteger((totals.backward_input / divisor).value()),
         .backward_weight = Flops::FromInteger((totals.backward_weight / divisor).value())});
  }
  return lines;
}

std::optional<double> RuleOfThumbError(const ModelFlops& model, const Workload& workload) {
  if (workload.passes == Passes::kForwardOnly) return std::nullopt;
  if (model.Size().active_parameters == 0) return std::nullopt;
  Result<DeclaredTotal> exact = model.EvaluateTotal(workload);
  if (!exact.has_value()) return std::nullopt;
  double tokens = 0;
  for (const SequenceGroup& group : workload.sequences) {
    tokens += static_cast<double>(group.length) * static_cast<double>(group.count);
  }
  const double total = (exact->forward + exact->backward).ToDouble();
  if (tokens == 0 || total <= 0) return std::nullopt;
  return 6 * static_cast<double>(model.Size().active_parameters) * tokens / total - 1;
}

}  // namespace

Result<Explanation> Explain(const ModelFlops& model, const Workload& workload,
                            const FlopConvention& convention) {
  Result<DeclaredWork> work = model.Evaluate(workload, convention);
  if (!work.has_value()) return tl::unexpected(work.error());
  Explanation explanation{.model = model.Describe(),
                          .convention = IdentifyConvention(convention),
                          .work = *std::move(work),
                          .size = model.Size(),
                          .rule_of_thumb_error = RuleOfThumbError(model, workload)};
  Result<flops::TermList> list = model.formula().Compile(convention);
  if (list.has_value()) {
    explanation.lines = LinesOf(*list, model.formula().Expand(workload));
  } else if (list.error().code() != StatusCode::kUnsupported) {
    return tl::unexpected(list.error());
  }
  return explanation;
}

std::string WriteText(const Explanation& explanation) {
  std::string text = explanation.model + "\nconvention " + explanation.convention.name + " (";
  text += flops::HexText(explanation.convention.hash, 16) + ")\n\n";
  for (const ExplainedLine& line : explanation.lines) {
    text += Pad(line.part, 32, false) + Pad(line.shape, 30, false) + " x " + ToString(line.times) +
            " x " + Grouped(ToString(line.units_doubled / 2)) +
            (line.units_doubled % 2 != 0 ? ".5 " : " ") + line.quantity + "\n";
    text += Pad("forward " + Grouped(line.forward), 44, true) +
            Pad("input " + Grouped(line.backward_input), 32, true) +
            Pad("weight " + Grouped(line.backward_weight), 32, true) + "\n";
  }
  text += "\n" + Pad("part", 32, false) + Pad("forward", 28, true) +
          Pad("backward, inputs", 28, true) + Pad("backward, weights", 28, true) + "\n";
  for (const DeclaredPart& part : explanation.work.parts) {
    text += Pad(part.name, 32, false) + Pad(Grouped(part.forward), 28, true) +
            Pad(Grouped(part.backward_input), 28, true) +
            Pad(Grouped(part.backward_weight), 28, true) + "\n";
  }
  text += "\nforward  " + Grouped(explanation.work.forward) + " FLOPs\nbackward " +
          Grouped(explanation.work.backward) + " FLOPs\ntotal    " +
          Grouped(explanation.work.forward + explanation.work.backward) + " FLOPs\n";
  if (explanation.work.approximate) text += "approximate: a part has no exact count\n";
  if (explanation.size.parameters > 0) {
    text += "parameters " + Grouped(ToString(explanation.size.parameters));
    if (explanation.size.active_parameters != explanation.size.parameters) {
      text += ", of which a token meets " + Grouped(ToString(explanation.size.active_parameters));
    }
    text += "\n";
  }
  if (explanation.rule_of_thumb_error.has_value()) {
    text += "the rule of thumb 6N would be off by " +
            flops::FixedText(100 * *explanation.rule_of_thumb_error, 1, true) + " %" +
            " against the exact count\n";
  }
  return text;
}

Result<ConventionComparison> CompareConventions(const ModelFlops& model, const Workload& workload,
                                                const FlopConvention& first,
                                                const FlopConvention& second) {
  const auto total = [&](const FlopConvention& convention) -> Result<Flops> {
    Result<DeclaredTotal> work = model.EvaluateTotal(workload, convention);
    if (!work.has_value()) return tl::unexpected(work.error());
    return work->forward + work->backward;
  };
  Result<Flops> before = total(first);
  if (!before.has_value()) return tl::unexpected(before.error());
  ConventionComparison comparison{.first = IdentifyConvention(first),
                                  .second = IdentifyConvention(second),
                                  .first_total = *before,
                                  .second_total = *before};
  FlopConvention current = first;
  const std::vector<ConventionSwitch> from = ListSwitches(first);
  const std::vector<ConventionSwitch> to = ListSwitches(second);
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i] == to[i]) continue;
    Result<FlopConvention> next = WithSwitch(current, to[i].name, to[i].value);
    if (!next.has_value()) return tl::unexpected(next.error());
    Result<Flops> after = total(*next);
    if (!after.has_value()) return tl::unexpected(after.error());
    comparison.switches.push_back({.name = from[i].name,
                                   .from = from[i].value,
                                   .to = to[i].value,
                                   .change = *after - comparison.second_total});
    comparison.second_total = *after;
    current = *next;
  }
  return comparison;
}

std::string WriteText(const ConventionComparison& comparison) {
  std::string text = Pad(comparison.first.name, 48, false) +
                     Pad(Grouped(comparison.first_total), 32, true) + " FLOPs\n";
  const double whole = comparison.first_total.ToDouble();
  for (const SwitchDifference& difference : comparison.switches) {
    const std::string sign = difference.change.count() >= 0 ? "+" : "";
    text +=
        Pad("  " + difference.name + ": " + difference.from + " -> " + difference.to, 48, false) +
        Pad(sign + Grouped(difference.change), 32, true);
    if (whole > 0)
      text += "  " + flops::FixedText(100 * difference.change.ToDouble() / whole, 2, true) + " %";
    text += "\n";
  }
  text += Pad(comparison.second.name, 48, false) + Pad(Grouped(comparison.second_total), 32, true) +
          " FLOPs";
  if (whole > 0) {
    text += "  x " + flops::FixedText(comparison.second_total.ToDouble() / whole, 4);
  }
  return text + "\n";
}

}  // namespace flopledger
