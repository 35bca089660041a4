#include "flopledger/session.h"

#include <unistd.h>

#include <algorithm>
#include <exception>
#include <numeric>
#include <utility>

#include "export/flat_values.h"
#include "session/engine.h"

// Calls of the training thread: one clock read and one write into its own ring each.

namespace flopledger {
namespace {

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

Session::Session(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {}

Session::~Session() {
  Close();
  if (!engine_->inert()) return;
  // A forked child: the engine's threads are not here, so nothing of it can be taken down.
  static auto* const left_alone = new std::vector<std::shared_ptr<Engine>>;
  left_alone->push_back(std::move(engine_));
}

Result<std::unique_ptr<Session>> Session::Create(SessionOptions options) {
  try {
    Result<std::shared_ptr<Engine>> engine =
        Engine::Create(std::move(options), std::make_unique<SystemClock>());
    if (!engine) return tl::unexpected(engine.error());
    return std::unique_ptr<Session>(new Session(*std::move(engine)));
  } catch (const std::exception& error) {
    return Fail(StatusCode::kInternal, std::string("session not started: ") + error.what());
  }
}

Session::StepScope::StepScope(Session* session, std::optional<std::int64_t> step)
    : session_(session), exceptions_(std::uncaught_exceptions()) {
  session_->BeginStep(step);
}

Session::StepScope::~StepScope() { session_->EndStep(std::uncaught_exceptions() > exceptions_); }

Session::SectionScope::SectionScope(Session* session, Phase phase)
    : session_(session), phase_(phase) {
  session_->BeginSection(phase_);
}

Session::SectionScope::~SectionScope() { session_->EndSection(phase_); }

void Session::BeginStep(std::optional<std::int64_t> step) noexcept {
  engine_->source().Mark(MarkerRecord::Kind::kStepBegin, engine_->NextStep(step));
}

void Session::EndStep(bool failed) noexcept {
  engine_->source().Mark(failed ? MarkerRecord::Kind::kStepFailed : MarkerRecord::Kind::kStepEnd,
                         0);
}

void Session::BeginSection(Phase phase) noexcept {
  engine_->source().Mark(MarkerRecord::Kind::kSectionBegin, 0, phase);
}

void Session::EndSection(Phase phase) noexcept {
  engine_->source().Mark(MarkerRecord::Kind::kSectionEnd, 0, phase);
}

void Session::Tokens(const TokenDeclaration& tokens) noexcept {
  HostSource& source = engine_->source();
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
    DeclareKnownRows(source, tokens, useful);
    return;
  }
  const std::int64_t length =
      tokens.sequence_length > 0 ? tokens.sequence_length : engine_->options().sequence_length;
  if (length == 0) {
    source.DeclareRows({.count = useful, .length = 1, .useful_length = 1, .unknown_length = true});
    source.DeclareRows(
        {.count = padded - useful, .length = 1, .useful_length = 0, .unknown_length = true});
    return;
  }
  // A last row that is shorter than the others takes its share of the useful tokens.
  const std::int64_t rest = padded % length;
  const std::int64_t rest_useful =
      padded == 0 ? 0 : static_cast<std::int64_t>(Int128{useful} * rest / padded);
  DeclareEvenRows(source, padded / length, length, useful - rest_useful);
  if (rest > 0) DeclareEvenRows(source, 1, rest, rest_useful);
}

void Session::DeclareWork(Flops forward, Flops backward, std::int64_t tokens) noexcept {
  if (forward.count() < 0 || backward.count() < 0 || tokens < 0) {
    RefuseDeclaration();
    return;
  }
  engine_->source().DeclareWork(forward, backward, tokens);
}

void Session::RefuseDeclaration() noexcept {
  engine_->source().Mark(MarkerRecord::Kind::kDeclarationInvalid, 0);
}

void Session::Warn(std::string_view text) noexcept { engine_->Warn(text); }

void Session::SetValue(std::string_view name, double value) noexcept {
  if (!engine_->inert()) engine_->SetValue(name, value);
}

void Session::SetCapability(std::string_view name, bool available,
                            std::string_view reason) noexcept {
  if (!engine_->inert()) engine_->SetCapability(name, available, reason);
}

const flopledger_host_ops* Session::HostOps() noexcept { return engine_->source().host_ops(); }

std::shared_ptr<const StepReport> Session::LastReport() const { return engine_->LastReport(); }

std::vector<std::pair<std::string, double>> Session::LastValues() const {
  const std::shared_ptr<const StepReport> report = engine_->LastReport();
  if (!report) return {};
  return FlatValues(*report);
}

RunTotals Session::Totals() const { return engine_->Totals(); }

std::string Session::Summary() const { return engine_->Summary(); }

RunDescription Session::Description() const { return engine_->Description(); }

SessionState Session::State() const { return engine_->State(); }

std::string Session::Address() const { return engine_->Address(); }

std::string Session::JsonlPath() const { return engine_->options().jsonl_path; }

void Session::PumpOnce() noexcept { engine_->PumpOnce(); }

void Session::Close(DurationNs limit) noexcept { engine_->Close(limit); }

}  // namespace flopledger
