#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collect/trace/text_input.h"

namespace flopledger {

/// A file's text that several readers share, each at its own place. Reading on is cheap; going back
/// begins anew at the file's start.
class SharedText {
 public:
  SharedText(std::string path, TextInput::Options options)
      : path_(std::move(path)), options_(std::move(options)) {}

  /// Reads at `position` of the text; 0 bytes at its end.
  Result<std::size_t> ReadAt(std::uint64_t position, char* to, std::size_t size);
  const std::string& path() const { return path_; }
  /// Null before the first read.
  const TextInput* input() const { return input_ ? &*input_ : nullptr; }

 private:
  const std::string path_;
  const TextInput::Options options_;
  std::optional<TextInput> input_;
};

/// A stretch of a text: all of it, or one member of an archive.
///
///     TextPart part(shared, begin, size);
///     Result<std::size_t> got = part.Read(buffer, sizeof buffer);
///
/// Thread: one for all parts of a text. Fails: as `TextInput`.
class TextPart {
 public:
  static constexpr std::uint64_t kToEnd = std::numeric_limits<std::uint64_t>::max();

  explicit TextPart(std::shared_ptr<SharedText> text, std::uint64_t begin = 0,
                    std::uint64_t size = kToEnd)
      : text_(std::move(text)), begin_(begin), size_(size) {}

  Result<std::size_t> Read(char* to, std::size_t size);
  /// Number of the line that has byte `offset` of this part, from 1; reads the text again.
  std::int64_t LineOf(std::uint64_t offset) const;

  const std::string& path() const { return text_->path(); }
  const TextInput* input() const { return text_->input(); }
  /// A member that the archive should have, but ended before.
  bool cut() const { return size_ != kToEnd && ended_ && at_ < size_; }

 private:
  std::shared_ptr<SharedText> text_;
  std::uint64_t begin_;
  std::uint64_t size_;
  std::uint64_t at_ = 0;
  bool ended_ = false;
};

/// One regular file in a tar archive.
struct TarMember {
  std::string name;
  std::uint64_t begin = 0;
  std::uint64_t size = 0;
};

/// Could a text that begins like this be a tar archive?
bool IsTar(std::string_view head);

/// The regular files of a tar archive (ustar, GNU and pax names), in its order. Fails: kDataLoss
/// with the position of a header that is none, or of a cut.
Result<std::vector<TarMember>> ListTar(const std::shared_ptr<SharedText>& text);

}  // namespace flopledger
