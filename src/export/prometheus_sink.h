#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "export/metric_table.h"
#include "export/snapshot.h"
#include "export/step_window.h"
#include "flopledger/report_sink.h"
#include "flopledger/status.h"

namespace flopledger {

/// What /metrics serves: the table of the last closed step, made into text by whoever asks first.
///
/// Thread: `Publish` by the worker; `Text` by the HTTP thread. Neither waits for the other's work.
class MetricsPage {
 public:
  void Publish(MetricTable table, const RunIdentity& identity);
  /// The text of the last snapshot; empty before the first one. Asked twice, it is made once.
  std::shared_ptr<const std::string> Text() const;
  /// Time that making text has taken since the start.
  double render_seconds() const { return render_seconds_.load(std::memory_order_relaxed); }

 private:
  struct Page {
    MetricTable table;
    std::string run_id;
    int rank = 0;
  };
  struct Rendered {
    std::shared_ptr<const Page> page;
    std::shared_ptr<const std::string> text;
  };
  Snapshot<Page> page_;
  mutable Snapshot<Rendered> rendered_;
  mutable std::atomic<double> render_seconds_{0};
};

struct PrometheusSinkOptions {
  int window_steps = 20;                ///< of the `flopledger_window_...` gauges; 1 to 100000
  std::vector<double> duration_bounds;  ///< seconds, rising, at most 12; empty: the default
};

/// Renders totals and the last report as Prometheus metrics, one atomic publish a step.
///
///     auto sink = PrometheusSink::Create({.window_steps = 20});
///     std::shared_ptr<const MetricsPage> page = (*sink)->page();   // outlives the sink
///
/// Thread: as `ReportSink`; `page()` may be read by any thread. Fails: `Create` only.
class PrometheusSink final : public ReportSink {
 public:
  static Result<std::unique_ptr<PrometheusSink>> Create(PrometheusSinkOptions options = {});

  void Open(const RunDescription& run) override;
  void Announce(const SessionState& state) override;
  void Publish(const StepReport& report, const RunTotals& totals) override;
  void Finish(const RunTotals& totals) override;

  std::shared_ptr<const MetricsPage> page() const { return page_; }
  const MetricTable& table() const { return table_; }

 private:
  explicit PrometheusSink(PrometheusSinkOptions options);
  void SetTotals(const RunTotals& totals);
  void SetFlopTotals(const RunTotals& totals);
  void SetTimeTotals(const RunTotals& totals);
  void SetExecutedTotals(const RunTotals& totals);
  void SetWindow();
  void SetReport(const StepReport& report);
  void PublishPage();

  const PrometheusSinkOptions options_;
  std::shared_ptr<MetricsPage> page_ = std::make_shared<MetricsPage>();
  MetricTable table_;
  RunDescription run_;
  RunTotals totals_;
  StepWindow window_;
  std::vector<std::string> finding_ids_;
  double publish_seconds_ = 0;
  bool has_declaration_ = false;
  bool has_evidence_ = false;
  bool has_peak_ = false;
};

}  // namespace flopledger
