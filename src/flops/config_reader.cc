#include "config_reader.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "findings.h"

namespace flopledger::flops {
namespace {

constexpr std::size_t kLargestConfig = std::size_t{16} << 20;
constexpr int kDeepest = 64;

/// Position of the bracket that goes deeper than allowed. Strings are skipped.
std::optional<std::size_t> FindTooDeep(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      if (c == '\\') ++i;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      if (++depth > kDeepest) return i;
    } else if (c == '}' || c == ']') {
      --depth;
    }
  }
  return std::nullopt;
}

/// A value as it may stand in a message: short, whatever it is.
std::string Excerpt(const nlohmann::json& value) {
  std::string text = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  if (text.size() > 40) text = text.substr(0, 37) + "...";
  return text;
}

}  // namespace

struct ConfigReader::Json {
  nlohmann::json object;
};

ConfigReader::ConfigReader(std::unique_ptr<Json> json, std::string path)
    : json_(std::move(json)), path_(std::move(path)) {}
ConfigReader::~ConfigReader() = default;
ConfigReader::ConfigReader(ConfigReader&&) noexcept = default;
ConfigReader& ConfigReader::operator=(ConfigReader&&) noexcept = default;

Result<ConfigReader> ConfigReader::Create(std::string_view json) {
  if (json.size() > kLargestConfig) {
    return InvalidArgument("config.json has " + std::to_string(json.size()) +
                           " bytes; accepted: up to 16 MiB");
  }
  if (const std::optional<std::size_t> position = FindTooDeep(json)) {
    return InvalidArgument("config.json is nested deeper than 64 levels at byte " +
                           std::to_string(*position));
  }
  try {
    auto parsed = std::make_unique<Json>();
    parsed->object = nlohmann::json::parse(json);
    if (!parsed->object.is_object()) {
      return InvalidArgument("config.json is " + std::string(parsed->object.type_name()) +
                             " at byte 0; accepted: an object");
    }
    return ConfigReader(std::move(parsed), "");
  } catch (const nlohmann::json::parse_error& error) {
    return InvalidArgument("config.json is not JSON at byte " + std::to_string(error.byte));
  } catch (const nlohmann::json::exception& error) {
    // A number that no double holds; the library gives no position.
    return InvalidArgument("config.json has a value that cannot be read: " +
                           std::string(error.what()));
  }
}

std::optional<ConfigReader> ConfigReader::Section(std::string_view name) const {
  const auto found = json_->object.find(std::string(name));
  if (found == json_->object.end() || !found->is_object()) return std::nullopt;
  auto section = std::make_unique<Json>();
  section->object = *found;
  return ConfigReader(std::move(section), path_ + std::string(name) + ".");
}

bool ConfigReader::Has(std::string_view name) const {
  const auto found = json_->object.find(std::string(name));
  return found != json_->object.end() && !found->is_null();
}

void ConfigReader::WrongType(std::string_view name, std::string_view accepted) {
  wrong_.push_back(path_ + std::string(name) + " is " + Excerpt(json_->object[std::string(name)]) +
                   " (accepted: " + std::string(accepted) + ")");
}

std::optional<std::int64_t> ConfigReader::Integer(std::string_view name) {
  if (!Has(name)) return std::nullopt;
  const nlohmann::json& value = json_->object[std::string(name)];
  if (value.is_number_integer()) {
    const bool small = value.is_number_unsigned() ? value.get<std::uint64_t>() <= kLargestDimension
                                                  : value.get<std::int64_t>() >= -kLargestDimension;
    if (small) return value.get<std::int64_t>();
    WrongType(name, "an integer up to 2^30");
    return std::nullopt;
  }
  WrongType(name, "an integer");
  return std::nullopt;
}

std::optional<double> ConfigReader::Number(std::string_view name) {
  if (!Has(name)) return std::nullopt;
  const nlohmann::json& value = json_->object[std::string(name)];
  if (value.is_number()) return value.get<double>();
  WrongType(name, "a number");
  return std::nullopt;
}

std::optional<bool> ConfigReader::Boolean(std::string_view name) {
  if (!Has(name)) return std::nullopt;
  const nlohmann::json& value = json_->object[std::string(name)];
  if (value.is_boolean()) return value.get<bool>();
  WrongType(name, "true or false");
  return std::nullopt;
}

std::optional<std::string> ConfigReader::Text(std::string_view name) {
  if (!Has(name)) return std::nullopt;
  const nlohmann::json& value = json_->object[std::string(name)];
  if (value.is_string()) return value.get<std::string>();
  WrongType(name, "a string");
  return std::nullopt;
}

std::vector<std::string> ConfigReader::Texts(std::string_view name) {
  std::vector<std::string> texts;
  if (!Has(name)) return texts;
  const nlohmann::json& value = json_->object[std::string(name)];
  if (!value.is_array()) {
    WrongType(name, "a list of strings");
    return texts;
  }
  for (const nlohmann::json& item : value) {
    if (!item.is_string()) {
      WrongType(name, "a list of strings");
      return {};
    }
    texts.push_back(item.get<std::string>());
  }
  return texts;
}

std::vector<std::int64_t> ConfigReader::Integers(std::string_view name) {
  std::vector<std::int64_t> integers;
  if (!Has(name)) return integers;
  const nlohmann::json& value = json_->object[std::string(name)];
  if (!value.is_array()) {
    WrongType(name, "a list of integers");
    return integers;
  }
  for (const nlohmann::json& item : value) {
    // What is beyond 64 bits is no integer to the library.
    if (!item.is_number_integer() || item.is_number_float()) {
      WrongType(name, "a list of integers");
      return {};
    }
    integers.push_back(item.get<std::int64_t>());
  }
  return integers;
}

std::int64_t ConfigReader::Count(std::string_view name) const {
  const auto found = json_->object.find(std::string(name));
  if (found == json_->object.end() || !(found->is_object() || found->is_array())) return 0;
  return static_cast<std::int64_t>(found->size());
}

std::int64_t ConfigReader::Require(std::string_view name) {
  if (!Has(name)) {
    missing_.push_back(path_ + std::string(name));
    return 0;
  }
  const std::int64_t value = Integer(name).value_or(0);
  if (value < 0) WrongType(name, "a positive integer");
  return value;
}

Result<void> ConfigReader::Verdict() const {
  if (missing_.empty() && wrong_.empty()) return {};
  std::string text = "config.json:";
  for (std::size_t i = 0; i < missing_.size(); ++i) {
    text += (i == 0 ? " missing " : ", ") + missing_[i];
  }
  for (std::size_t i = 0; i < wrong_.size(); ++i) {
    text += (i == 0 && missing_.empty() ? " " : "; ") + wrong_[i];
  }
  return InvalidArgument(text);
}

}  // namespace flopledger::flops
