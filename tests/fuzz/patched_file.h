#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "collect/trace/trace_formats.h"

namespace flopledger {

/// A good file with a few of its bytes changed and perhaps its end cut off: formats with pages or
/// lengths are left at once by bytes of a fuzzer's own.
inline std::string Patched(std::string file, const std::uint8_t* data, std::size_t size) {
  if (size > 2 && (data[0] & 1) != 0) {
    file.resize(file.size() * data[1] / 256);
    data += 2;
    size -= 2;
  }
  for (; size >= 4 && !file.empty(); data += 4, size -= 4) {
    const std::size_t at = data[0] + std::size_t{data[1]} * 256 + std::size_t{data[2]} * 65536;
    file[at % file.size()] = static_cast<char>(data[3]);
  }
  return file;
}

/// Reads a file in memory to its end, strictly and leniently. Anything but rows or a status with a
/// text is a finding.
inline void ReadTrace(std::string_view bytes) {
  // One file for all inputs. SQLite wants one with a name.
  static const std::string path = [] {
    std::string name = "/tmp/flopledger_fuzz_XXXXXX";
    const int made = mkstemp(name.data());
    if (made < 0) std::abort();
    close(made);
    std::atexit([] { unlink(path.c_str()); });
    return name;
  }();
  const int fd = open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
  if (fd < 0 || write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) {
    std::abort();
  }
  close(fd);
  for (const bool lenient : {false, true}) {
    TraceOptions options;
    options.lenient = lenient;
    options.max_inflated_bytes = 1 << 24;
    options.table_capacity = 1024;
    const Result<TraceSources> sources = OpenTrace(path, options);
    if (!sources.has_value()) {
      if (sources.error().message().empty()) std::abort();
      continue;
    }
    for (const auto& source : *sources) {
      for (int portions = 0; portions < 10000; ++portions) {
        RecordBatch batch;
        const Result<bool> more = source->Read(batch);
        if (!more.has_value() && more.error().message().empty()) std::abort();
        if (!more.has_value() || !*more) break;
      }
    }
  }
}

}  // namespace flopledger
