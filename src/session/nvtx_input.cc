#include "session/nvtx_input.h"

#include <fmt/format.h>

#include <utility>

#include "collect/nvtx/nvtx_variable.h"

namespace flopledger {
namespace {

/// Ranges become the same marks as calls of the step API.
class RangeMarks final : public NvtxListener {
 public:
  explicit RangeMarks(std::shared_ptr<TrainingMarks> marks) : marks_(std::move(marks)) {}

  bool BeginStep(std::optional<std::int64_t> number) noexcept override {
    return marks_->BeginStep(TrainingMarks::Origin::kNvtx, number);
  }
  void EndStep(bool failed) noexcept override {
    marks_->EndStep(TrainingMarks::Origin::kNvtx, failed);
  }
  bool BeginPhase(Phase phase, bool of_process) noexcept override {
    if (!of_process && !marks_->OnStepThread()) return false;
    marks_->BeginSection(phase);
    return true;
  }
  void EndPhase(Phase phase) noexcept override { marks_->EndSection(phase); }
  void Tokens(std::int64_t useful) noexcept override {
    marks_->Tokens(TrainingMarks::Origin::kNvtx, {.useful = useful});
  }

 private:
  const std::shared_ptr<TrainingMarks> marks_;
};

Capability Nvtx(bool available, std::string reason) {
  return {.name = "nvtx", .available = available, .reason = std::move(reason)};
}

}  // namespace

NvtxInput::NvtxInput(const NvtxOptions& options, const std::shared_ptr<TrainingMarks>& marks)
    : marks_(marks) {
  if (!options.enabled) {
    otherwise_ = Nvtx(false, "off");
    return;
  }
  if (!CurrentNvtxState().built) {
    otherwise_ = Nvtx(false, "not_built");
    return;
  }
  NvtxSlot slot = ClaimNvtxSlot();
  if (slot.holder == NvtxSlot::Holder::kOther) {
    otherwise_ = Nvtx(false, "busy");
    holder_ = std::move(slot.path);
    return;
  }
  auto rules = NvtxRuleBook::Create(options.steps, options.phases);
  if (rules) {
    listening_ = NvtxListening::Create(std::make_shared<RangeMarks>(marks_), *std::move(rules));
  }
  const char* const reason = slot.holder == NvtxSlot::Holder::kOurs ? "waiting" : "static_link";
  otherwise_ = Nvtx(false, listening_ ? reason : "other_session");
}

Capability NvtxInput::Now() const {
  return listening_ && CurrentNvtxState().clients > 0 ? Nvtx(true, "ok") : otherwise_;
}

std::optional<Capability> NvtxInput::TakeChange(Log& log) {
  if (marks_->ignored() > 0) {
    log.WarnOnce("nvtx ignored",
                 "NVTX step ranges and token marks are ignored: the step API says the same");
  }
  if (listening_ && CurrentNvtxState().inner_steps > 0) {
    log.WarnOnce(
        "nvtx inner",
        "a step range of NVTX inside of another one is not taken for a step; the outer one "
        "is the step");
  }
  Capability now = Now();
  if (now.reason == said_.reason) return std::nullopt;
  if (now.reason == "busy") {
    log.WarnOnce("nvtx busy",
                 fmt::format("NVTX ranges are not seen: NVTX_INJECTION64_PATH is another tool's "
                             "('{}') and stays as it is; mark the steps with the step API",
                             holder_));
  }
  said_ = now;
  return now;
}

void NvtxInput::Stop() {
  otherwise_ = Now();
  listening_.reset();
}

void NvtxInput::BecomeInert() noexcept {
  if (listening_) listening_->BecomeInert();
}

}  // namespace flopledger
