#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "collect/trace/file_bytes.h"
#include "collect/trace/trace_formats.h"
#include "collect/trace/xplane_wire.h"

namespace flopledger {

/// An XSpace: GPU work of the lines named `Stream #n` of the planes named `/device:GPU:n`, joined
/// by correlation id to the calls on the host's lines; steps from annotations with a step number,
/// from ranges named like steps, or from the device's own line of steps.
///
/// Times are picoseconds in the file. What is no whole nanosecond is rounded half to even, start
/// and end each, and counted as a warning; no profiler known to us records such times.
///
/// Memory: the file mapped (inflated if it is gzip), and a record for each piece of GPU work: an
/// XSpace is one message, in which the host's calls follow the device's work.
class XPlaneSource final : public TraceSource {
 public:
  XPlaneSource(FileBytes bytes, const TraceOptions& options);

  /// Indexes the file; before the first `Read`.
  Result<bool> Index(const std::string& path, const TraceOptions& options);
  Result<bool> Read(RecordBatch& batch) override;

 private:
  struct Launch {
    std::int64_t correlation = 0;
    std::int64_t start_ns = 0;
    friend auto operator<=>(const Launch&, const Launch&) = default;
  };
  struct Range {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
    std::int64_t number = 0;
    std::string_view name;
    std::int64_t line = 0;
    std::optional<Phase> phase;
  };
  struct Mark {
    MarkerRecord marker;
    bool fence = false;
  };

  void TakeHostPlane(const XPlane& plane, XPlaneCursor& cursor, const TraceOptions& options);
  void TakeHostEvent(const XPlane& plane, const XLine& line, std::string_view message,
                     XPlaneCursor& cursor, const TraceOptions& options);
  void TakeDevicePlane(const XPlane& plane, XPlaneCursor& cursor);
  void TakeStream(const XPlane& plane, const XLine& line, std::uint16_t device,
                  XPlaneCursor& cursor);
  void TakeStepLine(const XPlane& plane, const XLine& line, XPlaneCursor& cursor);
  std::pair<std::int64_t, std::int64_t> TimesOf(const XLine& line, const XEvent& event);
  void MakeMarks();
  void Sort();

  FileBytes bytes_;
  std::vector<Launch> launches_;
  std::vector<Range> numbered_steps_;
  std::vector<Range> named_steps_;
  std::vector<Range> device_steps_;
  std::vector<Range> sections_;
  std::int64_t lines_ = 0;
  std::vector<KernelRecord> records_;
  std::size_t next_record_ = 0;
  std::vector<Mark> marks_;
  std::size_t next_mark_ = 0;
};

/// What the annotations of a kernel say: the framework's path of its op, as JAX writes it
/// (`jit(f)/transpose(jvp(g))/rematted_computation/dot_general`).
Phase PhaseOfJaxPath(std::string_view path);
/// The class by the primitive at the end of the path; unknown for most.
OpClass ClassOfJaxPath(std::string_view path);
/// `grid:32,16,2 block:256,1,1 ... group_mem:16384`, or CUDA's static_shared and dynamic_shared.
KernelSignature SignatureOfDetails(std::string_view name, std::string_view details);

}  // namespace flopledger
