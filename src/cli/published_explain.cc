#include "published_explain.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace flopledger::cli {
namespace {

using Setting = std::pair<std::string_view, std::string_view>;

/// Every other position of a switch that sources of published figures are known to differ in.
constexpr std::array<Setting, 17> kSettings = {{
    {"attention_mask", "full"},
    {"attention_mask", "causal_half"},
    {"attention_mask", "none"},
    {"multi_token_prediction", "out"},
    {"multi_token_prediction", "in"},
    {"router", "out"},
    {"router", "in"},
    {"linear_work", "matmuls"},
    {"linear_work", "all_parameters"},
    {"linear_work", "parameters_without_input_lookup"},
    {"embedding_as_matmul", "in"},
    {"local_attention", "out"},
    {"ffn_gate", "out"},
    {"shape", "classic_gpt"},
    {"replayed_forward", "none"},
    {"replayed_forward", "core_attention"},
    {"replayed_forward", "everything"},
}};

/// Settings that one change of a formula moved together.
constexpr std::array<std::pair<Setting, Setting>, 2> kPairs = {{
    {{"local_attention", "out"}, {"ffn_gate", "out"}},
    {{"multi_token_prediction", "out"}, {"router", "out"}},
}};

std::string Digits(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.5g", value);
  return text.data();
}

std::string Join(const Setting& setting) {
  return std::string(setting.first) + "=" + std::string(setting.second);
}

struct Candidate {
  std::string text;
  double value = 0;
};

class GapSearch {
 public:
  GapSearch(const PublishedRow& row, const EvaluatedRow& evaluated, double printed,
            double tolerance)
      : row_(row), evaluated_(evaluated), printed_(printed), tolerance_(tolerance) {}

  GapExplanation Run() {
    if (HasShape()) {
      for (const Setting& setting : kSettings) Try({setting});
      if (best_.has_value()) return Found(GapExplanation::Kind::kSwitch);
      if (const std::optional<Candidate> fraction = RecomputeFraction()) {
        best_ = fraction;
        return Found(GapExplanation::Kind::kRecompute);
      }
      for (const auto& [first, second] : kPairs) Try({first, second});
      if (best_.has_value()) return Found(GapExplanation::Kind::kSwitch);
    } else if (const std::optional<Candidate> fraction = RecomputeFraction()) {
      best_ = fraction;
      return Found(GapExplanation::Kind::kRecompute);
    }
    return ImpliedInputs();
  }

 private:
  bool HasShape() const {
    return evaluated_.formula.has_value() && evaluated_.formula->shape.has_value();
  }

  GapExplanation Found(GapExplanation::Kind kind) const {
    return {.kind = kind, .text = best_->text, .value = best_->value};
  }

  /// Only figures of hardware work may contain replays.
  bool CountsReplays() const {
    return row_.Text("metric").rfind("HFU", 0) == 0 ||
           row_.Text("metric").find("(hw") != std::string::npos;
  }

  void Try(const std::vector<Setting>& settings) {
    if (settings.front().first == "replayed_forward" && !CountsReplays()) return;
    FlopConvention convention = evaluated_.formula->shape_convention;
    std::string text;
    for (const Setting& setting : settings) {
      const Result<FlopConvention> changed = WithSwitch(convention, setting.first, setting.second);
      if (!changed.has_value() || *changed == convention) return;
      convention = *changed;
      text += (text.empty() ? "" : ",") + Join(setting);
    }
    const Result<double> value = EvaluateUnder(row_, *evaluated_.formula->shape, convention);
    if (!value.has_value() || std::abs(*value - printed_) > tolerance_) return;
    if (best_.has_value() && std::abs(best_->value - printed_) <= std::abs(*value - printed_)) {
      return;
    }
    best_ = Candidate{.text = text, .value = *value};
  }

  /// A figure that counts the forward pass again lies between no replay and a whole one.
  std::optional<Candidate> RecomputeFraction() const {
    const std::string id = row_.Text("formula_id");
    if (id != "PALM_8N_16LHQT" && id != "MOSAIC_HFU_FULL") return std::nullopt;
    // 4 forward passes' worth in all, of which the fourth is the replay.
    const double without = evaluated_.value * 0.75;
    const double fraction = (printed_ - without) / (evaluated_.value - without);
    if (!(fraction > 0 && fraction < 1)) return std::nullopt;
    return Candidate{.text = "replayed_forward=" + Digits(fraction) + " of one forward",
                     .value = printed_};
  }

  /// The value that each printed input would need for the printed figure.
  GapExplanation ImpliedInputs() const {
    const double ratio = printed_ / evaluated_.value;
    if (!std::isfinite(ratio) || ratio <= 0) return {};
    std::string text;
    const auto imply = [&](std::string_view column, double factor) {
      const std::optional<double> given = row_.Number(column);
      if (!given.has_value()) return;
      text += (text.empty() ? "" : " or ") + std::string(column) + " " + Digits(*given * factor) +
              " (given " + Digits(*given) + ")";
    };
    const bool days = MetricName(row_).rfind("days", 0) == 0;
    imply("tokens_per_s", ratio);
    if (!row_.Has("tokens_per_s")) imply("step_time_s", 1 / ratio);
    imply("rate_tflops", days ? 1 / ratio : ratio);
    imply("rate_nonattention_tflops", ratio);
    if (MetricName(row_).find("_pct") != std::string::npos) imply("peak_tflops", 1 / ratio);
    const std::string id = row_.Text("formula_id");
    if (id == "8TP_nX" || id == "6ND") imply("params", ratio);
    if (id == "CONSISTENCY" && row_.Has("mfu_pct")) {
      imply("mfu_pct", 1 + (printed_ - evaluated_.value) / row_.Number("mfu_pct").value_or(1));
      imply("gain_pct", 1 - (printed_ - evaluated_.value) / row_.Number("gain_pct").value_or(1));
    }
    if (text.empty()) return {};
    return {.kind = GapExplanation::Kind::kInput,
            .text = "inputs disagree: needs " + text,
            .value = printed_};
  }

  const PublishedRow& row_;
  const EvaluatedRow& evaluated_;
  double printed_;
  double tolerance_;
  std::optional<Candidate> best_;
};

}  // namespace

GapExplanation ExplainGap(const PublishedRow& row, const EvaluatedRow& evaluated, double printed,
                          double tolerance) {
  return GapSearch(row, evaluated, printed, tolerance).Run();
}

}  // namespace flopledger::cli
