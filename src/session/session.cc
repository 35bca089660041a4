#include "flopledger/session.h"

#include <unistd.h>

#include <exception>
#include <utility>

#include "export/flat_values.h"
#include "session/engine.h"
#include "session/environment.h"

// Calls of the training thread: one clock read and one write into its own ring each.

namespace flopledger {
Session::Session(std::shared_ptr<Engine> engine) : engine_(std::move(engine)) {}

Session::~Session() {
  Close();
  if (!engine_->inert()) return;
  // A forked child: the engine's threads are not here, so nothing of it can be taken down.
  static auto* const left_alone = new std::vector<std::shared_ptr<Engine>>;
  left_alone->push_back(std::move(engine_));
}

Result<std::unique_ptr<Session>> Session::Create(SessionOptions options) {
  SessionParts parts{.clock = std::make_unique<SystemClock>(), .device = nullptr};
  return std::move(parts).Create(std::move(options));
}

Result<std::unique_ptr<Session>> SessionParts::Create(SessionOptions options) && {
  try {
    CloseSessionFromEnvironment();
    Result<std::shared_ptr<Session::Engine>> engine =
        Session::Engine::Create(std::move(options), std::move(*this));
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
  engine_->marks().BeginStep(TrainingMarks::Origin::kApi, step);
}

void Session::EndStep(bool failed) noexcept {
  engine_->marks().EndStep(TrainingMarks::Origin::kApi, failed);
}

void Session::BeginSection(Phase phase) noexcept { engine_->marks().BeginSection(phase); }

void Session::EndSection(Phase phase) noexcept { engine_->marks().EndSection(phase); }

void Session::Tokens(const TokenDeclaration& tokens) noexcept {
  engine_->marks().Tokens(TrainingMarks::Origin::kApi, tokens);
}

void Session::DeclareWork(Flops forward, Flops backward, std::int64_t tokens) noexcept {
  engine_->marks().DeclareWork(forward, backward, tokens);
}

void Session::RefuseDeclaration() noexcept { engine_->marks().RefuseDeclaration(); }

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
