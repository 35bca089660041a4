#include "export/http_message.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace flopledger {
namespace {

constexpr std::size_t kMaxTarget = 2048;
constexpr std::size_t kMaxHeaders = 64;

std::string_view ReasonOf(int status) {
  switch (status) {
    case 200:
      return "OK";
    case 302:
      return "Found";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    case 408:
      return "Request Timeout";
    case 414:
      return "URI Too Long";
    case 421:
      return "Misdirected Request";
    case 431:
      return "Request Header Fields Too Large";
    case 503:
      return "Service Unavailable";
    case 505:
      return "HTTP Version Not Supported";
    default:
      return "Internal Server Error";
  }
}

bool IsTokenCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
         std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

bool IsToken(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), IsTokenCharacter);
}

bool IsVisible(char c) { return c > 0x20 && c < 0x7F; }

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

std::string_view Trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// `host`, `host:port`, `[v6]`, `[v6]:port`; the part before the port.
std::string_view WithoutPort(std::string_view host) {
  if (host.starts_with('[')) {
    const std::size_t end = host.find(']');
    return end == std::string_view::npos ? host : host.substr(0, end + 1);
  }
  return host.substr(0, host.find(':'));
}

int ParseRequestLine(std::string_view line, HttpRequest* request) {
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || last == first) return 400;
  const std::string_view method = line.substr(0, first);
  const std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (!IsToken(method) || method.size() > 16) return 400;
  if (target.size() > kMaxTarget) return 414;
  if (!target.starts_with('/') || !std::all_of(target.begin(), target.end(), IsVisible)) return 400;
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    return version.starts_with("HTTP/") ? 505 : 400;
  }
  request->method = method;
  const std::size_t question = target.find('?');
  request->path = target.substr(0, question);
  if (question != std::string_view::npos) request->query = target.substr(question + 1);
  return 200;
}

// False if the line is not a header.
bool ParseHeaderLine(std::string_view line, HttpRequest* request, int* hosts) {
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !IsToken(line.substr(0, colon))) return false;
  const std::string_view value = Trim(line.substr(colon + 1));
  for (char c : value) {
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7F) return false;
  }
  if (Lower(line.substr(0, colon)) == "host") {
    ++*hosts;
    request->host = Lower(WithoutPort(value));
  }
  return true;
}

}  // namespace

ParsedRequest ParseRequestHead(std::string_view head) {
  ParsedRequest parsed;
  std::size_t lines = 0;
  int hosts = 0;
  bool http_1_1 = false;
  while (true) {
    const std::size_t end = head.find("\r\n");
    if (end == std::string_view::npos) return {400, {}};
    const std::string_view line = head.substr(0, end);
    head.remove_prefix(end + 2);
    if (lines == 0) {
      parsed.status = ParseRequestLine(line, &parsed.request);
      if (parsed.status != 200) return {parsed.status, {}};
      http_1_1 = line.ends_with("HTTP/1.1");
    } else if (line.empty()) {
      break;
    } else if (lines > kMaxHeaders) {
      return {431, {}};
    } else if (!ParseHeaderLine(line, &parsed.request, &hosts)) {
      return {400, {}};
    }
    ++lines;
  }
  if (hosts > 1 || (http_1_1 && hosts == 0)) return {400, {}};
  return parsed;
}

HttpResponse PlainResponse(int status, std::string text) {
  if (text.empty()) text = fmt::format("{} {}\n", status, ReasonOf(status));
  HttpResponse response;
  response.status = status;
  response.body = std::make_shared<const std::string>(std::move(text));
  if (status == 405) response.headers.emplace_back("Allow", "GET, HEAD");
  return response;
}

std::string RenderResponseHead(const HttpResponse& response) {
  std::string head = fmt::format(
      "HTTP/1.1 {} {}\r\n"
      "Content-Type: {}\r\n"
      "Content-Length: {}\r\n"
      "Connection: close\r\n"
      "Cache-Control: no-store\r\n"
      "Content-Security-Policy: default-src 'self'; base-uri 'none'; form-action 'none'; "
      "frame-ancestors 'none'\r\n"
      "X-Content-Type-Options: nosniff\r\n"
      "Referrer-Policy: no-referrer\r\n",
      response.status, ReasonOf(response.status), response.content_type,
      response.body == nullptr ? 0 : response.body->size());
  for (const auto& [name, value] : response.headers) {
    head += fmt::format("{}: {}\r\n", name, value);
  }
  return head + "\r\n";
}

std::string_view QueryValue(std::string_view query, std::string_view key) {
  while (!query.empty()) {
    const std::size_t end = query.find('&');
    const std::string_view pair = query.substr(0, end);
    if (pair.starts_with(key) && pair.substr(key.size()).starts_with('=')) {
      return pair.substr(key.size() + 1);
    }
    if (end == std::string_view::npos) break;
    query.remove_prefix(end + 1);
  }
  return {};
}

}  // namespace flopledger
