#include "published_evaluate.h"

#include <array>
#include <string_view>
#include <utility>

#include "flopledger/ratios.h"
#include "published_vision.h"

namespace flopledger::cli {
namespace {

constexpr double kTera = 1e12;
constexpr double kSecondsPerDay = 86400;

/// Training FLOPs of one token, and the share of core attention in them.
struct TokenWork {
  double flops = 0;
  double core_ratio = 0;
};

std::int64_t SequenceLength(const PublishedRow& row, const ModelFlops& model) {
  if (!model.NeedsSequenceLengths()) return row.Count("seq").value_or(1);
  return row.RequireCount("seq");
}

Result<TokenWork> WorkPerToken(const PublishedRow& row, const ModelFlops& model,
                               const FlopConvention& convention) {
  const std::int64_t length = SequenceLength(row, model);
  if (Result<void> read = row.Verdict(); !read.has_value()) return tl::unexpected(read.error());
  Result<DeclaredWork> work =
      model.Evaluate({.sequences = {{.length = length, .count = 1}}}, convention);
  if (!work.has_value()) return tl::unexpected(work.error());
  const Flops total = work->forward + work->backward;
  Flops core;
  for (const DeclaredPart& part : work->parts) {
    if (part.kind == PartKind::kCoreAttention) {
      core += part.forward + part.backward_input + part.backward_weight;
    }
  }
  return TokenWork{.flops = total.ToDouble() / static_cast<double>(length),
                   .core_ratio = core.ToDouble() / total.ToDouble()};
}

double TokensPerSecond(const PublishedRow& row) {
  if (const auto rate = row.Number("tokens_per_s"); rate.has_value()) {
    if (*rate <= 0) row.Complain("tokens_per_s is not above 0");
    return *rate;
  }
  if (!row.Has("global_batch") && !row.Has("step_time_s")) {
    return row.RequireNumber("tokens_per_s");
  }
  const double batch = row.RequireNumber("global_batch");
  const double length = row.RequireNumber("seq");
  return batch * length / row.RequireNumber("step_time_s");
}

Result<double> Checked(const PublishedRow& row, double value) {
  if (Result<void> read = row.Verdict(); !read.has_value()) return tl::unexpected(read.error());
  if (!(value == value) || value > 1e300 || value < -1e300) {
    return InvalidArgument("the inputs give no finite value (a 0 where one divides?)");
  }
  return value;
}

Result<double> UtilizationPercent(const PublishedRow& row, double flops_per_token) {
  if (const auto rest = row.Number("rate_nonattention_tflops"); rest.has_value()) {
    // The source prints the rate without its attention term: 6N of the whole.
    const double linear = 6 * row.RequireNumber("params");
    const double rate = *rest * flops_per_token / linear;
    return Checked(row, 100 * rate / row.RequireNumber("peak_tflops"));
  }
  const std::array devices = {
      DeviceGroup{.count = row.RequireCount("n_dev"),
                  .peak = FlopsPerSecond(row.RequireNumber("peak_tflops") * kTera)}};
  const double rate = TokensPerSecond(row);
  if (Result<void> read = row.Verdict(); !read.has_value()) return tl::unexpected(read.error());
  Result<double> ratio = UtilizationOfTokenRate(flops_per_token, rate, devices);
  if (!ratio.has_value()) return ratio;
  return 100 * *ratio;
}

Result<double> MetricOf(const PublishedRow& row, const TokenWork& work) {
  const std::string metric = MetricName(row);
  if (metric == "MFU_pct" || metric == "HFU_pct") return UtilizationPercent(row, work.flops);
  if (metric == "TFLOP_per_s_per_GPU" || metric == "TFLOP_per_s_per_device") {
    return Checked(row, work.flops * TokensPerSecond(row) / row.RequireNumber("n_dev") / kTera);
  }
  if (metric == "TFLOP_per_device_per_step") {
    return Checked(
        row, work.flops * row.RequireNumber("local_batch") * row.RequireNumber("seq") / kTera);
  }
  if (metric == "attention_share_pct") return Checked(row, 100 * work.core_ratio);
  if (metric == "days_300B_tokens" || metric == "days") {
    const double rate = row.RequireNumber("rate_tflops") * kTera * row.RequireNumber("n_dev");
    return Checked(row, work.flops * row.RequireNumber("tokens") / rate / kSecondsPerDay);
  }
  if (metric == "total_1e25_FLOP") {
    return Checked(row, work.flops * row.RequireNumber("tokens") / 1e25);
  }
  return InvalidArgument("metric '" + metric + "' does not fit formula_id '" +
                         row.Text("formula_id") + "'");
}

/// Rates over peaks, and other arithmetic without a model.
Result<double> EvaluateRatio(const PublishedRow& row) {
  const std::string metric = MetricName(row);
  if (metric == "throughput_increase_pct") {
    const double before = row.RequireNumber("baseline_step_time_s");
    return Checked(row, 100 * (before / row.RequireNumber("step_time_s") - 1));
  }
  if (metric == "MFU_pct" || metric == "HFU_pct") {
    return Checked(row, 100 * row.RequireNumber("rate_tflops") / row.RequireNumber("peak_tflops"));
  }
  return InvalidArgument("metric '" + metric + "' does not fit formula_id 'RATIO'");
}

Result<double> EvaluateConsistency(const PublishedRow& row) {
  if (MetricName(row) == "tokens_per_step_M") {
    return Checked(row, row.RequireNumber("tokens_per_day") * row.RequireNumber("step_time_s") /
                            kSecondsPerDay / 1e6);
  }
  return Checked(row, row.RequireNumber("mfu_pct") - row.RequireNumber("gain_pct"));
}

Result<double> EvaluateParameters(const PublishedRow& row) {
  const double layers = row.RequireNumber("layers");
  const double hidden = row.RequireNumber("hidden");
  const double vocabulary = row.RequireNumber("vocab");
  const double length = row.RequireNumber("seq");
  const double count = 12 * layers * hidden * hidden *
                       (1 + 13 / (12 * hidden) + (vocabulary + length) / (12 * layers * hidden));
  return Checked(row, count / 1e9);
}

/// Attention's share by 6 s h L against 6 (N - V h); the vocabulary is that of Llama 3 unless
/// given.
Result<double> EvaluateShare(const PublishedRow& row) {
  constexpr double kLlama3Vocabulary = 128256;
  const double hidden = row.RequireNumber("hidden");
  const double attention = 6 * row.RequireNumber("seq") * hidden * row.RequireNumber("layers");
  const double vocabulary = row.Number("vocab").value_or(kLlama3Vocabulary);
  const double linear = 6 * (row.RequireNumber("params") - vocabulary * hidden);
  return Checked(row, 100 * attention / (linear + attention));
}

Result<double> EvaluateMaskGap(const PublishedRow& row, const DeclaredFormula& formula) {
  FlopConvention half = formula.convention;
  half.attention_mask = AttentionMask::kCausalHalf;
  const Result<TokenWork> full = WorkPerToken(row, formula.model, formula.convention);
  if (!full.has_value()) return tl::unexpected(full.error());
  const Result<TokenWork> causal = WorkPerToken(row, formula.model, half);
  if (!causal.has_value()) return tl::unexpected(causal.error());
  return Checked(row, (full->flops - causal->flops) * TokensPerSecond(row) /
                          row.RequireNumber("n_dev") / kTera);
}

Result<double> EvaluatePlain(const PublishedRow& row, const std::string& id) {
  if (id == "RATIO") return EvaluateRatio(row);
  if (id == "CONSISTENCY") return EvaluateConsistency(row);
  if (id == "NARAYANAN_P") return EvaluateParameters(row);
  if (id == "EXACT_CAUSAL_SHARE") return EvaluateShare(row);
  if (id == "VIT_MAC" || id == "CONV_MAC") return EvaluateVision(row, id);
  if (id == "SUM") {
    return Checked(row, row.RequireNumber("rate_tflops") * row.RequireNumber("n_dev") / 1000);
  }
  if (id == "KOR_RATIO") {
    const double ratio = row.RequireNumber("seq") / (6 * row.RequireNumber("hidden"));
    return Checked(row, 100 * ratio / (1 + ratio));
  }
  return Fail(StatusCode::kNotFound, "formula_id '" + id + "' is not known; did you mean '" +
                                         std::string(NearestFormulaId(id)) + "'?");
}

}  // namespace

std::string MetricName(const PublishedRow& row) {
  std::string metric = row.Text("metric");
  metric = metric.substr(0, metric.find('('));
  while (!metric.empty() && metric.back() == ' ') metric.pop_back();
  return metric;
}

Result<double> EvaluateUnder(const PublishedRow& row, const ModelFlops& model,
                             const FlopConvention& convention) {
  Result<TokenWork> work = WorkPerToken(row, model, convention);
  if (!work.has_value()) return tl::unexpected(work.error());
  return MetricOf(row, *work);
}

Result<EvaluatedRow> EvaluateRow(const PublishedRow& row) {
  if (Result<void> read = row.Verdict(); !read.has_value()) return tl::unexpected(read.error());
  const std::string id = row.Text("formula_id");
  if (!IsDeclaredFormula(id)) {
    Result<double> value = EvaluatePlain(row, id);
    if (!value.has_value()) return tl::unexpected(value.error());
    return EvaluatedRow{.value = *value, .formula = std::nullopt};
  }
  Result<DeclaredFormula> formula = ReadDeclaredFormula(id, row);
  if (!formula.has_value()) return tl::unexpected(formula.error());
  Result<double> value = id == "MLA_CORE" ? EvaluateMaskGap(row, *formula)
                                          : EvaluateUnder(row, formula->model, formula->convention);
  if (!value.has_value()) return tl::unexpected(value.error());
  return EvaluatedRow{.value = *value, .formula = *std::move(formula)};
}

}  // namespace flopledger::cli
