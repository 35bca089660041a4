#include "collect/trace/text_input.h"

#include <isa-l/igzip_lib.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace flopledger {
namespace {

constexpr std::size_t kBlockBytes = 256 * 1024;

const char* WhyNot(int code) {
  switch (code) {
    case ISAL_INVALID_BLOCK:
      return "invalid deflate block";
    case ISAL_INVALID_SYMBOL:
      return "invalid deflate symbol";
    case ISAL_INVALID_LOOKBACK:
      return "invalid deflate distance";
    case ISAL_INVALID_WRAPPER:
      return "invalid gzip header";
    case ISAL_UNSUPPORTED_METHOD:
      return "unknown compression method";
    case ISAL_INCORRECT_CHECKSUM:
      return "wrong checksum";
    case ISAL_NEED_DICT:
      return "a preset dictionary is needed";
    default:
      return "cannot be inflated";
  }
}

}  // namespace

struct TextInput::Inflater {
  inflate_state state{};
};

TextInput::TextInput() = default;
TextInput::TextInput(TextInput&&) noexcept = default;
TextInput& TextInput::operator=(TextInput&&) noexcept = default;
TextInput::~TextInput() = default;

Result<TextInput> TextInput::Open(const std::string& path, const Options& options) {
  TextInput input;
  input.path_ = path;
  input.options_ = options;
  input.file_.reset(std::fopen(path.c_str(), "rb"));
  if (input.file_ == nullptr) {
    return Fail(StatusCode::kNotFound, path + ": cannot be opened: " + std::strerror(errno));
  }
  struct stat facts{};
  if (fstat(fileno(input.file_.get()), &facts) == 0 && facts.st_size > 0) {
    input.file_bytes_ = static_cast<std::uint64_t>(facts.st_size);
  }
  std::setvbuf(input.file_.get(), nullptr, _IONBF, 0);
  input.block_.resize(kBlockBytes);
  input.Refill();
  if (std::ferror(input.file_.get()) != 0) {
    return Fail(StatusCode::kNotFound, path + ": cannot be read: " + std::strerror(errno));
  }
  if (input.block_end_ >= 2 && input.block_[0] == 0x1f && input.block_[1] == 0x8b) {
    input.inflater_ = std::make_unique<Inflater>();
    isal_inflate_init(&input.inflater_->state);
  }
  return input;
}

bool TextInput::Refill() {
  block_at_ = 0;
  block_end_ = std::fread(block_.data(), 1, block_.size(), file_.get());
  file_read_ += block_end_;
  if (options_.progress) options_.progress(file_read_, std::max(file_read_, file_bytes_));
  return block_end_ > 0;
}

std::uint64_t TextInput::FilePosition() const { return file_read_ - (block_end_ - block_at_); }

Result<std::size_t> TextInput::Read(char* to, std::size_t size) {
  if (ended_ || size == 0) return std::size_t{0};
  Result<std::size_t> got = inflater_ ? Inflate(to, size) : ReadPlain(to, size);
  if (!got.has_value()) {
    ended_ = true;
    return got;
  }
  if (*got == 0) ended_ = true;
  position_ += *got;
  return got;
}

Result<std::size_t> TextInput::ReadPlain(char* to, std::size_t size) {
  if (block_at_ == block_end_ && !Refill()) {
    if (std::ferror(file_.get()) == 0) return std::size_t{0};
    return Fail(StatusCode::kDataLoss, path_ + ": byte " + std::to_string(file_read_) +
                                           ": cannot be read: " + std::strerror(errno));
  }
  const std::size_t count = std::min(size, block_end_ - block_at_);
  std::memcpy(to, block_.data() + block_at_, count);
  block_at_ += count;
  return count;
}

Result<std::size_t> TextInput::Damaged() {
  const std::string text = path_ + ": byte " + std::to_string(FilePosition()) +
                           " of the gzip file (byte " + std::to_string(position_) +
                           " of its text): " + fault_;
  if (!options_.lenient) return Fail(StatusCode::kDataLoss, text);
  damage_ = fault_;
  return std::size_t{0};
}

Result<bool> TextInput::BeginMember() {
  // Padding to a block size is zeros; anything else is no part of the file's text.
  while (members_ > 0) {
    while (block_at_ < block_end_ && block_[block_at_] == 0) {
      ++block_at_;
      ++padding_;
    }
    if (block_at_ < block_end_) break;
    if (!Refill()) return false;
  }
  if (block_at_ == block_end_ && !Refill()) return false;
  if (members_ > 0 && block_[block_at_] != 0x1f) {
    do {
      foreign_ += block_end_ - block_at_;
      block_at_ = block_end_;
    } while (Refill());
    return false;
  }
  if (members_ > 0) isal_inflate_reset(&inflater_->state);
  inflater_->state.crc_flag = ISAL_GZIP;
  ++members_;
  in_member_ = true;
  return true;
}

Result<std::size_t> TextInput::Inflate(char* to, std::size_t size) {
  if (!fault_.empty()) return Damaged();
  inflate_state& state = inflater_->state;
  const auto wanted = static_cast<std::uint32_t>(std::min<std::size_t>(size, 1U << 30));
  state.next_out = reinterpret_cast<std::uint8_t*>(to);
  state.avail_out = wanted;
  while (state.avail_out > 0) {
    if (!in_member_) {
      const Result<bool> more = BeginMember();
      if (!more.has_value() || !*more) break;
      state.next_out = reinterpret_cast<std::uint8_t*>(to) + (wanted - state.avail_out);
    }
    // Without input left the decoder may still hold output.
    const bool at_end = block_at_ == block_end_ && !Refill();
    const std::uint32_t room = state.avail_out;
    state.next_in = block_.data() + block_at_;
    state.avail_in = static_cast<std::uint32_t>(block_end_ - block_at_);
    const int code = isal_inflate(&state);
    block_at_ = block_end_ - state.avail_in;
    if (code < 0 || code == ISAL_NEED_DICT) {
      fault_ = WhyNot(code);
    } else if (state.block_state == ISAL_BLOCK_FINISH) {
      in_member_ = false;
    } else if (at_end && state.avail_out == room) {
      fault_ = "the stream ends before its end mark";
    }
    if (!fault_.empty()) break;
  }
  const std::size_t count = wanted - state.avail_out;
  if (position_ + count > options_.max_inflated_bytes) {
    return Fail(StatusCode::kInvalidArgument,
                path_ + ": byte " + std::to_string(FilePosition()) + ": inflates to more than " +
                    std::to_string(options_.max_inflated_bytes) +
                    " bytes; raise the limit (--max-inflated) if the file is what it says");
  }
  // What was decoded before a fault is handed out first.
  if (count == 0 && !fault_.empty()) return Damaged();
  return count;
}

}  // namespace flopledger
