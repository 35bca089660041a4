#include "collect/trace/trace_formats.h"

#include <zlib.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace flopledger {
namespace {

constexpr std::size_t kHeadBytes = 4096;

// An XSpace begins with a line feed, which is also white space before JSON: it is asked first.
constexpr std::array kFormats = {
    TraceFormat{"xplane", IsXPlane, OpenXPlane},
    TraceFormat{"kineto", IsKineto, OpenKineto},
    TraceFormat{"nsys", IsNsys, OpenNsys},
    TraceFormat{"capture", IsCapture, OpenCapture},
};

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

/// First bytes of a gzip file's content; empty if there are none.
std::string InflateHead(std::string_view compressed) {
  z_stream stream{};
  if (inflateInit2(&stream, 15 + 16) != Z_OK) return {};
  std::string head(kHeadBytes, '\0');
  std::string input(compressed);
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(head.data());
  stream.avail_out = static_cast<uInt>(head.size());
  inflate(&stream, Z_SYNC_FLUSH);
  head.resize(head.size() - stream.avail_out);
  inflateEnd(&stream);
  return head;
}

}  // namespace

Result<TraceSources> OpenTrace(const std::string& path, const TraceOptions& options) {
  const std::unique_ptr<std::FILE, FileCloser> file(std::fopen(path.c_str(), "rb"));
  if (file == nullptr) {
    return Fail(StatusCode::kNotFound, path + ": cannot be opened: " + std::strerror(errno));
  }
  std::string head(kHeadBytes, '\0');
  head.resize(std::fread(head.data(), 1, head.size(), file.get()));
  if (std::ferror(file.get()) != 0) {
    return Fail(StatusCode::kNotFound, path + ": cannot be read: " + std::strerror(errno));
  }
  if (head.empty()) return Fail(StatusCode::kDataLoss, path + ": byte 0: the file is empty");
  const bool compressed = head.substr(0, 2) == "\x1f\x8b";
  if (compressed) head = InflateHead(head);
  std::string known;
  for (const TraceFormat& format : kFormats) {
    if (format.matches(head, compressed)) return format.open(path, options);
    known += (known.empty() ? "" : ", ") + std::string(format.name);
  }
  return InvalidArgument(path + ": byte 0: no trace that can be read; accepted: " + known);
}

}  // namespace flopledger
