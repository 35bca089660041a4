#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "collect/trace/trace_formats.h"
#include "flops/kernel_classes.h"

namespace flopledger {

/// Figures of one device, worked out from the records by the plainest means: sort and sweep. The
/// rules are those of the traces' README, not of the product.
struct DeviceFigures {
  std::int64_t kernels = 0;
  std::int64_t memcpys = 0;
  std::int64_t memsets = 0;
  std::int64_t kernel_sum_ns = 0;
  std::int64_t memcpy_sum_ns = 0;
  std::int64_t kernel_span_ns = 0;
  std::int64_t busy_kernels_ns = 0;
  std::int64_t busy_all_ns = 0;
  std::int64_t communication_kernels = 0;
  std::int64_t communication_union_ns = 0;
  std::int64_t exposed_communication_ns = 0;
};

using Intervals = std::vector<std::pair<std::int64_t, std::int64_t>>;

inline std::int64_t Measure(Intervals intervals) {
  std::sort(intervals.begin(), intervals.end());
  std::int64_t total = 0;
  std::int64_t reached = 0;
  bool first = true;
  for (const auto& [start, end] : intervals) {
    if (end <= start) continue;
    const std::int64_t from = first ? start : std::max(start, reached);
    if (end > from) total += end - from;
    reached = first ? end : std::max(reached, end);
    first = false;
  }
  return total;
}

inline std::map<int, DeviceFigures> FiguresOf(const std::vector<KernelRecord>& kernels) {
  std::map<int, DeviceFigures> figures;
  std::map<int, std::array<Intervals, 4>> sets;  // kernels, all, communication, others
  std::map<int, std::pair<std::int64_t, std::int64_t>> spans;
  for (const KernelRecord& kernel : kernels) {
    DeviceFigures& device = figures[kernel.device];
    auto& set = sets[kernel.device];
    const std::pair interval(kernel.start_ns, kernel.end_ns);
    const std::int64_t duration = kernel.end_ns - kernel.start_ns;
    set[1].push_back(interval);
    if (kernel.kind == KernelRecord::Kind::kMemcpy) {
      ++device.memcpys;
      device.memcpy_sum_ns += duration;
      continue;
    }
    if (kernel.kind == KernelRecord::Kind::kMemset) {
      ++device.memsets;
      continue;
    }
    const bool first = device.kernels++ == 0;
    device.kernel_sum_ns += duration;
    set[0].push_back(interval);
    const bool communicates = kernel.op_class == OpClass::kCommunication;
    device.communication_kernels += communicates ? 1 : 0;
    set[communicates ? 2 : 3].push_back(interval);
    auto& span = spans[kernel.device];
    span.first = first ? kernel.start_ns : std::min(span.first, kernel.start_ns);
    span.second = first ? kernel.end_ns : std::max(span.second, kernel.end_ns);
  }
  for (auto& [number, device] : figures) {
    const auto& set = sets[number];
    device.kernel_span_ns = spans[number].second - spans[number].first;
    device.busy_kernels_ns = Measure(set[0]);
    device.busy_all_ns = Measure(set[1]);
    device.communication_union_ns = Measure(set[2]);
    device.exposed_communication_ns = device.busy_kernels_ns - Measure(set[3]);
  }
  return figures;
}

inline TraceOptions ClassifyingOptions() {
  TraceOptions options;
  options.classify_kernel = ClassifyKernel;
  return options;
}

/// Everything that a source gives. A failure fails the test.
inline RecordBatch ReadAll(TraceSource& source) {
  RecordBatch all;
  for (;;) {
    const Result<bool> more = source.Read(all);
    if (!more.has_value()) {
      ADD_FAILURE() << more.error().message();
      return all;
    }
    if (!*more) return all;
  }
}

/// A recorded trace beside the repository, or an empty path.
inline std::string SharedTrace(const std::string& name) {
  const std::filesystem::path path =
      std::filesystem::path(FLOPLEDGER_SOURCE_FOLDER).parent_path() / "shared" / "traces" / name;
  return std::filesystem::exists(path) ? path.string() : std::string();
}

}  // namespace flopledger
