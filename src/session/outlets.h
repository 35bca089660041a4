#pragma once

#include <memory>
#include <string>
#include <vector>

#include "flopledger/report_sink.h"
#include "flopledger/session.h"
#include "flopledger/status.h"
#include "session/log.h"

namespace flopledger {

class HttpServer;

/// All sinks of a session and the server that shows them. Whatever a sink throws ends here: it is
/// said once, exported as a capability, and the sink is not called again.
///
/// Thread: the worker; `address` from any, `CloseInChild` in a forked child.
/// Fails: `Create` for options that can never work (an unwritable log path, a remote address
/// without permission). A port that is taken is a normal state.
class Outlets {
 public:
  static Result<std::unique_ptr<Outlets>> Create(SessionOptions& options, const RunIdentity& run,
                                                 Log& log);
  ~Outlets();
  Outlets(const Outlets&) = delete;
  Outlets& operator=(const Outlets&) = delete;

  void Open(const RunDescription& run);
  void Announce(const SessionState& state);
  void Publish(const StepReport& report, const RunTotals& totals);
  void Finish(const RunTotals& totals);
  void Flush(DurationNs limit);
  void StopServing();
  void CloseInChild() noexcept;

  /// What was found when they were made.
  const std::vector<Capability>& capabilities() const { return capabilities_; }
  /// Sinks that threw since the last call.
  std::vector<Capability> TakeFailures();
  const std::string& address() const { return address_; }

 private:
  struct Slot {
    std::string name;
    std::unique_ptr<ReportSink> sink;
    bool failed = false;
  };
  explicit Outlets(Log& log);
  std::optional<Status> AddPages(const SessionOptions& options, const RunIdentity& run);
  std::optional<Status> AddStepLog(const SessionOptions& options);
  template <typename Call>
  void Each(const Call& call);

  Log& log_;
  std::vector<Slot> slots_;
  std::unique_ptr<HttpServer> server_;
  std::vector<Capability> capabilities_;
  std::vector<Capability> failures_;
  std::string address_;
};

}  // namespace flopledger
