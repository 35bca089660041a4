#include "collect/trace/json_tokens.h"

#include <simdjson.h>

#include <array>
#include <cstring>

namespace flopledger {
namespace {

constexpr std::size_t kMaxDepth = 256;

bool IsDigit(char letter) { return letter >= '0' && letter <= '9'; }
bool IsHex(char letter) {
  return IsDigit(letter) || (letter >= 'a' && letter <= 'f') || (letter >= 'A' && letter <= 'F');
}

bool IsNumber(std::string_view text) {
  std::size_t i = text.front() == '-' ? 1 : 0;
  const std::size_t whole = i;
  while (i < text.size() && IsDigit(text[i])) ++i;
  if (i == whole || (text[whole] == '0' && i > whole + 1)) return false;
  if (i < text.size() && text[i] == '.') {
    const std::size_t fraction = ++i;
    while (i < text.size() && IsDigit(text[i])) ++i;
    if (i == fraction) return false;
  }
  if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
    ++i;
    if (i < text.size() && (text[i] == '+' || text[i] == '-')) ++i;
    const std::size_t exponent = i;
    while (i < text.size() && IsDigit(text[i])) ++i;
    if (i == exponent) return false;
  }
  return i == text.size();
}

/// What programs print for numbers that JSON does not have.
bool IsNotANumber(std::string_view text) {
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
  for (std::string_view known : {"inf", "Infinity", "infinity", "INF", "nan", "NaN", "NAN"}) {
    if (text == known) return true;
  }
  return text.substr(0, 4) == "nan(" || text.substr(0, 5) == "-nan(";
}

}  // namespace

struct JsonTokens::Scanner {
  std::unique_ptr<simdjson::internal::dom_parser_implementation> stages;
};

JsonTokens::JsonTokens(bool lenient) : lenient_(lenient), scanner_(new Scanner) {}
JsonTokens::~JsonTokens() = default;

JsonTokens::Scanned JsonTokens::Scan(std::string_view text) {
  text_ = text;
  size_ = 0;
  auto& stages = scanner_->stages;
  if (!stages || stages->capacity() < text.size()) {
    stages.reset();
    if (simdjson::get_active_implementation()->create_dom_parser_implementation(
            text.size() + 64, kMaxDepth, stages) != simdjson::SUCCESS) {
      throw std::bad_alloc();
    }
  }
  if (text.empty()) return Scanned::kEmpty;
  const simdjson::error_code code =
      stages->stage1(reinterpret_cast<const std::uint8_t*>(text.data()), text.size(),
                     simdjson::stage1_mode::regular);
  switch (code) {
    case simdjson::SUCCESS:
    case simdjson::UTF8_ERROR:
      break;
    case simdjson::UNCLOSED_STRING:
      return Scanned::kOpenString;
    case simdjson::UNESCAPED_CHARS:
      return Scanned::kControlCharacter;
    default:
      return Scanned::kEmpty;
  }
  starts_ = stages->structural_indexes.get();
  size_ = stages->n_structural_indexes;
  return code == simdjson::UTF8_ERROR ? Scanned::kInvalidUtf8 : Scanned::kOk;
}

JsonTokens::Verdict JsonTokens::CheckEscapes() {
  const char* at = text_.data();
  const char* const end = at + text_.size();
  while ((at = static_cast<const char*>(
              std::memchr(at, '\\', static_cast<std::size_t>(end - at)))) != nullptr) {
    bool fits = end - at >= 2 && std::strchr("\"\\/bfnrtu", at[1]) != nullptr && at[1] != '\0';
    if (fits && at[1] == 'u') {
      fits = end - at >= 6 && IsHex(at[2]) && IsHex(at[3]) && IsHex(at[4]) && IsHex(at[5]);
    }
    if (!fits) {
      if (!lenient_) {
        fault_ = {static_cast<std::size_t>(at - text_.data()), "a backslash that escapes nothing"};
        return Verdict::kBad;
      }
      ++repairs_.escapes;
    }
    at += 2;
    if (at >= end) break;
  }
  return Verdict::kOk;
}

JsonTokens::Verdict JsonTokens::Bad(std::size_t i, std::string_view what) {
  fault_ = {offset(i), what};
  return Verdict::kBad;
}

JsonTokens::Verdict JsonTokens::CheckScalar(std::size_t i) {
  const char first = at(i);
  if (first == '"') return Verdict::kOk;  // the first stage has seen its end
  const std::string_view text = token(i);
  if ((IsDigit(first) || first == '-') && IsNumber(text)) return Verdict::kOk;
  if (text == "true" || text == "false" || text == "null") return Verdict::kOk;
  if (lenient_ && IsNotANumber(text)) {
    ++repairs_.not_numbers;
    return Verdict::kOk;
  }
  return Bad(i, IsNotANumber(text) ? "inf or nan, which JSON has not" : "a value is expected");
}

JsonTokens::Verdict JsonTokens::RefuseKey(std::size_t i) {
  if (i >= size_) return Verdict::kMore;
  if (at(i) != '"') return Bad(i, "a key is expected");
  if (i + 1 >= size_) return Verdict::kMore;
  return Bad(i + 1, "':' is expected");
}

JsonTokens::Verdict JsonTokens::RefuseSeparator(std::size_t i, char close) {
  if (i >= size_) return Verdict::kMore;
  return Bad(i, close == '}' ? "',' or '}' is expected" : "',' or ']' is expected");
}

// `*i` is at a comma that the end of the value or of the tokens follows.
JsonTokens::Verdict JsonTokens::TakeLastComma(std::size_t* i, char close, bool* more) {
  ++*i;
  *more = true;
  if (*i >= size_) return Verdict::kMore;
  if (at(*i) != close) return Verdict::kOk;
  if (!lenient_) return Bad(*i, "a comma with nothing after it");
  ++repairs_.trailing_commas;
  ++*i;
  *more = false;
  return Verdict::kOk;
}

JsonTokens::Verdict JsonTokens::SkipOther(std::size_t* i) {
  std::array<char, kMaxDepth> closes;  // of the objects and arrays that are open
  std::size_t depth = 0;
  bool behind = false;  // a value: what comes next is a separator
  std::size_t at_token = *i;
  while (true) {
    if (behind) {
      if (depth == 0) {
        *i = at_token;
        return Verdict::kOk;
      }
      bool more = false;
      const Verdict verdict = TakeSeparator(&at_token, closes[depth - 1], &more);
      if (verdict != Verdict::kOk) return verdict;
      if (!more) {
        --depth;
        continue;
      }
      behind = false;
    } else if (at_token < size_ && (at(at_token) == '{' || at(at_token) == '[')) {
      if (depth == kMaxDepth) return Bad(at_token, "nested too deeply");
      closes[depth++] = at(at_token) == '{' ? '}' : ']';
      ++at_token;
      if (at_token >= size_) return Verdict::kMore;
      if (at(at_token) == closes[depth - 1]) {
        --depth;
        ++at_token;
        behind = true;
        continue;
      }
    } else {
      if (at_token >= size_) return Verdict::kMore;
      if (const Verdict verdict = CheckScalar(at_token); verdict != Verdict::kOk) return verdict;
      ++at_token;
      behind = true;
      continue;
    }
    if (depth > 0 && closes[depth - 1] == '}') {
      std::string_view key;
      if (const Verdict verdict = TakeKey(&at_token, &key); verdict != Verdict::kOk) return verdict;
    }
  }
}

}  // namespace flopledger
