#include "collect/trace/xplane_source.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <protozero/exception.hpp>
#include <utility>

#include "collect/trace/range_names.h"

namespace flopledger {
namespace {

constexpr std::string_view kDevicePrefix = "/device:GPU:";
constexpr std::string_view kHostPrefix = "/host:";
constexpr std::string_view kStreamPrefix = "Stream #";
constexpr std::int64_t kPsPerNs = 1000;
constexpr std::size_t kRecordsPerBatch = 4096;

std::optional<std::uint32_t> NumberAfter(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  std::uint32_t number = 0;
  const char* const begin = text.data() + prefix.size();
  const auto [last, error] = std::from_chars(begin, text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  return number;
}

std::int64_t Clamped(Int128 value) {
  constexpr Int128 kMost = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::clamp(value, -kMost, kMost));
}

// Half to even, as everywhere else a time is rounded.
std::int64_t Nanoseconds(Int128 ps) {
  Int128 whole = ps / kPsPerNs;
  Int128 rest = ps % kPsPerNs;
  if (rest < 0) {
    rest += kPsPerNs;
    --whole;
  }
  const bool odd = whole % 2 != 0;
  if (rest * 2 > kPsPerNs || (rest * 2 == kPsPerNs && odd)) ++whole;
  return Clamped(whole);
}

std::int64_t KeyOf(const KernelRecord& record) {
  return record.launch_known ? record.launch_order : record.start_ns;
}

}  // namespace

XPlaneSource::XPlaneSource(FileBytes bytes, const TraceOptions& options)
    : TraceSource(options), bytes_(std::move(bytes)) {
  description_.format = "xplane";
  description_.file_bytes = bytes_.file_bytes();
  description_.text_bytes = bytes_.view().size();
}

std::pair<std::int64_t, std::int64_t> XPlaneSource::TimesOf(const XLine& line,
                                                            const XEvent& event) {
  const Int128 start_ps = Int128{line.timestamp_ns} * kPsPerNs + event.offset_ps;
  if (start_ps % kPsPerNs != 0 || event.duration_ps % kPsPerNs != 0) {
    Warn("sub_nanosecond", "times that are no whole nanoseconds: start and end are rounded");
  }
  return {Nanoseconds(start_ps), Nanoseconds(start_ps + event.duration_ps)};
}

void XPlaneSource::TakeHostEvent(const XPlane& plane, const XLine& line, std::string_view message,
                                 XPlaneCursor& cursor, const TraceOptions& options) {
  const XEvent event = DecodeEvent(message, cursor);
  ++description_.events;
  if (!event.timed) return;
  std::optional<std::int64_t> correlation;
  std::optional<std::int64_t> step;
  ForEachStat(message, cursor, [&](const XStat& stat) {
    const std::string_view name = plane.StatName(stat.name_id);
    if (name == "correlation_id") correlation = stat.integer;
    if (name == "step_num") step = stat.integer;
  });
  const std::string_view name = plane.EventName(event.metadata_id);
  const bool named = IsStepName(name, options.step_names);
  const std::optional<Phase> phase = PhaseOfRange(name);
  if (!correlation && !step && !named && !phase) return;
  const auto [start_ns, end_ns] = TimesOf(line, event);
  if (correlation) launches_.push_back({.correlation = *correlation, .start_ns = start_ns});
  if (end_ns < start_ns) return;
  const Range range{.start_ns = start_ns,
                    .end_ns = end_ns,
                    .number = step.value_or(NumberInName(name).value_or(0)),
                    .name = name,
                    .line = lines_,
                    .phase = phase};
  if (step) {
    numbered_steps_.push_back(range);
  } else if (named) {
    named_steps_.push_back(range);
  } else if (phase && !correlation) {
    sections_.push_back(range);
  }
}

void XPlaneSource::TakeHostPlane(const XPlane& plane, XPlaneCursor& cursor,
                                 const TraceOptions& options) {
  for (const XLine& line : plane.lines) {
    ++lines_;
    ForEachEvent(line, cursor, [&](std::string_view message) {
      TakeHostEvent(plane, line, message, cursor, options);
    });
  }
}

void XPlaneSource::TakeStream(const XPlane& plane, const XLine& line, std::uint16_t device,
                              XPlaneCursor& cursor) {
  const std::uint32_t stream = NumberAfter(line.name, kStreamPrefix).value_or(0);
  ForEachEvent(line, cursor, [&](std::string_view message) {
    const XEvent event = DecodeEvent(message, cursor);
    ++description_.events;
    if (!event.timed) {
      Warn("untimed_event", "events that stand for several occurrences, without times: left out");
      return;
    }
    std::optional<std::int64_t> correlation;
    std::string_view details;
    std::string_view path;
    const std::string_view name = plane.EventName(event.metadata_id);
    KernelRecord record;
    if (name.starts_with("Memcpy")) record.kind = KernelRecord::Kind::kMemcpy;
    if (name.starts_with("Memset")) record.kind = KernelRecord::Kind::kMemset;
    ForEachStat(message, cursor, [&](const XStat& stat) {
      const std::string_view key = plane.StatName(stat.name_id);
      if (key == "correlation_id") correlation = stat.integer;
      if (key == "kernel_details") details = plane.TextOf(stat);
      // Which of the two holds the path depends on the profiler's version.
      if ((key == "tf_op" || key == "name") && plane.TextOf(stat).find('/') != path.npos) {
        path = plane.TextOf(stat);
      }
      if (key == "memcpy_details") record.kind = KernelRecord::Kind::kMemcpy;
      if (key == "memset_details") record.kind = KernelRecord::Kind::kMemset;
    });
    std::tie(record.start_ns, record.end_ns) = TimesOf(line, event);
    if (record.end_ns < record.start_ns) {
      Warn("negative_duration", "work that ends before it begins: it is kept without a duration");
      record.end_ns = record.start_ns;
    }
    record.device = device;
    record.stream = stream;
    record.kernel = kernels_.Intern(SignatureOfDetails(name, details));
    record.phase = PhaseOfJaxPath(path);
    if (record.kind != KernelRecord::Kind::kKernel) {
      record.op_class = OpClass::kCopy;
    } else {
      record.op_class = kernels_.ClassOf(record.kernel);
      if (record.op_class == OpClass::kUnknown) record.op_class = ClassOfJaxPath(path);
    }
    const auto launch =
        correlation ? std::lower_bound(launches_.begin(), launches_.end(),
                                       Launch{.correlation = *correlation,
                                              .start_ns = std::numeric_limits<std::int64_t>::min()})
                    : launches_.end();
    if (launch != launches_.end() && launch->correlation == *correlation) {
      record.launch_known = true;
      record.launch_order = launch->start_ns;
    } else {
      Gap("unlaunched", "work whose launch was not recorded", 1,
          DurationNs(record.end_ns - record.start_ns));
    }
    records_.push_back(record);
  });
}

void XPlaneSource::TakeStepLine(const XPlane& plane, const XLine& line, XPlaneCursor& cursor) {
  ForEachEvent(line, cursor, [&](std::string_view message) {
    const XEvent event = DecodeEvent(message, cursor);
    if (!event.timed) return;
    const auto [start_ns, end_ns] = TimesOf(line, event);
    const std::string_view name = plane.EventName(event.metadata_id);
    device_steps_.push_back({.start_ns = start_ns,
                             .end_ns = std::max(start_ns, end_ns),
                             .number = NumberInName(name).value_or(0),
                             .name = name});
  });
}

void XPlaneSource::TakeDevicePlane(const XPlane& plane, XPlaneCursor& cursor) {
  const std::optional<std::uint32_t> number = NumberAfter(plane.name, kDevicePrefix);
  if (!number || *number > std::numeric_limits<std::uint16_t>::max()) return;
  DeviceDescription device{.device = static_cast<std::uint16_t>(*number)};
  for (const XStat& stat : plane.stats) {
    const std::string_view name = plane.StatName(stat.name_id);
    const std::int64_t value = stat.integer.value_or(0);
    if (name == "device_type_string" || name == "device_name") device.name = plane.TextOf(stat);
    if (name == "core_count") device.multiprocessors = static_cast<int>(value);
    if (name == "compute_cap_major") device.compute_capability_major = static_cast<int>(value);
    if (name == "compute_cap_minor") device.compute_capability_minor = static_cast<int>(value);
    if (name == "memory_size") device.memory_bytes = value;
  }
  const std::size_t before = records_.size();
  for (const XLine& line : plane.lines) {
    if (line.name.starts_with(kStreamPrefix)) TakeStream(plane, line, device.device, cursor);
    if (line.name == "Steps" && device_steps_.empty()) TakeStepLine(plane, line, cursor);
  }
  if (records_.size() > before) description_.devices.push_back(std::move(device));
}

void XPlaneSource::MakeMarks() {
  std::vector<Range>& steps = !numbered_steps_.empty() ? numbered_steps_
                              : !named_steps_.empty()  ? named_steps_
                                                       : device_steps_;
  std::stable_sort(steps.begin(), steps.end(), [](const Range& a, const Range& b) {
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.end_ns > b.end_ns;
  });
  std::optional<std::int64_t> end_ns;
  for (const Range& step : steps) {
    if (step.line != steps.front().line) {
      Warn("steps_of_other_threads", "ranges named like steps on a second thread");
      continue;
    }
    if (end_ns && step.start_ns < *end_ns) continue;  // a step in a step is a part of it
    end_ns = step.end_ns;
    description_.steps.push_back({.name = std::string(step.name.substr(0, 256)),
                                  .number = step.number,
                                  .start_ns = step.start_ns,
                                  .end_ns = step.end_ns});
    marks_.push_back({.marker = {.time_ns = step.start_ns,
                                 .step = step.number,
                                 .kind = MarkerRecord::Kind::kStepBegin},
                      .fence = true});
    marks_.push_back({.marker = {.time_ns = step.end_ns,
                                 .step = step.number,
                                 .kind = MarkerRecord::Kind::kStepEnd},
                      .fence = true});
  }
  for (const Range& section : sections_) {
    if (steps.empty() || section.line != steps.front().line) continue;
    marks_.push_back({.marker = {.time_ns = section.start_ns,
                                 .kind = MarkerRecord::Kind::kSectionBegin,
                                 .phase = *section.phase}});
    marks_.push_back({.marker = {.time_ns = section.end_ns,
                                 .kind = MarkerRecord::Kind::kSectionEnd,
                                 .phase = *section.phase}});
  }
  std::stable_sort(marks_.begin(), marks_.end(), [](const Mark& a, const Mark& b) {
    return a.marker.time_ns < b.marker.time_ns;
  });
}

void XPlaneSource::Sort() {
  std::sort(records_.begin(), records_.end(), [](const KernelRecord& a, const KernelRecord& b) {
    return std::tuple(KeyOf(a), a.start_ns, a.end_ns, a.device, a.stream, a.kernel) <
           std::tuple(KeyOf(b), b.start_ns, b.end_ns, b.device, b.stream, b.kernel);
  });
  std::sort(description_.devices.begin(), description_.devices.end(),
            [](const auto& a, const auto& b) { return a.device < b.device; });
}

Result<bool> XPlaneSource::Index(const std::string& path, const TraceOptions& options) {
  XPlaneCursor cursor;
  // The host's calls first: the device's work is looked up in them.
  for (const bool host : {true, false}) {
    try {
      ForEachPlane(bytes_.view(), cursor, [&](const XPlane& plane) {
        if (host && plane.name.starts_with(kHostPrefix)) TakeHostPlane(plane, cursor, options);
        if (!host && plane.name.starts_with(kDevicePrefix)) TakeDevicePlane(plane, cursor);
      });
    } catch (const protozero::exception& error) {
      const auto byte = static_cast<std::uint64_t>(cursor.at - bytes_.view().data());
      const std::string where =
          (bytes_.view().size() == bytes_.file_bytes() ? "byte " : "inflated byte ") +
          std::to_string(byte);
      if (!options.lenient) {
        return Fail(StatusCode::kDataLoss, path + ": " + where +
                                               ": a message is broken or cut: " + error.what() +
                                               "; --lenient takes what comes before");
      }
      description_.cut = true;
      if (host) Warn("cut", where + ": broken or cut; what follows is lost");
    }
    if (host) std::sort(launches_.begin(), launches_.end());
  }
  launches_ = {};
  Sort();
  MakeMarks();
  if (records_.empty()) {
    Warn("no_gpu_events", "no work on a line `Stream #n` of a plane `/device:GPU:n`");
  }
  return true;
}

Result<bool> XPlaneSource::Read(RecordBatch& batch) {
  const std::size_t full = batch.kernels.size() + kRecordsPerBatch;
  bool any = false;
  while (batch.kernels.size() < full) {
    const bool have_record = next_record_ < records_.size();
    if (next_mark_ < marks_.size() &&
        (!have_record || marks_[next_mark_].marker.time_ns <= KeyOf(records_[next_record_]))) {
      const Mark& mark = marks_[next_mark_++];
      batch.markers.push_back(mark.marker);
      if (mark.fence) {
        batch.fences.push_back(
            {.boundary_ns = mark.marker.time_ns, .launch_order = mark.marker.time_ns});
      }
    } else if (have_record) {
      batch.kernels.push_back(records_[next_record_++]);
    } else {
      break;
    }
    any = true;
  }
  return any;
}

bool IsXPlane(std::string_view head, bool) {
  // The first plane: field 1, its length, perhaps its number, then its name.
  if (!head.starts_with('\x0a')) return false;
  const std::size_t name = head.substr(0, 64).find('\x12');
  if (name == std::string_view::npos || name + 2 >= head.size()) return false;
  const std::string_view text = head.substr(name + 2);
  return text.starts_with("/host:") || text.starts_with("/device:") ||
         text.starts_with("Task Environment");
}

Result<TraceSources> OpenXPlane(const std::string& path, const TraceOptions& options) {
  Result<FileBytes> bytes = FileBytes::Open(path, options.max_inflated_bytes);
  if (!bytes.has_value()) return tl::unexpected(bytes.error());
  if (options.progress) options.progress(0, bytes->file_bytes());
  auto source = std::make_unique<XPlaneSource>(*std::move(bytes), options);
  if (Result<bool> indexed = source->Index(path, options); !indexed.has_value()) {
    return tl::unexpected(indexed.error());
  }
  TraceSources sources;
  sources.push_back(std::move(source));
  return sources;
}

}  // namespace flopledger
