#include "session/training_marks.h"

#include <algorithm>
#include <numeric>

// Called by the training thread: one clock read and one write into its own ring a boundary.

namespace flopledger {
namespace {

thread_local constinit char this_thread = 0;  // its address is the thread's name

/// Rows of equal length with the useful tokens split as evenly as whole tokens allow.
void DeclareEvenRows(HostSource& source, std::int64_t rows, std::int64_t length,
                     std::int64_t useful) noexcept {
  if (rows <= 0) return;
  const std::int64_t each = useful / rows;
  const std::int64_t longer = useful % rows;
  const bool split = useful != rows * length;
  source.DeclareRows(
      {.count = longer, .length = length, .useful_length = each + 1, .even_split = split});
  source.DeclareRows(
      {.count = rows - longer, .length = length, .useful_length = each, .even_split = split});
}

/// Rows whose useful lengths are known.
void DeclareKnownRows(HostSource& source, const TokenDeclaration& tokens,
                      std::int64_t useful) noexcept {
  const auto rows = static_cast<std::int64_t>(tokens.lengths.size());
  const std::int64_t padded = tokens.padded > 0 ? tokens.padded : useful;
  const std::int64_t longest = *std::max_element(tokens.lengths.begin(), tokens.lengths.end());
  std::int64_t row_length = tokens.sequence_length;
  if (row_length == 0 && padded > useful && padded % rows == 0 && padded / rows >= longest) {
    row_length = padded / rows;
  }
  if (row_length > 0 && row_length < longest) {
    source.Mark(MarkerRecord::Kind::kDeclarationInvalid, 0);
    return;
  }
  source.DeclareRows(tokens.lengths, row_length);
  if (row_length == 0 && padded > useful) {
    // A pack with padding behind its documents: pad tokens that attend to nothing.
    source.DeclareRows({.count = padded - useful, .length = 1, .useful_length = 0});
  }
}

}  // namespace

bool TrainingMarks::BeginStep(Origin origin, std::optional<std::int64_t> number) noexcept {
  if (origin == Origin::kNvtx) {
    if (api_steps_.load(std::memory_order_relaxed)) {
      ignored_.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
    nvtx_step_open_.store(true, std::memory_order_relaxed);
  } else if (!api_steps_.load(std::memory_order_relaxed)) {
    api_steps_.store(true, std::memory_order_relaxed);
    if (nvtx_step_open_.exchange(false, std::memory_order_relaxed)) {
      source_->MarkStep(MarkerRecord::Kind::kStepFailed, 0);
    }
  }
  const std::int64_t step = number.value_or(next_step_.load(std::memory_order_relaxed));
  next_step_.store(step + 1, std::memory_order_relaxed);
  step_thread_.store(&this_thread, std::memory_order_relaxed);
  source_->MarkStep(MarkerRecord::Kind::kStepBegin, step);
  return true;
}

void TrainingMarks::EndStep(Origin origin, bool failed) noexcept {
  if (origin == Origin::kNvtx && !nvtx_step_open_.exchange(false, std::memory_order_relaxed)) {
    return;  // the API has taken over meanwhile
  }
  source_->MarkStep(failed ? MarkerRecord::Kind::kStepFailed : MarkerRecord::Kind::kStepEnd, 0);
}

void TrainingMarks::BeginSection(Phase phase) noexcept {
  source_->Mark(MarkerRecord::Kind::kSectionBegin, 0, phase);
}

void TrainingMarks::EndSection(Phase phase) noexcept {
  source_->Mark(MarkerRecord::Kind::kSectionEnd, 0, phase);
}

bool TrainingMarks::OnStepThread() const noexcept {
  const void* thread = step_thread_.load(std::memory_order_relaxed);
  return thread == nullptr || thread == &this_thread;
}

void TrainingMarks::Tokens(Origin origin, const TokenDeclaration& tokens) noexcept {
  if (origin == Origin::kApi) {
    api_tokens_.store(true, std::memory_order_relaxed);
  } else if (api_steps_.load(std::memory_order_relaxed) ||
             api_tokens_.load(std::memory_order_relaxed)) {
    ignored_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const std::int64_t useful =
      tokens.lengths.empty()
          ? tokens.useful
          : std::accumulate(tokens.lengths.begin(), tokens.lengths.end(), std::int64_t{0});
  const std::int64_t padded = tokens.padded > 0 ? tokens.padded : useful;
  const bool negative_length = std::any_of(tokens.lengths.begin(), tokens.lengths.end(),
                                           [](std::int64_t length) { return length < 0; });
  const bool contradicts = !tokens.lengths.empty() && tokens.useful != 0 && tokens.useful != useful;
  if (useful < 0 || tokens.padded < 0 || tokens.sequence_length < 0 || useful > padded ||
      negative_length || contradicts) {
    RefuseDeclaration();
    return;
  }
  if (!tokens.lengths.empty()) {
    DeclareKnownRows(*source_, tokens, useful);
    return;
  }
  const std::int64_t length =
      tokens.sequence_length > 0 ? tokens.sequence_length : sequence_length_;
  if (length == 0) {
    source_->DeclareRows(
        {.count = useful, .length = 1, .useful_length = 1, .unknown_length = true});
    source_->DeclareRows(
        {.count = padded - useful, .length = 1, .useful_length = 0, .unknown_length = true});
    return;
  }
  // A last row that is shorter than the others takes its share of the useful tokens.
  const std::int64_t rest = padded % length;
  const std::int64_t rest_useful =
      padded == 0 ? 0 : static_cast<std::int64_t>(Int128{useful} * rest / padded);
  DeclareEvenRows(*source_, padded / length, length, useful - rest_useful);
  if (rest > 0) DeclareEvenRows(*source_, 1, rest, rest_useful);
}

void TrainingMarks::DeclareWork(Flops forward, Flops backward, std::int64_t tokens) noexcept {
  if (forward.count() < 0 || backward.count() < 0 || tokens < 0) {
    RefuseDeclaration();
    return;
  }
  api_tokens_.store(true, std::memory_order_relaxed);
  source_->DeclareWork(forward, backward, tokens);
}

void TrainingMarks::RefuseDeclaration() noexcept {
  source_->Mark(MarkerRecord::Kind::kDeclarationInvalid, 0);
}

}  // namespace flopledger
