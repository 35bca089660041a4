#include "published_vision.h"

#include <array>
#include <charconv>
#include <string>

#include "flopledger/families.h"
#include "flopledger/model_flops.h"

namespace flopledger::cli {
namespace {

struct ResNetVariant {
  std::string_view name;
  std::array<std::int64_t, 4> blocks;
  bool bottleneck;
  std::int64_t groups;
  std::int64_t width_per_group;
};

constexpr std::array kVariants = {
    ResNetVariant{"resnet18", {2, 2, 2, 2}, false, 1, 64},
    ResNetVariant{"resnet34", {3, 4, 6, 3}, false, 1, 64},
    ResNetVariant{"resnet50", {3, 4, 6, 3}, true, 1, 64},
    ResNetVariant{"resnet101", {3, 4, 23, 3}, true, 1, 64},
    ResNetVariant{"resnet152", {3, 8, 36, 3}, true, 1, 64},
    ResNetVariant{"resnext50_32x4d", {3, 4, 6, 3}, true, 32, 4},
    ResNetVariant{"resnext101_32x8d", {3, 4, 23, 3}, true, 32, 8},
    ResNetVariant{"resnext101_64x4d", {3, 4, 23, 3}, true, 64, 4},
    ResNetVariant{"wide_resnet50_2", {3, 4, 6, 3}, true, 1, 128},
    ResNetVariant{"wide_resnet101_2", {3, 4, 23, 3}, true, 1, 128},
};

/// Multiply-adds of one sample's forward pass.
Result<double> GigaMultiplyAdds(const ModelFlops& model) {
  const FlopConvention multiply_adds{.flops_per_multiply_add = 1};
  Result<DeclaredTotal> total =
      model.EvaluateTotal({.samples = 1, .passes = Passes::kForwardOnly}, multiply_adds);
  if (!total.has_value()) return tl::unexpected(total.error());
  return total->forward.ToDouble() / 1e9;
}

Result<double> EvaluateConvNet(const PublishedRow& row) {
  const std::string name = row.Text("model");
  std::string known;
  for (const ResNetVariant& variant : kVariants) {
    if (variant.name != name) {
      known += (known.empty() ? "" : ", ") + std::string(variant.name);
      continue;
    }
    Result<ConvNetDescription> net =
        DescribeResNet({.blocks = {variant.blocks.begin(), variant.blocks.end()},
                        .bottleneck = variant.bottleneck,
                        .groups = variant.groups,
                        .width_per_group = variant.width_per_group});
    if (!net.has_value()) return tl::unexpected(net.error());
    Result<ModelFlops> model = ModelFlops::FromConvNet(*net);
    if (!model.has_value()) return tl::unexpected(model.error());
    return GigaMultiplyAdds(*model);
  }
  return InvalidArgument("model '" + name + "' is no ResNet that is known; known: " + known);
}

/// The number behind the letter of the size: 16 in `vit_b_16@384`.
std::int64_t PatchSize(const PublishedRow& row) {
  std::string name = row.Text("model");
  name = name.substr(0, name.find('@'));
  const std::string digits = name.substr(name.find_last_of('_') + 1);
  std::int64_t patch = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), patch);
  if (error != std::errc() || end != digits.data() + digits.size() || patch < 1) {
    row.Complain("model is '" + row.Text("model") +
                 "' (a name that ends in its patch size is needed, as vit_b_16)");
    return 0;
  }
  return patch;
}

Result<double> EvaluateVisionTransformer(const PublishedRow& row) {
  const std::int64_t patch = PatchSize(row);
  const std::int64_t tokens = row.RequireCount("seq");
  VisionTransformerDescription description{.image_size = patch,
                                           .patch_size = patch,
                                           .layers = row.RequireCount("layers"),
                                           .hidden = row.RequireCount("hidden"),
                                           .heads = row.Count("heads").value_or(1),
                                           .ffn = row.RequireCount("ffn"),
                                           .classes = 1000};
  if (Result<void> read = row.Verdict(); !read.has_value()) return tl::unexpected(read.error());
  Result<ModelFlops> model = ModelFlops::FromVisionTransformer(description);
  if (!model.has_value()) return tl::unexpected(model.error());
  // The row gives the tokens of an image, which need not be a square of whole patches.
  const FlopConvention multiply_adds{.flops_per_multiply_add = 1};
  Result<DeclaredTotal> total = model->EvaluateTotal(
      {.sequences = {{.length = tokens, .count = 1}}, .passes = Passes::kForwardOnly},
      multiply_adds);
  if (!total.has_value()) return tl::unexpected(total.error());
  return total->forward.ToDouble() / 1e9;
}

}  // namespace

Result<double> EvaluateVision(const PublishedRow& row, std::string_view formula_id) {
  if (row.Text("metric").rfind("GMAC_fwd_per_image", 0) != 0) {
    return InvalidArgument("metric '" + row.Text("metric") + "' does not fit formula_id '" +
                           std::string(formula_id) + "'");
  }
  return formula_id == "CONV_MAC" ? EvaluateConvNet(row) : EvaluateVisionTransformer(row);
}

}  // namespace flopledger::cli
