#include "family_terms.h"
#include "findings.h"

namespace flopledger::flops {
namespace {

void CheckWidths(std::string_view name, const std::vector<std::int64_t>& widths,
                 Findings* findings) {
  for (std::size_t i = 0; i < widths.size(); ++i) {
    findings->Require(std::string(name) + "[" + std::to_string(i) + "]", widths[i]);
  }
}

std::vector<DenseLayer> LayersOf(const std::vector<std::int64_t>& widths, bool reads_data) {
  std::vector<DenseLayer> layers;
  for (std::size_t i = 1; i < widths.size(); ++i) {
    layers.push_back({.in = widths[i - 1], .out = widths[i], .reads_data = reads_data && i == 1});
  }
  return layers;
}

}  // namespace

Result<void> Validate(const RecommenderDescription& description) {
  Findings findings("recommendation model");
  if (description.bottom.size() < 2 && description.top.size() < 2) findings.Require("top", 0);
  CheckWidths("bottom", description.bottom, &findings);
  CheckWidths("top", description.top, &findings);
  findings.Range("features", description.features);
  if (description.features > 0) findings.Require("feature_width", description.feature_width);
  return findings.Verdict();
}

Result<TermList> CompileRecommender(const RecommenderDescription& description,
                                    const FlopConvention& convention) {
  TermBuilder builder(convention);
  bool below = false;
  AddDense("bottom", LayersOf(description.bottom, true), &below, &builder);
  below = below || description.trainable_embeddings;
  if (description.features > 1) {
    // f (f - 1) / 2 dots of d multiply-adds.
    const Exact dots =
        Exact(description.features) * (description.features - 1) * description.feature_width;
    builder.Add({.part = "interaction",
                 .shape = std::to_string(description.features) + " vectors of " +
                          std::to_string(description.feature_width),
                 .term_class = TermClass::kInteraction,
                 .quantity = {.kind = QuantityKind::kSamples},
                 .forward = dots.value(),
                 .backward_input = below ? dots.value() * 2 : 0});
  }
  AddDense("top", LayersOf(description.top, false), &below, &builder);
  return builder.Finish(0, 0);
}

}  // namespace flopledger::flops
