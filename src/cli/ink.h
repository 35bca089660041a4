#pragma once

#include <string>
#include <string_view>

namespace flopledger::cli {

/// Emphasis for terminals; plain text everywhere else and where NO_COLOR is set.
///
///     const Ink ink = Ink::ForStandardOutput();
///     text += ink.Bold("findings");
///
/// Thread: a value.
class Ink {
 public:
  explicit Ink(bool on) : on_(on) {}
  static Ink ForStandardOutput();

  bool on() const { return on_; }
  std::string Bold(std::string_view text) const { return Wrap("1", text); }
  std::string Good(std::string_view text) const { return Wrap("32", text); }
  std::string Warn(std::string_view text) const { return Wrap("33", text); }
  std::string Bad(std::string_view text) const { return Wrap("31", text); }
  std::string Quiet(std::string_view text) const { return Wrap("2", text); }

 private:
  std::string Wrap(const char* code, std::string_view text) const;
  bool on_;
};

/// Control characters of names that others chose, made visible: a terminal would obey them.
std::string Printable(std::string_view text);

}  // namespace flopledger::cli
