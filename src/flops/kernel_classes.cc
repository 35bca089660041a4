#include "flops/kernel_classes.h"

#include <algorithm>
#include <array>
#include <string>

namespace flopledger {
namespace {

struct Rule {
  OpClass op_class;
  std::string_view part;  // in lower case, anywhere in the name
};

// The first rule that fits decides, so what is special stands before what is general: a fused
// attention kernel has "gemm" in its name, a reduction of NCCL has "reduce".
constexpr std::array kRules = {
    Rule{OpClass::kCommunication, "nccl"},
    Rule{OpClass::kCommunication, "rccl"},
    Rule{OpClass::kCommunication, "cross_device_reduce"},
    Rule{OpClass::kCommunication, "allreduce_fusion"},
    Rule{OpClass::kAttention, "flash"},
    Rule{OpClass::kAttention, "fmha"},
    Rule{OpClass::kAttention, "attention"},
    Rule{OpClass::kAttention, "attn"},
    Rule{OpClass::kConvolution, "conv"},
    Rule{OpClass::kConvolution, "wgrad"},
    Rule{OpClass::kConvolution, "dgrad"},
    Rule{OpClass::kConvolution, "winograd"},
    Rule{OpClass::kMatmul, "gemm"},
    Rule{OpClass::kMatmul, "gemv"},
    Rule{OpClass::kMatmul, "cijk_"},
    Rule{OpClass::kMatmul, "nvjet"},
    Rule{OpClass::kMatmul, "splitkreduce"},
    Rule{OpClass::kNormalization, "softmax"},
    Rule{OpClass::kNormalization, "layer_norm"},
    Rule{OpClass::kNormalization, "layernorm"},
    Rule{OpClass::kNormalization, "rmsnorm"},
    Rule{OpClass::kNormalization, "batch_norm"},
    Rule{OpClass::kNormalization, "batchnorm"},
    Rule{OpClass::kNormalization, "bn_fw"},
    Rule{OpClass::kNormalization, "bn_bw"},
    Rule{OpClass::kCopy, "memcpy"},
    Rule{OpClass::kCopy, "memset"},
    Rule{OpClass::kCopy, "catarraybatchedcopy"},
    Rule{OpClass::kRandom, "distribution"},
    Rule{OpClass::kRandom, "dropout"},
    Rule{OpClass::kIndexing, "embedding"},
    Rule{OpClass::kIndexing, "index"},
    Rule{OpClass::kIndexing, "gather"},
    Rule{OpClass::kIndexing, "scatter"},
    Rule{OpClass::kIndexing, "sort"},
    Rule{OpClass::kElementwise, "multi_tensor_apply"},
    Rule{OpClass::kElementwise, "multitensorapply"},
    Rule{OpClass::kElementwise, "elementwise"},
    Rule{OpClass::kReduction, "reduce"},
    Rule{OpClass::kReduction, "reduction"},
};

char LowerOf(char letter) {
  return letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
}

}  // namespace

OpClass ClassifyKernel(std::string_view name) {
  std::string lower(name);
  std::transform(lower.begin(), lower.end(), lower.begin(), LowerOf);
  for (const Rule& rule : kRules) {
    if (lower.find(rule.part) != std::string::npos) return rule.op_class;
  }
  return OpClass::kUnknown;
}

}  // namespace flopledger
