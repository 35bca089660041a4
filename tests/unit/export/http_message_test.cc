#include "export/http_message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace flopledger {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

int StatusOf(std::string_view head) { return ParseRequestHead(head).status; }

TEST(ParseRequestHeadTest, ReadsWhatScrapersAndBrowsersSend) {
  const ParsedRequest parsed = ParseRequestHead(
      "GET /api/v1/steps?since=12&x=y HTTP/1.1\r\nHost: LocalHost:9410\r\nAccept: */*\r\n"
      "X-Empty:\r\n\r\n");
  ASSERT_EQ(parsed.status, 200);
  EXPECT_EQ(parsed.request.method, "GET");
  EXPECT_EQ(parsed.request.path, "/api/v1/steps");
  EXPECT_EQ(parsed.request.query, "since=12&x=y");
  EXPECT_EQ(parsed.request.host, "localhost");
  EXPECT_EQ(ParseRequestHead("GET / HTTP/1.1\r\nHost: [::1]:80\r\n\r\n").request.host, "[::1]");
  EXPECT_EQ(StatusOf("HEAD /metrics HTTP/1.0\r\n\r\n"), 200) << "1.0 has no Host";
}

TEST(ParseRequestHeadTest, RefusesInsteadOfRepairing) {
  const std::string host = "Host: localhost\r\n\r\n";
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\n\r\n"), 400) << "no host";
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), 400) << "two hosts";
  EXPECT_EQ(StatusOf("GET / HTTP/2.0\r\n" + host), 505);
  EXPECT_EQ(StatusOf("GET / FTP/1.0\r\n" + host), 400);
  EXPECT_EQ(StatusOf("GET http://x/ HTTP/1.1\r\n" + host), 400) << "proxy form";
  EXPECT_EQ(StatusOf("GET  / HTTP/1.1\r\n" + host), 400) << "two spaces";
  EXPECT_EQ(StatusOf("GET /a b HTTP/1.1\r\n" + host), 400) << "space in the path";
  EXPECT_EQ(StatusOf("G@T / HTTP/1.1\r\n" + host), 400);
  EXPECT_EQ(StatusOf("GET /\x80 HTTP/1.1\r\n" + host), 400);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nA: b\r\n folded\r\n" + host), 400);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nA : b\r\n" + host), 400) << "space before the colon";
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nA: b\x01\r\n" + host), 400);
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nA: b\nC: d\r\n" + host), 400) << "bare line feed";
  EXPECT_EQ(StatusOf("GET / HTTP/1.1\r\nHost: localhost\r\n"), 400) << "no end";
  EXPECT_EQ(StatusOf(""), 400);
  EXPECT_EQ(StatusOf("GET /" + std::string(3000, 'a') + " HTTP/1.1\r\n" + host), 414);
  std::string many = "GET / HTTP/1.1\r\n";
  for (int i = 0; i < 100; ++i) many += "A: b\r\n";
  EXPECT_EQ(StatusOf(many + host), 431);
}

TEST(RenderResponseHeadTest, EveryAnswerHasTheSecurityHeaders) {
  for (int status : {200, 400, 404, 405, 500}) {
    const std::string head = RenderResponseHead(PlainResponse(status));
    EXPECT_THAT(head, HasSubstr("Content-Security-Policy: default-src 'self';"));
    EXPECT_THAT(head, HasSubstr("X-Content-Type-Options: nosniff\r\n"));
    EXPECT_THAT(head, HasSubstr("Connection: close\r\n"));
    EXPECT_THAT(head, EndsWith("\r\n\r\n"));
    EXPECT_THAT(head, Not(HasSubstr("Access-Control")));
  }
  EXPECT_THAT(RenderResponseHead(PlainResponse(405)), HasSubstr("Allow: GET, HEAD\r\n"));
}

TEST(QueryValueTest, FindsWholeKeysOnly) {
  EXPECT_EQ(QueryValue("since=12&x=y", "since"), "12");
  EXPECT_EQ(QueryValue("a=b&since=-3", "since"), "-3");
  EXPECT_EQ(QueryValue("notsince=1&sincee=2", "since"), "");
  EXPECT_EQ(QueryValue("", "since"), "");
}

}  // namespace
}  // namespace flopledger
