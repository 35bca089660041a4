#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flopledger/status.h"

namespace flopledger::flops {

/// Typed look-ups in a model's `config.json`. What is missing or of a wrong type is collected, so
/// that one message names every field.
///
///     auto config = ConfigReader::Create(text);
///     std::int64_t hidden = config->Require("hidden_size");
///     if (Result<void> read = config->Verdict(); !read.has_value()) return ...
///
/// Fails: `Create` on what is not a JSON object (with the position), is nested deeper than 64
/// levels or larger than 16 MiB.
class ConfigReader {
 public:
  static Result<ConfigReader> Create(std::string_view json);
  ~ConfigReader();
  ConfigReader(ConfigReader&&) noexcept;
  ConfigReader& operator=(ConfigReader&&) noexcept;

  /// The sub-object, as a reader of its own that reports under `name.`; none if it is not there.
  std::optional<ConfigReader> Section(std::string_view name) const;

  bool Has(std::string_view name) const;  ///< there, and not null
  std::optional<std::int64_t> Integer(std::string_view name);
  std::optional<double> Number(std::string_view name);
  std::optional<bool> Boolean(std::string_view name);
  std::optional<std::string> Text(std::string_view name);
  std::vector<std::string> Texts(std::string_view name);      ///< empty if it is not there
  std::vector<std::int64_t> Integers(std::string_view name);  ///< empty if it is not there
  /// Number of entries of an object or a list; 0 if it is not there.
  std::int64_t Count(std::string_view name) const;

  /// The integer, or 0 and a line in the verdict.
  std::int64_t Require(std::string_view name);
  std::int64_t IntegerOr(std::string_view name, std::int64_t fallback) {
    return Integer(name).value_or(fallback);
  }
  bool BooleanOr(std::string_view name, bool fallback) { return Boolean(name).value_or(fallback); }
  void Complain(std::string text) { wrong_.push_back(std::move(text)); }

  /// Fails: kInvalidArgument naming what is missing and what is wrong.
  Result<void> Verdict() const;

 private:
  struct Json;
  explicit ConfigReader(std::unique_ptr<Json> json, std::string path);
  void WrongType(std::string_view name, std::string_view accepted);

  std::unique_ptr<Json> json_;
  std::string path_;  ///< `text_config.` inside of a section
  std::vector<std::string> missing_;
  std::vector<std::string> wrong_;
};

}  // namespace flopledger::flops
