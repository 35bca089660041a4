#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "collect/trace/trace_source.h"

namespace flopledger {

using TraceSources = std::vector<std::unique_ptr<TraceSource>>;

/// One kind of trace file. A new reader is a line in `trace_formats.cc`.
struct TraceFormat {
  std::string_view name;
  /// Could a file that begins like this be one? `head` is its first bytes, inflated if the file is
  /// gzip (then `compressed`); at most 4 KiB, less if the file is short.
  bool (*matches)(std::string_view head, bool compressed);
  Result<TraceSources> (*open)(const std::string& path, const TraceOptions& options);
};

/// Opens a trace with the reader that its content asks for (never its name). A file with several
/// ranks or processes gives one source each, in the order of the file.
///
///     Result<TraceSources> sources = OpenTrace("worker0.pt.trace.json.gz", {});
///
/// Fails: kNotFound (cannot be opened), kInvalidArgument (no reader knows it), what the reader
/// says; messages name the file.
Result<TraceSources> OpenTrace(const std::string& path, const TraceOptions& options);

/// Each reader's pair of functions.
bool IsKineto(std::string_view head, bool compressed);
Result<TraceSources> OpenKineto(const std::string& path, const TraceOptions& options);
bool IsCapture(std::string_view head, bool compressed);
Result<TraceSources> OpenCapture(const std::string& path, const TraceOptions& options);
bool IsNsys(std::string_view head, bool compressed);
Result<TraceSources> OpenNsys(const std::string& path, const TraceOptions& options);
bool IsXPlane(std::string_view head, bool compressed);
Result<TraceSources> OpenXPlane(const std::string& path, const TraceOptions& options);

}  // namespace flopledger
