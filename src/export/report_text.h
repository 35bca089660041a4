#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "flopledger/step_report.h"
#include "flopledger/units.h"

namespace flopledger {

/// Words for figures, shared by the log line, the summary and the live page. Thread: any.

/// `41.8 %`; two figures more for what would else read `0.0 %`.
std::string PercentText(double ratio);
/// `55.6 %` for a point, `55.6 - 57.0 %` for an interval.
std::string IntervalText(double low_ratio, const std::optional<double>& high_ratio);
/// `7.9k`, `1.25M`; below 1000 as it is.
std::string CountText(double count);
/// `0.512 s`, `4.1 ms`, `2 h 05 min`.
std::string TimeText(DurationNs time);
/// `1.23e+15 FLOP/s`-free short form of a rate: `989.4 TFLOP/s`.
std::string RateText(double flops_per_second);

/// A kernel's name as a person can read it: demangled, without arguments, at most 72 characters. A
/// name that is no C++ symbol stays as it is, cut.
std::string KernelText(const std::string& name);

/// Why a ratio is missing, in a few words: `no peak for the dtype`.
std::string_view ReasonText(RefusalReason reason);
/// What a waterfall cause means, in a short sentence; the id itself, spaced, if it is a new one.
std::string CauseText(std::string_view cause);

}  // namespace flopledger
