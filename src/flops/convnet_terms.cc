#include <algorithm>

#include "family_terms.h"
#include "findings.h"

namespace flopledger::flops {

void CheckConvolutions(const std::vector<ConvolutionLayer>& layers, Findings* findings) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const ConvolutionLayer& layer = layers[i];
    const std::string name = "convolutions[" + std::to_string(i) + "].";
    findings->Require(name + "in_channels", layer.in_channels);
    findings->Require(name + "out_channels", layer.out_channels);
    findings->Require(name + "kernel_height", layer.kernel_height);
    findings->Require(name + "kernel_width", layer.kernel_width);
    findings->Require(name + "height", layer.height);
    findings->Require(name + "width", layer.width);
    findings->Require(name + "groups", layer.groups);
    findings->Require(name + "count", layer.count);
    if (layer.kernel_height > 1 << 14 || layer.kernel_width > 1 << 14 || layer.height > 1 << 20 ||
        layer.width > 1 << 20) {
      findings->Wrong(name + "kernel or size (accepted: kernels up to 2^14, sides up to 2^20)");
    }
    if (layer.groups > 0 &&
        (layer.in_channels % layer.groups != 0 || layer.out_channels % layer.groups != 0)) {
      findings->Wrong(name + "groups is " + std::to_string(layer.groups) +
                      " (accepted: divisors of both channel counts)");
    }
  }
}

void CheckDense(const std::vector<DenseLayer>& layers, Findings* findings) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::string name = "dense[" + std::to_string(i) + "].";
    findings->Require(name + "in", layers[i].in);
    findings->Require(name + "out", layers[i].out);
    findings->Require(name + "rows", layers[i].rows);
    findings->Require(name + "count", layers[i].count);
  }
}

void AddConvolutions(const std::vector<ConvolutionLayer>& layers, bool* below,
                     TermBuilder* builder) {
  const Quantity samples{.kind = QuantityKind::kSamples};
  for (const ConvolutionLayer& layer : layers) {
    const std::int64_t window =
        layer.in_channels / layer.groups * layer.kernel_height * layer.kernel_width;
    const TermBuilder::Weight weight{
        .in = window, .out = layer.out_channels, .rows = layer.height * layer.width};
    // Of layers that are alike, all but the first have a trained one below if they train.
    const bool input = *below && !layer.reads_data;
    builder->Linear("convolutions", 1, weight, samples,
                    {.input = input, .weight = layer.trainable});
    *below = *below || layer.trainable;
    if (layer.count > 1) {
      builder->Linear("convolutions", layer.count - 1, weight, samples,
                      {.input = *below && !layer.reads_data, .weight = layer.trainable});
    }
  }
}

void AddDense(std::string_view part, const std::vector<DenseLayer>& layers, bool* below,
              TermBuilder* builder) {
  const Quantity samples{.kind = QuantityKind::kSamples};
  for (const DenseLayer& layer : layers) {
    const TermBuilder::Weight weight{.in = layer.in, .out = layer.out, .rows = layer.rows};
    builder->Linear(part, 1, weight, samples,
                    {.input = *below && !layer.reads_data, .weight = layer.trainable});
    *below = *below || layer.trainable;
    if (layer.count > 1) {
      builder->Linear(part, layer.count - 1, weight, samples,
                      {.input = *below && !layer.reads_data, .weight = layer.trainable});
    }
  }
}

Result<void> Validate(const ConvNetDescription& description) {
  Findings findings("convolution net");
  if (description.convolutions.empty() && description.dense.empty()) {
    findings.Require("convolutions", 0);
  }
  CheckConvolutions(description.convolutions, &findings);
  CheckDense(description.dense, &findings);
  return findings.Verdict();
}

Result<TermList> CompileConvNet(const ConvNetDescription& description,
                                const FlopConvention& convention) {
  TermBuilder builder(convention);
  bool below = false;
  AddConvolutions(description.convolutions, &below, &builder);
  AddDense("dense", description.dense, &below, &builder);
  return builder.Finish(0, 0);
}

}  // namespace flopledger::flops

namespace flopledger {
namespace {

/// Adds the blocks of one stage; returns the channels that leave it.
std::int64_t AddStage(const ResNetShape& shape, std::int64_t base, std::int64_t blocks,
                      std::int64_t stride, std::int64_t in_channels, std::int64_t in_size,
                      std::vector<ConvolutionLayer>* layers) {
  const std::int64_t size = (in_size + stride - 1) / stride;
  const std::int64_t inner =
      shape.bottleneck ? base * shape.width_per_group / 64 * shape.groups : base;
  const std::int64_t out_channels = shape.bottleneck ? 4 * base : base;
  const auto add = [layers](std::int64_t in, std::int64_t out, std::int64_t kernel,
                            std::int64_t side, std::int64_t groups) {
    layers->push_back({.in_channels = in,
                       .out_channels = out,
                       .kernel_height = kernel,
                       .kernel_width = kernel,
                       .height = side,
                       .width = side,
                       .groups = groups});
  };
  std::int64_t channels = in_channels;
  std::int64_t side = in_size;
  for (std::int64_t block = 0; block < blocks; ++block) {
    if (shape.bottleneck) {
      add(channels, inner, 1, side, 1);
      add(inner, inner, 3, size, shape.groups);
      add(inner, out_channels, 1, size, 1);
    } else {
      add(channels, inner, 3, size, 1);
      add(inner, inner, 3, size, 1);
    }
    if (side != size || channels != out_channels) add(channels, out_channels, 1, size, 1);
    channels = out_channels;
    side = size;
  }
  return channels;
}

}  // namespace

Result<ConvNetDescription> DescribeResNet(const ResNetShape& shape) {
  flops::Findings findings("ResNet");
  if (shape.blocks.empty() || shape.blocks.size() > 8) {
    findings.Wrong("blocks has " + std::to_string(shape.blocks.size()) +
                   " stages (accepted: 1 to 8)");
  }
  for (std::int64_t blocks : shape.blocks) {
    if (blocks < 1 || blocks > 4096) {
      findings.Wrong("blocks has a stage of " + std::to_string(blocks) + " (accepted: 1 to 4096)");
    }
  }
  findings.Require("groups", shape.groups);
  findings.Require("width_per_group", shape.width_per_group);
  findings.Require("classes", shape.classes);
  if (shape.image_size < 1 || shape.image_size > 1 << 16) {
    findings.Wrong("image_size is " + std::to_string(shape.image_size) + " (accepted: 1 to 65536)");
  }
  if (shape.groups > 4096 || shape.width_per_group > 4096) {
    findings.Wrong("groups or width_per_group is above 4096");
  }
  if (Result<void> verdict = findings.Verdict(); !verdict.has_value()) {
    return tl::unexpected(verdict.error());
  }
  ConvNetDescription net;
  std::int64_t size = (shape.image_size + 1) / 2;
  net.convolutions.push_back({.in_channels = 3,
                              .out_channels = 64,
                              .kernel_height = 7,
                              .kernel_width = 7,
                              .height = size,
                              .width = size,
                              .reads_data = true});
  size = (size + 1) / 2;  // max pooling
  std::int64_t channels = 64;
  for (std::size_t stage = 0; stage < shape.blocks.size(); ++stage) {
    const std::int64_t base = std::int64_t{64} << stage;
    const std::int64_t stride = stage == 0 ? 1 : 2;
    channels =
        AddStage(shape, base, shape.blocks[stage], stride, channels, size, &net.convolutions);
    size = (size + stride - 1) / stride;
  }
  net.dense.push_back({.in = channels, .out = shape.classes});
  return net;
}

}  // namespace flopledger
