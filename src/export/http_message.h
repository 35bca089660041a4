#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace flopledger {

/// What a handler may know of a request. There is no body: none is read.
struct HttpRequest {
  std::string method;
  std::string path;   ///< as sent, not decoded: routes are compared byte by byte
  std::string query;  ///< behind the `?`, not decoded
  std::string host;   ///< of the Host header, without port, lower case; empty: not sent
};

/// What a handler answers. The body is shared with the writer, never copied.
struct HttpResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::shared_ptr<const std::string> body;
  std::vector<std::pair<std::string, std::string>> headers;
};

/// Thread: called by the HTTP thread alone. What it throws becomes a 500.
using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;

/// One path, compared whole.
struct HttpRoute {
  std::string path;
  HttpHandler handler;
};

/// A request, or the status to refuse it with.
struct ParsedRequest {
  int status = 200;  ///< 200: `request` is whole; else a refusal
  HttpRequest request;
};

/// Reads a request head, up to and with the empty line. Takes HTTP/1.0 and 1.1 in origin form;
/// refuses what is not in the grammar (bare line feeds, folded lines, control characters, two
/// hosts) instead of repairing it. Thread: any. Fails: by status; never throws on bad input.
ParsedRequest ParseRequestHead(std::string_view head);

/// A short answer in plain text.
HttpResponse PlainResponse(int status, std::string text = {});

/// Status line and headers of an answer, with the security headers that every answer has.
std::string RenderResponseHead(const HttpResponse& response);

/// Value of `key` in a query, or empty. `since` in `since=12&x=y` is `12`. Not decoded.
std::string_view QueryValue(std::string_view query, std::string_view key);

}  // namespace flopledger
