#include "published_models.h"

#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "flops/nearest.h"
#include "published_shapes.h"

namespace flopledger::cli {
namespace {

/// A formula that is a text over columns: FLOPs of one sequence of S tokens.
struct AlgebraicFormula {
  std::string_view id;
  std::string_view text;
  std::string_view names;  ///< the variables that it reads, one letter each
};

constexpr std::array kAlgebraic = {
    AlgebraicFormula{"PALM_6N", "6*N*T", "N"},
    AlgebraicFormula{"PALM_6N_12LHQT", "6*N*T + 12*L*H*Q*S*T", "NLHQ"},
    AlgebraicFormula{"PALM_8N_16LHQT", "8*N*T + 16*L*H*Q*S*T", "NLHQ"},
    AlgebraicFormula{"NARAYANAN_F", "96*T*L*h^2*(1 + S/(6*h) + V/(16*L*h))", "LhV"},
    AlgebraicFormula{"KOR_MODEL", "72*T*L*h^2*(1 + S/(6*h) + V/(12*L*h))", "LhV"},
    AlgebraicFormula{"KOR_HW_SELECTIVE", "72*T*L*h^2*(1 + S/(3*h) + V/(12*L*h))", "LhV"},
    AlgebraicFormula{"MOSAIC_MFU", "3*T*(2*N + 4*L*h*S)", "NLh"},
    AlgebraicFormula{"MOSAIC_HFU_FULL", "4*T*(2*N + 4*L*h*S)", "NLh"},
    AlgebraicFormula{"TITAN", "6*T*(N - V*h) + 12*L*H*Q*S*T", "NVhLHQ"},
    AlgebraicFormula{"6ND", "6*N*T", "N"},
    AlgebraicFormula{"8TP_nX", "8*N*T", "N"},
};

/// A formula that is a layer sum: where its shape comes from, and its convention.
struct LayerSumFormula {
  std::string_view id;
  std::string_view shape;  ///< of section "public shapes"; empty: the row's columns
  std::string_view convention;
  std::int64_t experts = 0;  ///< of a shape from columns; two of them are active
};

constexpr std::array kLayerSums = {
    LayerSumFormula{"MAXTEXT_CAUSAL", "", "MAXTEXT_CAUSAL"},
    LayerSumFormula{"MAXTEXT_FULL", "", "MAXTEXT_FULL"},
    LayerSumFormula{"MAXTEXT_MOE_CAUSAL", "", "MAXTEXT_MOE_CAUSAL", 8},
    LayerSumFormula{"MAXTEXT_MOE_FULL", "", "MAXTEXT_MOE_FULL", 8},
    LayerSumFormula{"MAXTEXT_MLA_MOE_CAUSAL", "deepseek2-16b", "MAXTEXT_MLA_MOE_CAUSAL"},
    LayerSumFormula{"EXACT_CAUSAL", "", "EXACT_CAUSAL"},
    LayerSumFormula{"EXACT_FULL", "", "EXACT_FULL"},
    LayerSumFormula{"MEGATRON_llama3_8b", "llama3_8b", "MEGATRON"},
    LayerSumFormula{"MEGATRON_llama3_70b", "llama3_70b", "MEGATRON"},
    LayerSumFormula{"MEGATRON_llama31_405b", "llama31_405b", "MEGATRON"},
    LayerSumFormula{"MEGATRON_qwen30", "qwen30", "MEGATRON"},
    LayerSumFormula{"MEGATRON_qwen235", "qwen235", "MEGATRON"},
    LayerSumFormula{"MEGATRON_kimi", "kimi", "MEGATRON"},
    LayerSumFormula{"MEGATRON_dsv3", "dsv3", "MEGATRON"},
    LayerSumFormula{"MEGATRON_gptoss_glu3_swa", "gptoss", "MEGATRON_gptoss_glu3_swa"},
    LayerSumFormula{"MEGATRON_gptoss_glu2_noswa", "gptoss", "MEGATRON_gptoss_glu2_noswa"},
    LayerSumFormula{"LORA_2of3_LINEAR", "llama3_70b", "LORA_2of3_LINEAR"},
    LayerSumFormula{"MLA_MOE_CAUSAL_MTP0", "dsv3", "MLA_MOE_CAUSAL_MTP0"},
    LayerSumFormula{"MLA_MOE_CAUSAL_MTP1", "dsv3", "MLA_MOE_CAUSAL_MTP1"},
    LayerSumFormula{"MLA_MOE_CAUSAL_NOROUTER", "dsv3", "MLA_MOE_CAUSAL_NOROUTER"},
    LayerSumFormula{"MLA_MOE_FULL_MTP0", "dsv3", "MLA_MOE_FULL_MTP0"},
    LayerSumFormula{"MLA_MOE_FULL_MTP1", "dsv3", "MLA_MOE_FULL_MTP1"},
    LayerSumFormula{"MLA_MOE_FULL_NOROUTER", "dsv3", "MLA_MOE_FULL_NOROUTER"},
    LayerSumFormula{"MLA_CORE", "dsv3", "MLA_MOE_FULL_NOROUTER"},
};

constexpr std::array<std::string_view, 8> kPlainArithmetic = {
    "NARAYANAN_P", "KOR_RATIO", "RATIO",    "SUM",
    "CONSISTENCY", "VIT_MAC",   "CONV_MAC", "EXACT_CAUSAL_SHARE"};

std::int64_t HeadDim(const PublishedRow& row) {
  if (row.Has("head_dim_qk")) return row.RequireCount("head_dim_qk");
  const std::int64_t hidden = row.Count("hidden").value_or(0);
  const std::int64_t heads = row.Count("heads").value_or(0);
  if (heads > 0 && hidden > 0 && hidden % heads == 0) return hidden / heads;
  return row.RequireCount("head_dim_qk");
}

std::int64_t Variable(char name, const PublishedRow& row) {
  switch (name) {
    case 'N':
      return row.RequireCount("params");
    case 'L':
      return row.RequireCount("layers");
    case 'H':
      return row.RequireCount("heads");
    case 'Q':
      return HeadDim(row);
    case 'h':
      return row.RequireCount("hidden");
    default:
      return row.RequireCount("vocab");
  }
}

bool HasWholeShape(const PublishedRow& row) {
  for (std::string_view column : {"layers", "hidden", "heads", "ffn", "vocab", "glu"}) {
    if (!row.Has(column)) return false;
  }
  return true;
}

bool ReadGlu(const PublishedRow& row) {
  const std::string text = row.Text("glu");
  if (text.rfind("yes", 0) == 0) return true;
  if (text != "no") row.Complain("glu is '" + text + "' (accepted: yes, no)");
  return false;
}

TransformerDescription ShapeOfColumns(const PublishedRow& row, std::int64_t experts) {
  TransformerDescription d{.layers = row.RequireCount("layers"),
                           .hidden = row.RequireCount("hidden"),
                           .query_heads = row.RequireCount("heads"),
                           .key_value_heads = row.Count("kv_heads").value_or(0),
                           .head_dim = HeadDim(row),
                           .ffn = row.RequireCount("ffn"),
                           .gated_ffn = ReadGlu(row),
                           .vocabulary = row.RequireCount("vocab"),
                           .value_head_dim = row.Count("head_dim_v").value_or(0)};
  if (experts > 0) {
    d.experts = ExpertShape{.experts = experts, .active = 2, .expert_ffn = d.ffn};
  }
  return d;
}

/// Columns that are printed take the place of the public shape's values; one that contradicts the
/// shape's structure is refused.
void ApplyColumns(const PublishedRow& row, TransformerDescription* d) {
  if (const auto layers = row.Count("layers"); layers.has_value() && *layers != d->layers) {
    std::int64_t& last = d->runs.empty() ? d->layers : d->runs.back().count;
    const std::int64_t changed = last + *layers - d->layers;
    if (d->runs.size() > 2 || changed < 1) {
      row.Complain("layers is " + std::to_string(*layers) + ", but the formula's model has " +
                   std::to_string(d->layers));
    } else {
      last = changed;
      d->layers = *layers;
    }
  }
  d->hidden = row.Count("hidden").value_or(d->hidden);
  d->query_heads = row.Count("heads").value_or(d->query_heads);
  d->vocabulary = row.Count("vocab").value_or(d->vocabulary);
  std::int64_t& width = d->experts.has_value() ? d->experts->expert_ffn : d->ffn;
  width = row.Count("ffn").value_or(width);
  const auto score_dim = row.Count("head_dim_qk");
  const auto value_dim = row.Count("head_dim_v");
  if (!d->latent_attention.has_value()) {
    d->key_value_heads = row.Count("kv_heads").value_or(d->key_value_heads);
    d->head_dim = score_dim.value_or(d->head_dim);
    d->value_head_dim = value_dim.value_or(d->value_head_dim);
    return;
  }
  const std::int64_t own = d->latent_attention->nope_head_dim + d->latent_attention->rope_head_dim;
  if (score_dim.has_value() && *score_dim != own) {
    row.Complain("head_dim_qk is " + std::to_string(*score_dim) +
                 ", but the formula's model splits " + std::to_string(own));
  }
  d->latent_attention->value_head_dim = value_dim.value_or(d->latent_attention->value_head_dim);
}

Result<DeclaredFormula> ReadAlgebraic(const AlgebraicFormula& formula, const PublishedRow& row) {
  FormulaVariables variables;
  for (char name : formula.names) variables[std::string(1, name)] = Variable(name, row);
  if (Result<void> read = row.Verdict(); !read.has_value()) return tl::unexpected(read.error());
  Result<ModelFlops> model = ModelFlops::FromFormula(formula.text, variables);
  if (!model.has_value()) return tl::unexpected(model.error());
  DeclaredFormula declared{
      .model = *std::move(model), .convention = {}, .shape = {}, .shape_convention = {}};
  const Result<FlopConvention> convention = FindConvention(formula.id);
  if (convention.has_value() && HasWholeShape(row)) {
    TransformerDescription shape = ShapeOfColumns(row, 0);
    shape.parameters = row.Count("params").value_or(0);
    Result<ModelFlops> described = ModelFlops::FromTransformer(shape);
    if (described.has_value() && row.Verdict().has_value()) {
      declared.shape = *std::move(described);
      declared.shape_convention = *convention;
    }
  }
  return declared;
}

Result<DeclaredFormula> ReadLayerSum(const LayerSumFormula& formula, const PublishedRow& row) {
  TransformerDescription description;
  if (formula.shape.empty()) {
    description = ShapeOfColumns(row, formula.experts);
  } else {
    description = FindPublicShape(formula.shape).value_or(TransformerDescription{});
    ApplyColumns(row, &description);
  }
  if (Result<void> read = row.Verdict(); !read.has_value()) return tl::unexpected(read.error());
  Result<ModelFlops> model = ModelFlops::FromTransformer(description);
  if (!model.has_value()) return tl::unexpected(model.error());
  Result<FlopConvention> convention = FindConvention(formula.convention);
  if (!convention.has_value()) return tl::unexpected(convention.error());
  return DeclaredFormula{
      .model = *model, .convention = *convention, .shape = *model, .shape_convention = *convention};
}

}  // namespace

bool IsDeclaredFormula(std::string_view formula_id) {
  for (const AlgebraicFormula& formula : kAlgebraic) {
    if (formula.id == formula_id) return true;
  }
  for (const LayerSumFormula& formula : kLayerSums) {
    if (formula.id == formula_id) return true;
  }
  return false;
}

std::string_view NearestFormulaId(std::string_view formula_id) {
  std::vector<std::string_view> known(kPlainArithmetic.begin(), kPlainArithmetic.end());
  for (const AlgebraicFormula& formula : kAlgebraic) known.push_back(formula.id);
  for (const LayerSumFormula& formula : kLayerSums) known.push_back(formula.id);
  return flops::Nearest(formula_id, known);
}

Result<DeclaredFormula> ReadDeclaredFormula(std::string_view formula_id, const PublishedRow& row) {
  for (const AlgebraicFormula& formula : kAlgebraic) {
    if (formula.id == formula_id) return ReadAlgebraic(formula, row);
  }
  for (const LayerSumFormula& formula : kLayerSums) {
    if (formula.id == formula_id) return ReadLayerSum(formula, row);
  }
  return Fail(StatusCode::kNotFound, "formula_id '" + std::string(formula_id) +
                                         "' is not known; did you mean '" +
                                         std::string(NearestFormulaId(formula_id)) + "'?");
}

}  // namespace flopledger::cli
