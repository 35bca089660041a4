#include "collect/trace/trace_source.h"

namespace flopledger {

TraceSource::TraceSource(const TraceOptions& options)
    : kernels_(options.table_capacity, options.classify_kernel),
      signatures_(options.table_capacity, options.classify_op) {}

void TraceSource::Drain(RecordBatch& batch) {
  if (stopped_ || failure_) return;
  if (Result<bool> more = Read(batch); !more.has_value()) failure_ = more.error();
}

void TraceSource::Warn(std::string_view kind, std::string_view text, std::int64_t count) {
  for (TraceWarning& warning : description_.warnings) {
    if (warning.kind != kind) continue;
    warning.count += count;
    return;
  }
  description_.warnings.push_back(
      {.kind = std::string(kind), .count = count, .text = std::string(text)});
}

void TraceSource::Gap(std::string_view kind, std::string_view text, std::int64_t count,
                      DurationNs time) {
  for (TraceGap& gap : description_.gaps) {
    if (gap.kind != kind) continue;
    gap.count += count;
    gap.time += time;
    return;
  }
  description_.gaps.push_back(
      {.kind = std::string(kind), .count = count, .time = time, .text = std::string(text)});
}

}  // namespace flopledger
