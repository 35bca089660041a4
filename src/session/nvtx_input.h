#pragma once

#include <memory>
#include <optional>

#include "collect/nvtx/nvtx_injection.h"
#include "flopledger/nvtx.h"
#include "flopledger/report_sink.h"
#include "session/log.h"
#include "session/training_marks.h"

namespace flopledger {

/// A session's ear for NVTX ranges, from its start to its end, and what there is to say about it.
///
/// Thread: the ranges come from any; the rest belongs to whoever pumps. Fails: never; a slot that
/// another tool holds is a capability with the reason `busy`.
class NvtxInput {
 public:
  /// The patterns have been checked.
  NvtxInput(const NvtxOptions& options, const std::shared_ptr<TrainingMarks>& marks);

  /// The capability `nvtx`, if it has changed since the last call; says in the log, once, what the
  /// user has to know.
  std::optional<Capability> TakeChange(Log& log);
  void Stop();
  void BecomeInert() noexcept;

 private:
  Capability Now() const;

  const std::shared_ptr<TrainingMarks> marks_;
  std::unique_ptr<NvtxListening> listening_;
  Capability otherwise_;  // what holds unless a copy of NVTX has come
  Capability said_;
  std::string holder_;
};

}  // namespace flopledger
