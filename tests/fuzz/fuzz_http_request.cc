// Any bytes as a request head: a status or a request that keeps its promises, never a crash.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "export/http_message.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view head(reinterpret_cast<const char*>(data), size);
  const flopledger::ParsedRequest parsed = flopledger::ParseRequestHead(head);
  if (parsed.status != 200) return 0;
  const flopledger::HttpRequest& request = parsed.request;
  // What a route may rely on.
  if (request.method.empty() || !request.path.starts_with('/')) std::abort();
  for (char c : request.path + request.query) {
    if (c <= 0x20 || c >= 0x7F) std::abort();
  }
  if (request.path.find('?') != std::string::npos) std::abort();
  if (request.path.size() + request.query.size() > 2048) std::abort();
  static_cast<void>(flopledger::QueryValue(request.query, "since"));
  return 0;
}
