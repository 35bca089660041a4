#include "collect/trace/trace_formats.h"

namespace flopledger {

bool IsKineto(std::string_view head, bool compressed) {
  if (head.substr(0, 3) == "\xef\xbb\xbf") head.remove_prefix(3);
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return compressed;
  if (head[first] == '{' || head[first] == '[') return true;
  // An archive of ranks.
  return head.size() >= 263 && head.substr(257, 5) == "ustar";
}

Result<TraceSources> OpenKineto(const std::string& path, const TraceOptions&) {
  return Fail(StatusCode::kUnsupported, path + ": not read yet");
}

}  // namespace flopledger
