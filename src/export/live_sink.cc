#include "export/live_sink.h"

#include <fmt/format.h>

#include <vector>

#include "base/clock.h"
#include "export/report_json.h"

namespace flopledger {
namespace {

constexpr std::size_t kLiveGaps = 20;

std::shared_ptr<const std::string> Share(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

std::string OrNull(const std::shared_ptr<const std::string>& text) {
  return text == nullptr ? "null" : *text;
}

}  // namespace

void LivePage::SetRun(std::string run, std::string conventions) {
  Text run_text = Share(std::move(run));
  Text conventions_text = Share(std::move(conventions));
  MutexLock lock(mutex_);
  run_ = std::move(run_text);
  conventions_ = std::move(conventions_text);
}

void LivePage::SetState(std::string state) {
  Text text = Share(std::move(state));
  MutexLock lock(mutex_);
  state_ = std::move(text);
}

void LivePage::SetTotals(const RunTotals& totals, const RunIdentity& identity) {
  auto copy = std::make_shared<const Totals>(Totals{totals, identity});
  MutexLock lock(mutex_);
  totals_ = std::move(copy);
}

void LivePage::AddStep(const StepReport& report, const RunTotals& totals,
                       const RunIdentity& identity, std::int64_t now_ns) {
  Text point = Share(StepPointJson(report));
  auto last = std::make_shared<const Last>(Last{report, identity});
  auto sums = std::make_shared<const Totals>(Totals{totals, identity});
  MutexLock lock(mutex_);
  points_.emplace_back(report.step, std::move(point));
  if (points_.size() > capacity_) points_.pop_front();
  last_.swap(last);  // the old values are freed after the lock
  totals_.swap(sums);
  published_ns_ = now_ns;
}

std::string LivePage::TextOf(const std::shared_ptr<const Totals>& totals) {
  return totals == nullptr ? "null" : SummaryJson(totals->sums, totals->identity);
}

std::string LivePage::TextOf(const std::shared_ptr<const Last>& last) {
  return last == nullptr ? "null" : StepJson(last->report, last->identity, kLiveGaps);
}

std::string LivePage::AgeText(std::int64_t now_ns) const {
  if (published_ns_ == 0) return "null";
  return fmt::format("{:.3f}", static_cast<double>(now_ns - published_ns_) * 1e-9);
}

std::string LivePage::RunBody(std::int64_t now_ns) const {
  std::shared_ptr<const Totals> totals;
  Text run, state;
  std::string age;
  {
    MutexLock lock(mutex_);
    totals = totals_;
    run = run_;
    state = state_;
    age = AgeText(now_ns);
  }
  return fmt::format(R"({{"run":{},"state":{},"totals":{},"snapshot_age_seconds":{}}})",
                     OrNull(run), OrNull(state), TextOf(totals), age);
}

std::string LivePage::StepsBody(std::int64_t since, std::int64_t now_ns) const {
  std::shared_ptr<const Totals> totals;
  std::shared_ptr<const Last> last;
  std::vector<Text> points;
  Text state;
  std::string age;
  {
    MutexLock lock(mutex_);
    points.reserve(points_.size());
    for (const auto& [step, point] : points_) {
      if (step > since) points.push_back(point);
    }
    totals = totals_;
    last = last_;
    state = state_;
    age = AgeText(now_ns);
  }
  std::string body =
      fmt::format(R"({{"state":{},"last":{},"totals":{},"snapshot_age_seconds":{},"steps":[)",
                  OrNull(state), TextOf(last), TextOf(totals), age);
  for (const Text& point : points) {
    body += *point;
    body += ',';
  }
  if (!points.empty()) body.pop_back();
  return body + "]}";
}

std::string LivePage::ConventionsBody() const {
  MutexLock lock(mutex_);
  return OrNull(conventions_);
}

std::string LivePage::HealthBody(std::int64_t now_ns) const {
  MutexLock lock(mutex_);
  if (published_ns_ == 0) return "ok: no step yet\n";
  return fmt::format("ok: last step published {} s ago\n", AgeText(now_ns));
}

Result<std::unique_ptr<LiveSink>> LiveSink::Create(LiveSinkOptions options) {
  if (options.steps < 1 || options.steps > 100'000) {
    return InvalidArgument(fmt::format("live steps is {}; accepted: 1 to 100000", options.steps));
  }
  return std::unique_ptr<LiveSink>(
      new LiveSink(std::make_shared<LivePage>(static_cast<std::size_t>(options.steps))));
}

void LiveSink::Open(const RunDescription& run) {
  identity_ = run.identity;
  page_->SetRun(RunJson(run), ConventionsJson(run));
}

void LiveSink::Announce(const SessionState& state) {
  state_ = state;
  page_->SetState(StateJson(state_));
}

void LiveSink::Publish(const StepReport& report, const RunTotals& totals) {
  page_->AddStep(report, totals, identity_, SystemClock::Now());
}

void LiveSink::Finish(const RunTotals& totals) {
  state_.run_finished = true;
  page_->SetState(StateJson(state_));
  page_->SetTotals(totals, identity_);
}

}  // namespace flopledger
