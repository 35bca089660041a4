#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/sync.h"
#include "collect/nvtx/nvtx_rules.h"
#include "flopledger/op_class.h"
#include "flopledger/status.h"

namespace flopledger {

/// Who takes what the NVTX ranges of this process say.
///
/// Thread: called by whichever thread has the range: no lock, no heap. Fails: never.
class NvtxListener {
 public:
  virtual ~NvtxListener() = default;
  /// False if the step is not taken: its end does not come either.
  virtual bool BeginStep(std::optional<std::int64_t> number) noexcept = 0;
  virtual void EndStep(bool failed) noexcept = 0;
  /// `of_process`: a start/end range, which belongs to no thread. False as above.
  virtual bool BeginPhase(Phase phase, bool of_process) noexcept = 0;
  virtual void EndPhase(Phase phase) noexcept = 0;
  /// Useful tokens of a micro-batch; negative: what was given cannot be a number of tokens.
  virtual void Tokens(std::int64_t useful) noexcept = 0;
};

/// What the injection has seen.
struct NvtxState {
  bool built = false;            ///< false: the build had no NVTX headers
  int clients = 0;               ///< copies of NVTX that attached to us
  std::int64_t inner_steps = 0;  ///< step ranges inside of another, not taken
  std::int64_t untaken = 0;      ///< ranges beyond what a thread or the process may have open
};

/// Fills the function tables of one copy of NVTX with ours; the export table is that of
/// `InitializeInjectionNvtx2`. Every copy in the process comes here once. False: refused.
bool AttachNvtxClient(const void* (*get_export_table)(std::uint32_t)) noexcept;

/// As long as it lives, ranges go to the listener. One at a time per process; until there is one,
/// ranges cost next to nothing and are not kept.
///
///     auto listening = NvtxListening::Create(listener, *NvtxRuleBook::Create("step*", ""));
///
/// Thread: any. Ownership: keeps the listener for ever, since a call may be under way in any thread
/// when this ends. Fails: `Create` returns null if another session listens, or without NVTX
/// headers.
class NvtxListening {
 public:
  static std::unique_ptr<NvtxListening> Create(std::shared_ptr<NvtxListener> listener,
                                               NvtxRuleBook rules);
  ~NvtxListening();
  NvtxListening(const NvtxListening&) = delete;
  NvtxListening& operator=(const NvtxListening&) = delete;

  /// In a forked child: gives the place free for a session of its own. Async-signal-safe.
  void BecomeInert() noexcept;

 private:
  explicit NvtxListening(void* place) : place_(place) {}
  [[maybe_unused]] void* const place_;  // the stand-in without headers has none
};

NvtxState CurrentNvtxState() noexcept;

}  // namespace flopledger
