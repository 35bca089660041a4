#include "collect/trace/op_arguments.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <utility>

#include "collect/trace/time_text.h"

namespace flopledger {
namespace {

constexpr std::size_t kMostArguments = 64;

DType TypeOf(std::string_view name) {
  constexpr std::pair<std::string_view, DType> kTypes[] = {
      {"float", DType::kFloat32},         {"double", DType::kFloat64},
      {"c10::Half", DType::kFloat16},     {"c10::BFloat16", DType::kBfloat16},
      {"signed char", DType::kInt8},      {"at::Half", DType::kFloat16},
      {"at::BFloat16", DType::kBfloat16},
  };
  for (const auto& [known, dtype] : kTypes) {
    if (name == known) return dtype;
  }
  if (name.substr(0, 13) == "c10::Float8_e") return DType::kFloat8;
  if (name.substr(0, 13) == "c10::Float4_e") return DType::kFloat4;
  return DType::kOther;
}

/// Begins of the elements of the array at token `i`; nothing if there is no array.
std::vector<std::size_t> Elements(JsonTokens& tokens, std::size_t i) {
  std::vector<std::size_t> elements;
  if (i == 0 || tokens.at(i) != '[' || tokens.at(i + 1) == ']') return elements;
  ++i;
  for (bool more = true; more && elements.size() < kMostArguments;) {
    elements.push_back(i);
    if (tokens.SkipValue(&i) != JsonTokens::Verdict::kOk ||
        tokens.TakeSeparator(&i, ']', &more) != JsonTokens::Verdict::kOk) {
      break;
    }
  }
  return elements;
}

/// A list of whole numbers; absent if it has anything else in it.
std::optional<std::vector<std::int64_t>> Integers(JsonTokens& tokens, std::size_t i) {
  std::vector<std::int64_t> values;
  for (const std::size_t element : Elements(tokens, i)) {
    const std::optional<std::int64_t> value = ParseInteger(tokens.token(element));
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::optional<std::int64_t> Truth(std::string_view text) {
  if (text == "True" || text == "true") return 1;
  if (text == "False" || text == "false") return 0;
  return std::nullopt;
}

/// `[1, 1]` and `[True, False]` as they are printed.
OpArgument ListOf(std::string_view text) {
  OpArgument argument;
  text = Trimmed(text.substr(1, text.size() - 2));
  argument.kind = OpArgument::Kind::kIntegerList;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view item = Trimmed(text.substr(0, comma));
    std::optional<std::int64_t> value = Truth(item);
    if (!value) value = ParseInteger(item);
    if (!value) return {};
    argument.integers.push_back(*value);
    if (comma == text.npos) break;
    text.remove_prefix(comma + 1);
  }
  return argument;
}

OpArgument ScalarOf(std::string_view text) {
  OpArgument argument;
  text = Trimmed(text);
  if (text.empty() || text == "None") return argument;
  if (text.front() == '[' && text.back() == ']') return ListOf(text);
  if (const std::optional<std::int64_t> truth = Truth(text)) {
    argument.kind = OpArgument::Kind::kBoolean;
    argument.integers = {*truth};
    return argument;
  }
  std::int64_t integer = 0;
  const char* const end = text.data() + text.size();
  if (const auto [rest, error] = std::from_chars(text.data(), end, integer);
      error == std::errc() && rest == end) {
    argument.kind = OpArgument::Kind::kInteger;
    argument.integers = {integer};
    return argument;
  }
  if (const auto [rest, error] = std::from_chars(text.data(), end, argument.real);
      error == std::errc() && rest == end) {
    argument.kind = OpArgument::Kind::kReal;
    return argument;
  }
  argument.real = 0;
  argument.kind = OpArgument::Kind::kText;
  return argument;
}

}  // namespace

std::vector<OpArgument> ReadOpArguments(JsonTokens& tokens, const OpArgumentTokens& at) {
  const std::vector<std::size_t> dims = Elements(tokens, at.dims);
  const std::vector<std::size_t> types = Elements(tokens, at.types);
  const std::vector<std::size_t> concrete = Elements(tokens, at.concrete);
  std::vector<OpArgument> arguments(std::max({dims.size(), types.size(), concrete.size()}));
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    OpArgument& argument = arguments[i];
    if (i < concrete.size()) argument = ScalarOf(tokens.content(concrete[i]));
    if (argument.kind != OpArgument::Kind::kNone || i >= dims.size()) continue;
    const std::optional<std::vector<std::int64_t>> shape = Integers(tokens, dims[i]);
    if (!shape || shape->empty()) continue;  // a scalar, a list of tensors, or nothing
    argument.kind = OpArgument::Kind::kTensor;
    argument.integers = *shape;
    if (i < types.size()) argument.dtype = TypeOf(tokens.content(types[i]));
  }
  return arguments;
}

}  // namespace flopledger
