#pragma once

#include <cstdint>
#include <vector>

#include "flopledger/export.h"
#include "flopledger/status.h"
#include "flopledger/transformer.h"

namespace flopledger {

/// A model that reads with one stack and writes with another (T5, translation). The workload gives
/// each sequence its `source_length`. The encoder's `causal` and both vocabularies are as given;
/// the encoder has no head.
///
///     EncoderDecoderDescription t5{.encoder = encoder, .decoder = decoder};
///
/// Thread: a value.
struct EncoderDecoderDescription {
  TransformerDescription encoder = {};
  TransformerDescription decoder = {};
  bool shared_embedding = true;  ///< one table for both sides: parameters, not FLOPs

  friend bool operator==(const EncoderDecoderDescription&,
                         const EncoderDecoderDescription&) = default;
};

/// A transformer over the patches of an image. The workload counts `samples` (images, or frames of
/// a video: each frame attends to itself), or gives sequences of `length` tokens with the special
/// ones included.
///
///     VisionTransformerDescription b16{.image_size = 224, .patch_size = 16, .layers = 12,
///                                      .hidden = 768, .heads = 12, .ffn = 3072, .classes = 1000};
struct VisionTransformerDescription {
  std::int64_t image_size = 0;
  std::int64_t patch_size = 0;
  std::int64_t channels = 3;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t ffn = 0;
  bool gated_ffn = false;
  std::int64_t special_tokens = 1;  ///< class token, registers
  std::int64_t classes = 0;         ///< 0: no classifier
  std::int64_t poolers = 0;         ///< hidden x hidden once an image
  TrainableParts trainable = {};    ///< `embedding` is the patch projection

  friend bool operator==(const VisionTransformerDescription&,
                         const VisionTransformerDescription&) = default;
};

/// One convolution of a sample, by the size of what it writes (what it reads, if transposed).
struct ConvolutionLayer {
  std::int64_t in_channels = 0;
  std::int64_t out_channels = 0;
  std::int64_t kernel_height = 1;
  std::int64_t kernel_width = 1;
  std::int64_t height = 1;  ///< of the output; of the input, if transposed
  std::int64_t width = 1;
  std::int64_t groups = 1;
  std::int64_t count = 1;  ///< layers that are alike
  bool trainable = true;
  bool reads_data = false;  ///< its input is the data itself: no gradient, whatever trains

  friend bool operator==(const ConvolutionLayer&, const ConvolutionLayer&) = default;
};

/// A matrix that each sample meets `rows` times.
struct DenseLayer {
  std::int64_t in = 0;
  std::int64_t out = 0;
  std::int64_t rows = 1;
  std::int64_t count = 1;
  bool trainable = true;
  bool reads_data = false;

  friend bool operator==(const DenseLayer&, const DenseLayer&) = default;
};

/// A convolution net: its convolutions from the data upwards, then its dense layers. The first
/// layer of all has no input gradient.
struct ConvNetDescription {
  std::vector<ConvolutionLayer> convolutions = {};
  std::vector<DenseLayer> dense = {};

  friend bool operator==(const ConvNetDescription&, const ConvNetDescription&) = default;
};

/// The ResNet family: basic blocks of two 3x3, or bottlenecks of 1x1, 3x3, 1x1.
///
///     auto net = DescribeResNet({.blocks = {3, 4, 6, 3}, .bottleneck = true});
struct ResNetShape {
  std::vector<std::int64_t> blocks = {};  ///< per stage
  bool bottleneck = false;
  std::int64_t groups = 1;
  std::int64_t width_per_group = 64;
  std::int64_t image_size = 224;
  std::int64_t classes = 1000;
};
/// Fails: kInvalidArgument naming the field that is out of range.
FLOPLEDGER_EXPORT Result<ConvNetDescription> DescribeResNet(const ResNetShape& shape);

/// A diffusion transformer: sequences are patches of a latent image, `source_length` the tokens of
/// the text. Modulation and time embedding run once a sample, not once a token. For sampling, count
/// each sequence once per step, and twice with classifier-free guidance.
struct DiffusionTransformerDescription {
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t ffn = 0;
  std::int64_t patch_values = 0;       ///< numbers in one patch: side x side x channels
  std::int64_t output_values = 0;      ///< 0: as many as patch_values
  std::int64_t modulation_chunks = 6;  ///< hidden -> chunks x hidden per layer and sample
  std::int64_t final_chunks = 2;       ///< the same before the output; 0: none
  std::int64_t time_features = 256;    ///< time -> hidden -> hidden per sample; 0: none
  std::int64_t text_width = 0;         ///< width of text that is cross-attended; 0: none

  friend bool operator==(const DiffusionTransformerDescription&,
                         const DiffusionTransformerDescription&) = default;
};

/// An attention block of a UNet at one resolution: self attention over `tokens`, cross attention on
/// the text, feed-forward.
struct UNetAttention {
  std::int64_t tokens = 0;
  std::int64_t hidden = 0;
  std::int64_t heads = 0;
  std::int64_t ffn = 0;
  bool gated_ffn = true;
  std::int64_t text_tokens = 0;  ///< 0: no cross attention
  std::int64_t text_width = 0;
  std::int64_t projections = 2;  ///< hidden x hidden before and after the block
  std::int64_t count = 1;

  friend bool operator==(const UNetAttention&, const UNetAttention&) = default;
};

struct UNetDescription {
  std::vector<ConvolutionLayer> convolutions = {};
  std::vector<UNetAttention> attention = {};
  std::vector<DenseLayer> dense = {};  ///< time embedding, per sample

  friend bool operator==(const UNetDescription&, const UNetDescription&) = default;
};

/// A recommendation model: dense features through one stack, look-ups (0 FLOPs), pairwise dots,
/// another stack. Its utilisation says little: it is bound by memory.
///
///     RecommenderDescription dlrm{.bottom = {13, 512, 128}, .top = {479, 1024, 1},
///                                 .features = 27, .feature_width = 128};
struct RecommenderDescription {
  std::vector<std::int64_t> bottom = {};  ///< widths, input first
  std::vector<std::int64_t> top = {};
  std::int64_t features = 0;  ///< vectors that are dotted pairwise; 0: no interaction
  std::int64_t feature_width = 0;
  bool trainable_embeddings = true;

  friend bool operator==(const RecommenderDescription&, const RecommenderDescription&) = default;
};

}  // namespace flopledger
