#include "collect/trace/text_part.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace flopledger {

Result<std::size_t> SharedText::ReadAt(std::uint64_t position, char* to, std::size_t size) {
  if (!input_ || input_->position() > position) {
    input_.reset();
    Result<TextInput> opened = TextInput::Open(path_, options_);
    if (!opened.has_value()) return tl::unexpected<Status>(opened.error());
    input_.emplace(*std::move(opened));
  }
  std::vector<char> skipped;
  while (input_->position() < position) {
    if (skipped.empty()) skipped.resize(256 * 1024);
    const std::uint64_t left = position - input_->position();
    const Result<std::size_t> got =
        input_->Read(skipped.data(), std::min<std::uint64_t>(left, skipped.size()));
    if (!got.has_value() || *got == 0) return got;
  }
  return input_->Read(to, size);
}

Result<std::size_t> TextPart::Read(char* to, std::size_t size) {
  const std::uint64_t wanted = std::min<std::uint64_t>(size, size_ - at_);
  if (ended_ || wanted == 0) return std::size_t{0};
  Result<std::size_t> got = text_->ReadAt(begin_ + at_, to, wanted);
  if (!got.has_value()) return got;
  at_ += *got;
  ended_ = *got == 0;
  return got;
}

std::int64_t TextPart::LineOf(std::uint64_t offset) const {
  TextPart again(std::make_shared<SharedText>(text_->path(), TextInput::Options{.lenient = true}),
                 begin_, std::min(size_, offset));
  std::vector<char> block(256 * 1024);
  std::int64_t line = 1;
  while (true) {
    const Result<std::size_t> got = again.Read(block.data(), block.size());
    if (!got.has_value() || *got == 0) return line;
    line += std::count(block.begin(), block.begin() + static_cast<std::ptrdiff_t>(*got), '\n');
  }
}

namespace {

constexpr std::size_t kTarBlock = 512;
using TarHeader = std::array<char, kTarBlock>;

/// An octal field, or a binary one where the first bit says so.
std::optional<std::uint64_t> TarNumber(const char* field, std::size_t size) {
  std::uint64_t value = 0;
  if ((static_cast<unsigned char>(field[0]) & 0x80U) != 0) {
    for (std::size_t i = 1; i < size; ++i) {
      if (value >> 55 != 0) return std::nullopt;
      value = value << 8 | static_cast<unsigned char>(field[i]);
    }
    return value;
  }
  std::size_t i = 0;
  while (i < size && field[i] == ' ') ++i;
  for (; i < size && field[i] != '\0' && field[i] != ' '; ++i) {
    if (field[i] < '0' || field[i] > '7' || value >> 60 != 0) return std::nullopt;
    value = value * 8 + static_cast<std::uint64_t>(field[i] - '0');
  }
  return value;
}

std::string TarText(const char* field, std::size_t size) {
  return std::string(field, strnlen(field, size));
}

bool ChecksumFits(const TarHeader& header) {
  const std::optional<std::uint64_t> stated = TarNumber(header.data() + 148, 8);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kTarBlock; ++i) {
    sum += i >= 148 && i < 156 ? std::uint64_t{' '} : static_cast<unsigned char>(header[i]);
  }
  return stated && *stated == sum;
}

/// `path` of a pax header: lines of `<length> <key>=<value>`.
std::string PaxPath(std::string_view records) {
  std::string path;
  while (!records.empty()) {
    const std::size_t line_end = records.find('\n');
    const std::string_view line = records.substr(0, line_end);
    const std::size_t key = line.find(' ');
    if (key != line.npos && line.substr(key + 1, 5) == "path=") path = line.substr(key + 6);
    if (line_end == records.npos) break;
    records.remove_prefix(line_end + 1);
  }
  return path;
}

class TarReader {
 public:
  explicit TarReader(const std::shared_ptr<SharedText>& text) : text_(text) {}

  Result<std::vector<TarMember>> List() {
    while (true) {
      TarHeader header{};
      const Result<bool> read = ReadAll(header.data(), kTarBlock);
      if (!read.has_value()) return tl::unexpected<Status>(read.error());
      if (!*read) return members_;  // without its end mark: what is there is whole
      if (std::all_of(header.begin(), header.end(), [](char c) { return c == 0; })) {
        return members_;
      }
      const std::optional<std::uint64_t> size = TarNumber(header.data() + 124, 12);
      if (!ChecksumFits(header) || !size) return Broken("no tar header");
      if (const Result<bool> taken = Take(header, *size); !taken.has_value()) {
        return tl::unexpected<Status>(taken.error());
      }
    }
  }

 private:
  tl::unexpected<Status> Broken(const char* what) const {
    return Fail(StatusCode::kDataLoss,
                text_->path() + ": byte " + std::to_string(at_) + " of the archive: " + what);
  }

  /// False at the end of the text, in front of a block.
  Result<bool> ReadAll(char* to, std::size_t size) {
    for (std::size_t done = 0; done < size;) {
      const Result<std::size_t> got = text_->ReadAt(at_, to + done, size - done);
      if (!got.has_value()) return tl::unexpected<Status>(got.error());
      if (*got == 0) {
        if (done == 0) return false;
        return Broken("the archive ends inside of a block");
      }
      done += *got;
      at_ += *got;
    }
    return true;
  }

  Result<bool> Take(const TarHeader& header, std::uint64_t size) {
    const char kind = header[156];
    const std::uint64_t begin = at_;
    if (kind == 'x' || kind == 'L') {
      constexpr std::uint64_t kLongestName = 1 << 20;
      if (size > kLongestName) return Broken("a file name of more than a mebibyte");
      std::string record(size, '\0');
      const Result<bool> read = ReadAll(record.data(), record.size());
      if (!read.has_value()) return read;
      next_name_ = kind == 'x' ? PaxPath(record) : TarText(record.data(), record.size());
    } else {
      std::string name = TarText(header.data(), 100);
      if (const std::string prefix = TarText(header.data() + 345, 155);
          !prefix.empty() && std::memcmp(header.data() + 257, "ustar\0", 6) == 0) {
        name = prefix + "/" + name;
      }
      if (!next_name_.empty()) name = std::move(next_name_);
      next_name_.clear();
      if (kind == '0' || kind == '\0') {
        members_.push_back({.name = std::move(name), .begin = begin, .size = size});
      }
    }
    if (size > TextPart::kToEnd - begin - kTarBlock) return Broken("no tar header");
    at_ = begin + (size + kTarBlock - 1) / kTarBlock * kTarBlock;
    return true;
  }

  const std::shared_ptr<SharedText> text_;
  std::uint64_t at_ = 0;
  std::string next_name_;
  std::vector<TarMember> members_;
};

}  // namespace

bool IsTar(std::string_view head) { return head.size() >= 263 && head.substr(257, 5) == "ustar"; }

Result<std::vector<TarMember>> ListTar(const std::shared_ptr<SharedText>& text) {
  return TarReader(text).List();
}

}  // namespace flopledger
