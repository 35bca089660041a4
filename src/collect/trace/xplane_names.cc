#include <algorithm>
#include <array>
#include <charconv>

#include "collect/trace/xplane_source.h"

namespace flopledger {
namespace {

// The numbers behind `key:`, separated by commas.
template <std::size_t Count>
std::array<std::uint32_t, Count> NumbersOf(std::string_view text, std::string_view key) {
  std::array<std::uint32_t, Count> numbers{};
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return numbers;
  const char* next = text.data() + at + key.size();
  const char* const end = text.data() + text.size();
  for (std::uint32_t& number : numbers) {
    const auto [last, error] = std::from_chars(next, end, number);
    if (error != std::errc()) break;
    if (last == end || *last != ',') break;
    next = last + 1;
  }
  return numbers;
}

struct Primitive {
  std::string_view name;
  OpClass op_class;
};
constexpr std::array kPrimitives = {
    Primitive{"dot_general", OpClass::kMatmul},
    Primitive{"ragged_dot", OpClass::kMatmul},
    Primitive{"conv_general_dilated", OpClass::kConvolution},
    Primitive{"all_reduce", OpClass::kCommunication},
    Primitive{"psum", OpClass::kCommunication},
    Primitive{"all_gather", OpClass::kCommunication},
    Primitive{"all_to_all", OpClass::kCommunication},
    Primitive{"ppermute", OpClass::kCommunication},
    Primitive{"reduce_scatter", OpClass::kCommunication},
    Primitive{"reduce_sum", OpClass::kReduction},
    Primitive{"reduce_max", OpClass::kReduction},
    Primitive{"gather", OpClass::kIndexing},
    Primitive{"scatter", OpClass::kIndexing},
    Primitive{"scatter-add", OpClass::kIndexing},
    Primitive{"sort", OpClass::kIndexing},
    Primitive{"random_bits", OpClass::kRandom},
    Primitive{"threefry2x32", OpClass::kRandom},
    Primitive{"convert_element_type", OpClass::kElementwise},
    Primitive{"add", OpClass::kElementwise},
    Primitive{"mul", OpClass::kElementwise},
    Primitive{"sub", OpClass::kElementwise},
    Primitive{"div", OpClass::kElementwise},
    Primitive{"exp", OpClass::kElementwise},
    Primitive{"tanh", OpClass::kElementwise},
    Primitive{"transpose", OpClass::kCopy},
    Primitive{"copy", OpClass::kCopy},
    Primitive{"concatenate", OpClass::kCopy},
};

}  // namespace

Phase PhaseOfJaxPath(std::string_view path) {
  if (path.find("rematted_computation") != std::string_view::npos) return Phase::kRecompute;
  // The transposed linear part of a differentiated function is its backward pass.
  if (path.find("transpose(") != std::string_view::npos) return Phase::kBackward;
  return Phase::kForward;
}

OpClass ClassOfJaxPath(std::string_view path) {
  const std::string_view primitive = path.substr(path.rfind('/') + 1);
  for (const Primitive& known : kPrimitives) {
    if (primitive == known.name) return known.op_class;
  }
  return OpClass::kUnknown;
}

KernelSignature SignatureOfDetails(std::string_view name, std::string_view details) {
  KernelSignature signature;
  signature.name = name.substr(0, 4096);
  signature.grid = NumbersOf<3>(details, "grid:");
  signature.block = NumbersOf<3>(details, "block:");
  for (const std::string_view key : {"group_mem:", "static_shared:", "dynamic_shared:"}) {
    signature.shared_memory_bytes += NumbersOf<1>(details, key)[0];
  }
  return signature;
}

}  // namespace flopledger
