#pragma once

#include <memory>

namespace flopledger {

/// What the process does to a session from outside: `fork`, and a SIGTERM that would end it.
///
/// Thread: `BecomeInert` runs in the forked child, where no other thread exists: no lock, no log.
class ProcessListener {
 public:
  virtual ~ProcessListener() = default;
  virtual void BecomeInert() noexcept = 0;
};

/// Registers for `fork` as long as the listener lives. A child never has a working listener.
void ListenToForks(const std::weak_ptr<ProcessListener>& listener);

/// Catches SIGTERM if nobody else handles it, so that closed steps can be flushed first.
/// The first session installs it, the last one puts the default back. A process that is not done
/// within two seconds after the signal is ended by it all the same.
///
///     if (auto hook = TerminationHook::Install()) ...
///     if (TerminationHook::Pending()) { flush; TerminationHook::EndProcess(); }
///
/// Thread: any. Fails: `Install` returns null where somebody else handles SIGTERM, or ignores it.
class TerminationHook {
 public:
  static std::unique_ptr<TerminationHook> Install();
  ~TerminationHook();
  TerminationHook(const TerminationHook&) = delete;
  TerminationHook& operator=(const TerminationHook&) = delete;

  /// SIGTERM has arrived.
  static bool Pending() noexcept;
  /// Ends the process by SIGTERM, as it would have ended without us.
  static void EndProcess() noexcept;

 private:
  TerminationHook() = default;
};

}  // namespace flopledger
