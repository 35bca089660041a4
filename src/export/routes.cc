#include "export/routes.h"

#include <charconv>
#include <limits>
#include <string>

#include "base/clock.h"
#include "export/live_assets.h"

namespace flopledger {
namespace {

constexpr const char* kPrometheusText = "text/plain; version=0.0.4; charset=utf-8";
constexpr const char* kJson = "application/json; charset=utf-8";

HttpResponse TextResponse(const char* content_type, std::shared_ptr<const std::string> body) {
  HttpResponse response;
  response.content_type = content_type;
  response.body = std::move(body);
  return response;
}

HttpResponse JsonResponse(std::string body) {
  return TextResponse(kJson, std::make_shared<const std::string>(std::move(body)));
}

HttpResponse StepsResponse(const LivePage& live, std::string_view query) {
  const std::string_view since_text = QueryValue(query, "since");
  std::int64_t since = std::numeric_limits<std::int64_t>::min();
  if (!since_text.empty()) {
    const auto [end, error] =
        std::from_chars(since_text.data(), since_text.data() + since_text.size(), since);
    if (error != std::errc() || end != since_text.data() + since_text.size()) {
      return PlainResponse(400, "since has to be a step number\n");
    }
  }
  return JsonResponse(live.StepsBody(since, SystemClock::Now()));
}

}  // namespace

std::vector<HttpRoute> PageRoutes(std::shared_ptr<const MetricsPage> metrics,
                                  std::shared_ptr<const LivePage> live) {
  std::vector<HttpRoute> routes;
  routes.push_back({"/metrics", [metrics](const HttpRequest&) {
                      return TextResponse(kPrometheusText, metrics->Text());
                    }});
  routes.push_back({"/api/v1/steps", [live](const HttpRequest& request) {
                      return StepsResponse(*live, request.query);
                    }});
  routes.push_back({"/api/v1/run", [live](const HttpRequest&) {
                      return JsonResponse(live->RunBody(SystemClock::Now()));
                    }});
  routes.push_back({"/api/v1/conventions",
                    [live](const HttpRequest&) { return JsonResponse(live->ConventionsBody()); }});
  routes.push_back({"/-/healthy", [live](const HttpRequest&) {
                      return PlainResponse(200, live->HealthBody(SystemClock::Now()));
                    }});
  routes.push_back({"/", [](const HttpRequest&) {
                      HttpResponse response = PlainResponse(302, "see /live and /metrics\n");
                      response.headers.emplace_back("Location", "/live");
                      return response;
                    }});
  for (const LiveAsset& asset : LiveAssets()) {
    auto body = std::make_shared<const std::string>(asset.content);
    const std::string path =
        asset.name == "live.html" ? "/live" : "/assets/" + std::string(asset.name);
    routes.push_back({path, [body, type = std::string(asset.content_type)](const HttpRequest&) {
                        return TextResponse(type.c_str(), body);
                      }});
  }
  return routes;
}

}  // namespace flopledger
