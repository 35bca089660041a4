#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace flopledger {

/// Element type of a tensor or of the arithmetic done on it. `kOther` is a type that exists but has
/// no matmul peak (integers of indices, booleans, complex).
///
///     DType dtype = *ParseDType("bf16");
///     label = ToString(dtype);
///
/// The numbers are part of the observers' interface (`host_ops.h`): new types go to the end.
/// Thread: a value. Fails: `ParseDType` only, with an empty optional.
enum class DType : std::uint8_t {
  kFloat64,
  kFloat32,
  kTf32,  ///< float32 storage, tf32 multiplication
  kFloat16,
  kBfloat16,
  kFloat8,  ///< either format, E4M3 or E5M2: one peak
  kFloat4,
  kInt8,
  kOther,
};

/// Every type, in the order of its number: for loops, and for the accepted values of an error.
inline constexpr std::array kAllDTypes = {DType::kFloat64, DType::kFloat32,  DType::kTf32,
                                          DType::kFloat16, DType::kBfloat16, DType::kFloat8,
                                          DType::kFloat4,  DType::kInt8,     DType::kOther};

/// Label value and config word: `fp64 fp32 tf32 fp16 bf16 fp8 fp4 int8 other`.
constexpr std::string_view ToString(DType dtype) {
  constexpr std::array<std::string_view, 9> kNames = {"fp64", "fp32", "tf32", "fp16", "bf16",
                                                      "fp8",  "fp4",  "int8", "other"};
  return kNames[static_cast<std::size_t>(dtype)];
}

/// Inverse of `ToString`; also takes the long names (`float32`, `bfloat16`, ...). Nothing else.
constexpr std::optional<DType> ParseDType(std::string_view name) {
  for (DType dtype : kAllDTypes) {
    if (ToString(dtype) == name) return dtype;
  }
  if (name == "float64" || name == "double") return DType::kFloat64;
  if (name == "float32" || name == "float") return DType::kFloat32;
  if (name == "float16" || name == "half") return DType::kFloat16;
  if (name == "bfloat16") return DType::kBfloat16;
  if (name == "float8") return DType::kFloat8;
  if (name == "float4") return DType::kFloat4;
  return std::nullopt;
}

}  // namespace flopledger
