#pragma once

#include <string>

#include "collect/trace/capture_source.h"
#include "flopledger/convention.h"
#include "ledger/reconcile.h"
#include "session/replay.h"
#include "timeline/step_builder.h"

namespace flopledger {

/// What the stages are built with for one trace. A capture brings the settings of its session, so
/// that its reports are those of the live run; what the caller gives goes before them.
///
/// Thread: pure. Fails: never; a switch of a convention that is not known is a warning.
struct ReplaySettings {
  StepBuilder::Options builder;
  FlopConvention convention;
  std::optional<EligiblePeak> peak;  ///< absent: by what the trace says of its device
  int warmup_steps = 0;
  std::string warning;  ///< of the capture's settings; empty: none

  /// `capture` is null for traces of others.
  static ReplaySettings For(const ReplayOptions& options, const CaptureSource* capture);
};

}  // namespace flopledger
