#include "collect/trace/json_window.h"

#include <algorithm>
#include <cstring>

namespace flopledger {
namespace {

constexpr std::size_t kFirstWindow = 32 << 10;  // most files of tests and bug reports are small
constexpr std::size_t kWindowBytes = 1 << 20;
constexpr std::size_t kLargestWindow = 64 << 20;
constexpr int kCutsTried = 6;

const char* FindLast(const char* begin, const char* end, char wanted) {
  return static_cast<const char*>(memrchr(begin, wanted, static_cast<std::size_t>(end - begin)));
}

}  // namespace

JsonWindow::JsonWindow(TextPart text, bool lenient)
    : text_(std::move(text)), lenient_(lenient), tokens_(lenient), buffer_(kFirstWindow) {}

Result<bool> JsonWindow::Fill() {
  while (!no_more_text_ && filled_ < buffer_.size()) {
    const Result<std::size_t> got = text_.Read(buffer_.data() + filled_, buffer_.size() - filled_);
    if (!got.has_value()) return tl::unexpected<Status>(got.error());
    filled_ += *got;
    no_more_text_ = *got == 0;
  }
  return true;
}

Result<bool> JsonWindow::Advance(std::size_t taken) {
  if (taken == 0 && size_ > 0 && !no_more_text_) {
    if (buffer_.size() >= kLargestWindow) {
      fault_ = {0, "one value is longer than 64 MiB"};
      return true;
    }
    buffer_.resize(buffer_.size() * 2);
  }
  if (size_ > 0 && buffer_.size() < kWindowBytes) buffer_.resize(kWindowBytes);
  if (taken > 0) {
    std::memmove(buffer_.data(), buffer_.data() + taken, filled_ - taken);
    filled_ -= taken;
    base_ += taken;
  }
  while (true) {
    const Result<bool> filled = Fill();
    if (!filled.has_value()) return filled;
    if (filled_ == 0) return false;
    if (Cut() || failed()) return true;
    if (buffer_.size() >= kLargestWindow) {
      fault_ = {0, "one value is longer than 64 MiB"};
      return true;
    }
    buffer_.resize(buffer_.size() * 2);
  }
}

bool JsonWindow::Cut() {
  at_end_ = no_more_text_;
  if (no_more_text_) {
    if (ScanUpTo(filled_) || failed()) return true;
    // Cut inside of a string: what is before the last whole object can be read.
    open_string_ = true;
    const std::size_t safe = SafeEnd();
    return ScanUpTo(safe) || size_ == 0;
  }
  const char* const begin = buffer_.data();
  const char* end = begin + filled_;
  for (int tried = 0; tried < kCutsTried; ++tried) {
    const char* brace = FindLast(begin, end, '}');
    if (brace == nullptr) break;
    end = brace;
    // Names of kernels have braces: `{lambda()#1}, at::detail`. Behind an event comes another one.
    const char* next = brace + 1;
    while (next < begin + filled_ && std::strchr(" \n\r\t,", *next) != nullptr) ++next;
    if (next < begin + filled_ && *next != '{' && *next != '"' && *next != ']' && *next != '}') {
      --tried;
      continue;
    }
    if (ScanUpTo(static_cast<std::size_t>(brace - begin) + 1) || failed()) return true;
  }
  const std::size_t safe = SafeEnd();
  return safe > 0 && (ScanUpTo(safe) || failed());
}

bool JsonWindow::ScanUpTo(std::size_t end) {
  size_ = end;
  JsonTokens::Scanned scanned = tokens_.Scan({buffer_.data(), end});
  if (scanned == JsonTokens::Scanned::kOpenString) return false;
  if (scanned == JsonTokens::Scanned::kControlCharacter) {
    ReplaceControlCharacters(end);
    if (failed()) return false;
    scanned = tokens_.Scan({buffer_.data(), end});
  }
  if (scanned == JsonTokens::Scanned::kInvalidUtf8) {
    if (!lenient_) {
      fault_ = {0, "bytes that are no UTF-8 from here on"};
      return false;
    }
    ++broken_text_;
  }
  if (tokens_.CheckEscapes() != JsonTokens::Verdict::kOk) {
    fault_ = tokens_.fault();
    return false;
  }
  return true;
}

std::size_t JsonWindow::SafeEnd() const {
  std::size_t safe = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < filled_; ++i) {
    const char letter = buffer_[i];
    if (in_string) {
      if (letter == '\\') ++i;
      if (letter == '"') in_string = false;
    } else if (letter == '"') {
      in_string = true;
    } else if (letter == '}') {
      safe = i + 1;
    }
  }
  return safe;
}

void JsonWindow::ReplaceControlCharacters(std::size_t end) {
  bool in_string = false;
  for (std::size_t i = 0; i < end; ++i) {
    char& letter = buffer_[i];
    if (!in_string) {
      in_string = letter == '"';
    } else if (letter == '\\') {
      ++i;
    } else if (letter == '"') {
      in_string = false;
    } else if (static_cast<unsigned char>(letter) < 0x20) {
      if (!lenient_) {
        fault_ = {i, "a control character in a string"};
        return;
      }
      letter = ' ';
      ++control_characters_;
    }
  }
}

std::string JsonWindow::Excerpt(std::size_t offset) const {
  const std::size_t from = offset > 16 ? offset - 16 : 0;
  const std::size_t to = std::min(filled_, offset + 16);
  std::string text;
  for (std::size_t i = from; i < to; ++i) {
    const auto letter = static_cast<unsigned char>(buffer_[i]);
    text += letter < 0x20 || letter >= 0x7f ? '.' : static_cast<char>(letter);
  }
  return text;
}

}  // namespace flopledger
