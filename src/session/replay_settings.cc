#include "session/replay_settings.h"

namespace flopledger {

ReplaySettings ReplaySettings::For(const ReplayOptions& options, const CaptureSource* capture) {
  ReplaySettings settings;
  settings.convention = options.convention;
  if (capture == nullptr) return settings;
  const CaptureRun& run = capture->run();
  settings.builder.observed = run.host_ops;
  settings.builder.session_start_ns = run.session_start_ns;
  settings.warmup_steps = run.warmup_steps;
  if (options.peaks.empty()) {
    settings.peak = EligiblePeak{.rates = run.description.peaks,
                                 .dtype = run.description.peak_dtype,
                                 .device_count = run.device_count};
  } else {
    settings.peak = EligiblePeak{
        .rates = options.peaks, .dtype = options.dtype, .device_count = run.device_count};
  }
  if (options.convention == FlopConvention{}) {
    for (const ConventionSwitch& each : run.convention) {
      const Result<FlopConvention> with = WithSwitch(settings.convention, each.name, each.value);
      if (with.has_value()) {
        settings.convention = *with;
      } else {
        settings.warning = "the capture's convention: " + with.error().message();
      }
    }
  }
  if (!options.model && !run.description.model.empty()) {
    settings.warning = "the run declared " + run.description.model +
                       "; a capture holds no formula, so give the model again to get MFU";
  }
  return settings;
}

}  // namespace flopledger
