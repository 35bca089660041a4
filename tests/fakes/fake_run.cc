#include "fakes/fake_run.h"

#include <cmath>
#include <string>
#include <utility>

namespace flopledger::fakes {
namespace {

constexpr double kPeak = 214e9;
constexpr std::int64_t kTokens = 8 * 512;
constexpr std::int64_t kForwardFlops = 11'796'480'000;

Flops Count(double flops) { return Flops::FromInteger(static_cast<std::int64_t>(flops)); }

DurationNs Part(std::int64_t ns, double share) {
  return DurationNs(static_cast<std::int64_t>(static_cast<double>(ns) * share));
}

KernelTime Kernel(OpClass op_class, CoverageKind coverage, std::int64_t launches, DurationNs time) {
  KernelTime kernel;
  kernel.op_class = op_class;
  kernel.coverage = coverage;
  kernel.launches = launches;
  kernel.time = time;
  return kernel;
}

CoverageGap Gap(std::string name, GapReason reason, std::int64_t launches, DurationNs time) {
  CoverageGap gap;
  gap.name = std::move(name);
  gap.reason = reason;
  gap.launches = launches;
  gap.time = time;
  return gap;
}

void SetTimes(StepReport* report, DurationNs data, DurationNs idle, DurationNs unknown) {
  DeviceTime device;
  auto& cells = device.by_state_and_section;
  const auto other = static_cast<std::size_t>(Phase::kOther);
  const auto idle_row = static_cast<std::size_t>(DeviceState::kIdle);
  cells[idle_row][static_cast<std::size_t>(Phase::kData)] = data;
  cells[idle_row][other] = idle;
  const DurationNs copy = Part(report->wall.ns(), 0.01);
  cells[static_cast<std::size_t>(DeviceState::kExposedCopy)][other] = copy;
  const DurationNs compute = report->wall - data - idle - copy;
  cells[static_cast<std::size_t>(DeviceState::kCompute)][other] = compute;
  device.kernel_time_sum = compute + copy;
  report->devices.push_back(device);
  const DurationNs norms = Part(compute.ns(), 0.14);
  const DurationNs attention = Part(compute.ns(), 0.11);
  report->kernels = {
      Kernel(OpClass::kMatmul, CoverageKind::kCounted, 312, compute - norms - attention - unknown),
      Kernel(OpClass::kAttention, CoverageKind::kCounted, 36, attention),
      Kernel(OpClass::kNormalization, CoverageKind::kOutside, 98, norms),
      Kernel(OpClass::kUnknown, CoverageKind::kUnknown, 14, unknown)};
  report->gaps = {Gap("acme::fused_rotary", GapReason::kNoRule, 12, Part(unknown.ns(), 0.8)),
                  Gap("aten::_weird_scan", GapReason::kNoShape, 2, Part(unknown.ns(), 0.2))};
  const double all = (compute + Part(0, 0)).seconds();
  report->coverage.time_ratio = 1 - unknown.seconds() / all;
  report->coverage.launch_ratio = 1 - 14.0 / 460.0;
}

void SetWaterfall(StepReport* report, DurationNs data, DurationNs idle, DurationNs unknown) {
  const auto time = [](DurationNs t) { return Count(t.seconds() * kPeak); };
  const auto line = [&](std::string cause, Flops flops, bool physics) {
    report->waterfall.push_back({std::move(cause), flops, physics});
  };
  const DurationNs copy = Part(report->wall.ns(), 0.01);
  line("data", time(data), false);
  line("checkpoint", Flops(), false);
  line("eval", Flops(), false);
  line("idle_host", time(idle), false);
  line("exposed_communication", Flops(), false);
  line("exposed_copy", time(copy), false);
  line("untracked", Flops(), false);
  line("uncounted_kernels", time(unknown), false);
  line("outside_kernels", time(report->kernels[2].time), true);
  line("matmul_below_peak", Flops(), true);
  line("padding", report->declared->padding, false);
  line("auxiliary", report->executed.auxiliary, false);
  line("excess", report->executed.excess, true);
  line("recompute", report->executed.recomputed, false);
  line("unexplained", *report->unexplained, false);
  line("useful", report->declared->useful(), true);
  Flops rest = report->peak_flops;
  for (const WaterfallLine& each : report->waterfall) rest -= each.flops;
  report->waterfall[9].flops = rest;
}

}  // namespace

FakeRun::FakeRun(std::uint64_t seed) : random_(seed) {
  description_.identity.run_id = "gpt-small-" + std::to_string(seed);
  description_.identity.rank_source = "arguments";
  description_.model = "transformer L=6 h=256 heads=8/8 ffn=1024 V=4096";
  description_.convention = IdentifyConvention({});
  PeakRate peak;
  peak.device_model = "8-core x86-64 (AVX2)";
  peak.rate = FlopsPerSecond(kPeak);
  peak.source = "best of 5 matmuls, 1024 x 1024 x 1024";
  peak.evidence = PeakEvidence::kMeasured;
  peak.spread_low_ratio = 0.93;
  peak.spread_high_ratio = 1.0;
  description_.peaks.push_back(peak);
  description_.version = "0.1.0";
}

SessionState FakeRun::state() const {
  SessionState state;
  state.collector = SessionState::Collector::kCounting;
  state.capabilities = {{"step_api", true, "ok"},
                        {"host_ops", true, "ok"},
                        {"http", true, "ok"},
                        {"cupti", false, "no_gpu"}};
  return state;
}

double FakeRun::Noise(double spread) {
  return 1 + std::normal_distribution<double>(0, spread)(random_);
}

StepReport FakeRun::NextStep() {
  StepReport report;
  report.step = step_++;
  report.result = report.step == 0 ? StepResult::kWarmup : StepResult::kComplete;
  report.closed_by = "next_boundary";
  const bool stalls = report.step % 37 == 20;
  report.wall = DurationNs(static_cast<std::int64_t>(
      (stalls ? 0.9 : 0.58 + 0.05 * std::sin(static_cast<double>(report.step) / 30)) * 1e9 *
      std::abs(Noise(0.015))));
  if (report.step == 0) report.wall = DurationNs(1'900'000'000);
  report.excluded_before = DurationNs(report.step == 0 ? 2'400'000'000 : 0);
  report.start_ns = now_ns_;
  now_ns_ += report.wall.ns();
  report.end_ns = now_ns_;
  report.end_unix_seconds = 1.78e9 + static_cast<double>(now_ns_) * 1e-9;
  report.tokens = {.useful = kTokens - 210, .padded = kTokens, .even_split = false};

  DeclaredFlops declared;
  declared.useful_forward = Flops::FromInteger(kForwardFlops);
  declared.useful_backward = Flops::FromInteger(2 * kForwardFlops);
  declared.padding = Count(0.041 * kForwardFlops);
  report.declared = declared;
  report.executed.recomputed = Count(0.92 * kForwardFlops);
  report.executed.excess = Count(0.06 * kForwardFlops);
  report.executed.excess_parts = {{"attention_score_recompute", report.executed.excess}};
  report.unexplained = Flops();
  report.executed.total =
      declared.useful() + declared.padding + report.executed.recomputed + report.executed.excess;
  report.executed_equivalent = report.executed.total;
  ExecutedPart part;
  part.flops = report.executed.total;
  report.executed.parts = {part};
  report.peak_flops = Count(report.wall.seconds() * kPeak);
  report.convention = description_.convention;

  const DurationNs data = Part(report.wall.ns(), stalls ? 0.35 : 0.02);
  const DurationNs idle = Part(report.wall.ns(), 0.06);
  const DurationNs unknown = Part(report.wall.ns(), 0.021 + (report.step > 120 ? 0.05 : 0));
  SetTimes(&report, data, idle, unknown);
  SetWaterfall(&report, data, idle, unknown);
  const double peak = report.peak_flops.ToDouble();
  report.utilization.mfu_ratio = declared.useful().ToDouble() / peak;
  report.utilization.hfu_low_ratio = report.executed_equivalent.ToDouble() / peak;
  report.utilization.hfu_high_ratio =
      *report.utilization.hfu_low_ratio + unknown.seconds() / report.wall.seconds();
  if (*report.coverage.time_ratio < 0.95) {
    report.findings = {
        {"coverage_gap", *report.coverage.time_ratio, "no count for acme::fused_rotary"}};
  }
  report.values = {{"loss", 1.9 + 7.4 * std::exp(-static_cast<double>(report.step) / 60) *
                                      std::abs(Noise(0.02))},
                   {"learning_rate", 3e-4}};
  report.overhead = DurationNs(410'000);
  return report;
}

}  // namespace flopledger::fakes
