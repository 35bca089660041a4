#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "collect/host_source.h"
#include "flopledger/op_class.h"
#include "flopledger/session.h"

namespace flopledger {

/// What the training process says of itself, from whichever side it says it: calls of the step API
/// or NVTX ranges. The one place where a step boundary is made, so that a boundary is the same
/// whoever draws it.
///
/// A session takes its steps and tokens from one side. The API wins: from its first step on, those
/// of NVTX are ignored and counted, and a step that was open then ends as incomplete
/// (docs/adr/0055).
///
///     marks.BeginStep(TrainingMarks::Origin::kApi, std::nullopt);
///     marks.EndStep(TrainingMarks::Origin::kApi, /*failed=*/false);
///
/// Thread: any; no lock, no heap. Ownership: shared with the NVTX injection, whose callbacks may
/// come after the session; by then the source has stopped and they do nothing. Fails: never.
class TrainingMarks {
 public:
  enum class Origin : std::uint8_t { kApi, kNvtx };

  TrainingMarks(std::shared_ptr<HostSource> source, std::int64_t sequence_length)
      : source_(std::move(source)), sequence_length_(sequence_length) {}

  /// False if the step was ignored: its end has to be left out, too.
  FLOPLEDGER_HOT bool BeginStep(Origin origin, std::optional<std::int64_t> number) noexcept;
  FLOPLEDGER_HOT void EndStep(Origin origin, bool failed) noexcept;
  FLOPLEDGER_HOT void BeginSection(Phase phase) noexcept;
  FLOPLEDGER_HOT void EndSection(Phase phase) noexcept;

  void Tokens(Origin origin, const TokenDeclaration& tokens) noexcept;
  void DeclareWork(Flops forward, Flops backward, std::int64_t tokens) noexcept;
  void RefuseDeclaration() noexcept;

  /// Whether this thread began the last step, or nobody has begun one: a section of another thread
  /// runs beside the step and is no part of its time.
  bool OnStepThread() const noexcept;
  /// Steps and tokens of NVTX that the API's made superfluous.
  std::int64_t ignored() const noexcept { return ignored_.load(std::memory_order_relaxed); }

 private:
  const std::shared_ptr<HostSource> source_;
  const std::int64_t sequence_length_;
  std::atomic<std::int64_t> next_step_{0};
  std::atomic<std::int64_t> ignored_{0};
  std::atomic<const void*> step_thread_{nullptr};
  std::atomic<bool> api_steps_{false};
  std::atomic<bool> api_tokens_{false};
  std::atomic<bool> nvtx_step_open_{false};
};

}  // namespace flopledger
