#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

namespace flopledger {

/// Where the tokens of a stretch of JSON text begin (simdjson's first stage), and the grammar over
/// them. Unlike a parser that skips what nobody asked for, it looks at every token: text that is
/// not JSON is found wherever it stands, with its position.
///
///     JsonTokens tokens;
///     if (tokens.Scan(text) == JsonTokens::Scanned::kOk) {
///       std::size_t i = 0;
///       JsonTokens::Verdict verdict = tokens.SkipValue(&i);
///     }
///
/// Thread: one. Ownership: none of the text, which has to outlive the use of its tokens. Fails: by
/// verdict; `fault()` says where and what.
class JsonTokens {
 public:
  enum class Scanned : std::uint8_t { kOk, kEmpty, kOpenString, kControlCharacter, kInvalidUtf8 };
  enum class Verdict : std::uint8_t { kOk, kMore, kBad };  ///< `kMore`: the tokens end too early
  struct Fault {
    std::size_t offset = 0;
    std::string_view what;
  };
  /// What a lenient reader took for JSON all the same.
  struct Repairs {
    std::int64_t not_numbers = 0;  ///< inf, nan
    std::int64_t trailing_commas = 0;
    std::int64_t escapes = 0;  ///< backslashes that escape nothing
  };

  explicit JsonTokens(bool lenient);
  ~JsonTokens();
  JsonTokens(const JsonTokens&) = delete;
  JsonTokens& operator=(const JsonTokens&) = delete;

  Scanned Scan(std::string_view text);
  /// After `kOk`: is every backslash the begin of an escape?
  Verdict CheckEscapes();

  std::size_t size() const { return size_; }
  std::size_t offset(std::size_t i) const { return i < size_ ? starts_[i] : text_.size(); }
  /// First character of token `i`; 0 at the end.
  char at(std::size_t i) const { return i < size_ ? text_[starts_[i]] : '\0'; }
  /// Token `i` as written: a string with its quotes, a number, a literal.
  std::string_view token(std::size_t i) const { return span(i, i + 1); }
  /// A string's characters, escapes as written.
  std::string_view content(std::size_t i) const {
    const std::string_view text = token(i);
    return text.size() < 2 ? std::string_view() : text.substr(1, text.size() - 2);
  }
  /// The text from token `begin` up to token `end`, without white space at its end.
  std::string_view span(std::size_t begin, std::size_t end) const {
    const std::size_t from = offset(begin);
    std::size_t to = offset(end);
    while (to > from && IsSpace(text_[to - 1])) --to;
    return text_.substr(from, to - from);
  }

  /// Moves `*i` behind the value that begins there.
  Verdict SkipValue(std::size_t* i) {
    // The first stage has seen where a string ends.
    if (at(*i) != '"') return SkipOther(i);
    ++*i;
    return Verdict::kOk;
  }
  /// `*i` is at a key: moves it to the value. `*key` has the key's characters.
  Verdict TakeKey(std::size_t* i, std::string_view* key) {
    if (at(*i) != '"' || at(*i + 1) != ':') [[unlikely]] {
      return RefuseKey(*i);
    }
    *key = content(*i);
    *i += 2;
    return Verdict::kOk;
  }
  /// `*i` is behind a value of an object or array that ends with `close`: moves it to the next
  /// member (`*more`), or behind the end.
  Verdict TakeSeparator(std::size_t* i, char close, bool* more) {
    const char found = at(*i);
    if (found == ',') {
      const char next = at(*i + 1);
      if (next == close || next == '\0') return TakeLastComma(i, close, more);
    } else if (found != close) {
      return RefuseSeparator(*i, close);
    }
    ++*i;
    *more = found == ',';
    return Verdict::kOk;
  }

  const Fault& fault() const { return fault_; }
  const Repairs& repairs() const { return repairs_; }

 private:
  struct Scanner;
  static bool IsSpace(char letter) {
    return letter == ' ' || letter == '\n' || letter == '\r' || letter == '\t';
  }
  Verdict SkipOther(std::size_t* i);
  Verdict RefuseKey(std::size_t i);
  Verdict RefuseSeparator(std::size_t i, char close);
  Verdict TakeLastComma(std::size_t* i, char close, bool* more);
  Verdict Bad(std::size_t i, std::string_view what);
  Verdict CheckScalar(std::size_t i);

  const bool lenient_;
  std::unique_ptr<Scanner> scanner_;
  std::string_view text_;
  const std::uint32_t* starts_ = nullptr;
  std::size_t size_ = 0;
  Fault fault_;
  Repairs repairs_;
};

}  // namespace flopledger
