#include <array>
#include <string>
#include <string_view>

#include "flopledger/causes.h"
#include "ledger/reconcile.h"

// Time becomes FLOPs at the peak rate. The line "matmul below peak" is what is left when every
// other line is taken from the whole, so that the lines sum to it exactly; it turns negative when
// the matmuls ran above the peak that they are measured against.

namespace flopledger {
namespace {

constexpr std::array kOwnCause = {Phase::kData, Phase::kCheckpoint, Phase::kEval};

bool IsOwnCause(std::size_t section) {
  for (Phase phase : kOwnCause) {
    if (static_cast<std::size_t>(phase) == section) return true;
  }
  return false;
}

/// Time in a state outside of the sections that are lines of their own.
DurationNs InTraining(const StepReport& report, DeviceState state) {
  DurationNs sum;
  for (const DeviceTime& device : report.devices) {
    const auto& by_section = device.by_state_and_section[static_cast<std::size_t>(state)];
    for (std::size_t i = 0; i < kPhaseCount; ++i) {
      if (!IsOwnCause(i)) sum += by_section[i];
    }
  }
  return sum;
}

/// The share of `whole` that `part` is of `all`, in whole ns.
DurationNs ShareOf(DurationNs whole, DurationNs part, DurationNs all) {
  if (all.ns() <= 0) return DurationNs();
  return DurationNs(static_cast<std::int64_t>(Int128{whole.ns()} * part.ns() / all.ns()));
}

struct KernelSplit {
  DurationNs unknown;
  DurationNs outside;
};

/// Busy time by what is known of its kernels. Sums of self times may exceed the union (threads), so
/// they only give the proportions.
KernelSplit SplitBusyTime(const StepReport& report, DurationNs busy) {
  std::array<DurationNs, kCoverageKindCount> by_kind{};
  DurationNs all;
  for (const KernelTime& kernel : report.kernels) {
    if (ActivityOf(kernel.op_class) != ActivityClass::kCompute) continue;
    by_kind[static_cast<std::size_t>(kernel.coverage)] += kernel.time;
    all += kernel.time;
  }
  return {.unknown = ShareOf(busy, by_kind[static_cast<std::size_t>(CoverageKind::kUnknown)], all),
          .outside = ShareOf(busy, by_kind[static_cast<std::size_t>(CoverageKind::kOutside)], all)};
}

}  // namespace

std::vector<WaterfallLine> BuildWaterfall(const StepReport& report, const EligiblePeak& peak,
                                          const SectionWork& sections) {
  std::vector<WaterfallLine> lines;
  const PeakRate* rate = peak.Find(peak.dtype);
  if (rate == nullptr || !report.declared || report.peak_flops.count() <= 0) return lines;

  Flops rest = report.peak_flops;
  auto add = [&](std::string_view cause, Flops flops) {
    rest -= flops;
    const LostCause* known = FindLostCause(cause);
    lines.push_back({.cause = std::string(cause),
                     .flops = flops,
                     .physics = known != nullptr && known->physics});
  };
  auto add_time = [&](std::string_view cause, DurationNs time) {
    add(cause, PeakFlops(rate->rate, time));
  };
  for (Phase section : kOwnCause) {
    DurationNs time;
    for (const DeviceTime& device : report.devices) time += device.InSection(section);
    add_time(ToString(section), time);
  }
  add_time("idle_host", InTraining(report, DeviceState::kIdle));
  add_time("exposed_communication", InTraining(report, DeviceState::kExposedCommunication));
  add_time("exposed_copy", InTraining(report, DeviceState::kExposedCopy));

  if (!report.unexplained) {
    // Nothing was observed: between the peak and the useful work nobody looked.
    const Flops useful = report.declared->useful();
    const Flops padding = report.declared->padding;
    add("untracked", rest - useful - padding);
    add("padding", padding);
    add("useful", useful);
    return lines;
  }
  add_time("untracked", InTraining(report, DeviceState::kUntracked));
  const KernelSplit split = SplitBusyTime(report, InTraining(report, DeviceState::kCompute));
  add_time("uncounted_kernels", split.unknown);
  add_time("outside_kernels", split.outside);

  const std::size_t below_peak = lines.size();
  add("matmul_below_peak", Flops());
  add("padding", report.declared->padding);
  // What ran in a section is in the line of that section.
  add("auxiliary", report.executed.auxiliary - sections.auxiliary);
  add("excess", report.executed.excess - sections.excess);
  add("recompute", report.executed.recomputed);
  add("unexplained", *report.unexplained);
  add("useful", report.declared->useful());
  lines[below_peak].flops = rest;
  return lines;
}

}  // namespace flopledger
