#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collect/trace/json_tokens.h"
#include "collect/trace/text_part.h"
#include "flopledger/status.h"

namespace flopledger {

/// Slides over a long JSON text: some of it at a time, with its tokens, cut where no string is
/// open. Who reads takes whole items, and says how far it came; the rest stays for the next window.
///
///     while (*window.Advance(taken)) {
///       const JsonTokens& tokens = window.tokens();   // offsets are from window.base()
///     }
///
/// Memory: about five times the window (1 MiB), which grows only where one item does not fit, up to
/// 64 MiB. Thread: one. Fails: what the input says, and text that is no JSON, by `fault`.
class JsonWindow {
 public:
  JsonWindow(TextPart text, bool lenient);

  /// Drops the first `taken` bytes and reads on. False when no text is left.
  Result<bool> Advance(std::size_t taken);

  JsonTokens& tokens() { return tokens_; }
  const JsonTokens& tokens() const { return tokens_; }
  std::uint64_t base() const { return base_; }  ///< where the window begins in the text
  std::size_t size() const { return size_; }
  std::size_t filled() const { return filled_; }  ///< with what was read but does not fit in
  bool at_end() const { return at_end_; }         ///< nothing comes after this window
  /// Why the window cannot be read; empty if it can.
  const JsonTokens::Fault& fault() const { return fault_; }
  bool failed() const { return !fault_.what.empty(); }
  bool open_string() const { return open_string_; }  ///< the text ends inside of a string
  std::int64_t control_characters() const { return control_characters_; }  ///< lenient
  std::int64_t broken_text() const { return broken_text_; }                ///< lenient
  const TextPart& text() const { return text_; }
  bool StartsWith(std::string_view prefix) const {
    return std::string_view(buffer_.data(), filled_).substr(0, prefix.size()) == prefix;
  }
  /// A few characters around an offset, for an error message.
  std::string Excerpt(std::size_t offset) const;

 private:
  Result<bool> Fill();
  bool ScanUpTo(std::size_t end);
  /// The last '}' outside of strings, found by reading all; 0 if there is none.
  std::size_t SafeEnd() const;
  bool Cut();
  void ReplaceControlCharacters(std::size_t end);

  TextPart text_;
  const bool lenient_;
  JsonTokens tokens_;
  std::vector<char> buffer_;
  std::size_t filled_ = 0;
  std::size_t size_ = 0;
  std::uint64_t base_ = 0;
  bool no_more_text_ = false;
  bool at_end_ = false;
  bool open_string_ = false;
  std::int64_t control_characters_ = 0;
  std::int64_t broken_text_ = 0;
  JsonTokens::Fault fault_;
};

}  // namespace flopledger
