#include "collect/trace/file_bytes.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

namespace flopledger {
namespace {

constexpr std::size_t kInflateChunk = 1 << 20;

struct Inflater {
  z_stream stream{};
  ~Inflater() { inflateEnd(&stream); }
};

Result<std::string> Inflate(const std::string& path, std::string_view compressed,
                            std::uint64_t limit) {
  Inflater inflater;
  z_stream& stream = inflater.stream;
  if (inflateInit2(&stream, 15 + 16) != Z_OK) return Fail(StatusCode::kInternal, "zlib");
  std::string out;
  std::size_t consumed = 0;
  for (;;) {
    const std::size_t piece =
        std::min<std::size_t>(compressed.size() - consumed, std::numeric_limits<uInt>::max());
    // zlib reads through a pointer that is not const.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(compressed.data() + consumed));
    stream.avail_in = static_cast<uInt>(piece);
    const std::size_t filled = out.size();
    out.resize(filled + kInflateChunk);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + filled);
    stream.avail_out = static_cast<uInt>(kInflateChunk);
    const int result = inflate(&stream, Z_NO_FLUSH);
    consumed += piece - stream.avail_in;
    out.resize(out.size() - stream.avail_out);
    if (out.size() > limit) {
      return InvalidArgument(path + ": it inflates to more than " + std::to_string(limit) +
                             " bytes, the limit");
    }
    if (result == Z_STREAM_END) {
      // Another member follows, or padding of zeros.
      std::size_t next = consumed;
      while (next < compressed.size() && compressed[next] == '\0') ++next;
      if (next == compressed.size()) return out;
      consumed = next;
      inflateReset(&stream);
      continue;
    }
    if (result == Z_BUF_ERROR && consumed == compressed.size()) {
      return Fail(StatusCode::kDataLoss,
                  path + ": byte " + std::to_string(consumed) + ": the gzip stream ends early");
    }
    if (result != Z_OK && result != Z_BUF_ERROR) {
      return Fail(StatusCode::kDataLoss,
                  path + ": byte " + std::to_string(consumed) +
                      ": no valid gzip: " + (stream.msg != nullptr ? stream.msg : "broken stream"));
    }
  }
}

}  // namespace

FileBytes::~FileBytes() {
  if (mapped_ != nullptr) munmap(mapped_, static_cast<std::size_t>(file_bytes_));
}

FileBytes::FileBytes(FileBytes&& other) noexcept
    : inflated_(std::move(other.inflated_)),
      mapped_(std::exchange(other.mapped_, nullptr)),
      file_bytes_(other.file_bytes_),
      view_(mapped_ != nullptr ? other.view_ : std::string_view(inflated_)) {}

Result<FileBytes> FileBytes::Open(const std::string& path, std::uint64_t max_inflated_bytes) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat status{};
  if (fd < 0 || fstat(fd, &status) != 0) {
    const std::string reason = std::strerror(errno);
    if (fd >= 0) close(fd);
    return Fail(StatusCode::kNotFound, path + ": cannot be opened: " + reason);
  }
  FileBytes bytes;
  bytes.file_bytes_ = static_cast<std::uint64_t>(status.st_size);
  if (bytes.file_bytes_ > 0) {
    void* mapped =
        mmap(nullptr, static_cast<std::size_t>(bytes.file_bytes_), PROT_READ, MAP_PRIVATE, fd, 0);
    if (mapped != MAP_FAILED) bytes.mapped_ = mapped;
  }
  close(fd);
  if (bytes.mapped_ == nullptr) {
    return Fail(StatusCode::kDataLoss, path + ": byte 0: the file is empty or no file");
  }
  bytes.view_ = {static_cast<const char*>(bytes.mapped_),
                 static_cast<std::size_t>(bytes.file_bytes_)};
  if (!bytes.view_.starts_with("\x1f\x8b")) return bytes;
  Result<std::string> inflated = Inflate(path, bytes.view_, max_inflated_bytes);
  if (!inflated.has_value()) return tl::unexpected(inflated.error());
  munmap(std::exchange(bytes.mapped_, nullptr), static_cast<std::size_t>(bytes.file_bytes_));
  bytes.inflated_ = *std::move(inflated);
  bytes.view_ = bytes.inflated_;
  return bytes;
}

}  // namespace flopledger
