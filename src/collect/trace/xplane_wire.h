#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace flopledger {

/// Messages of an XSpace (`xplane.proto` of the profilers of JAX and TensorFlow) as views into the
/// file. Unknown fields are passed over. A broken message is a `protozero::exception`, which the
/// source turns into a status with `XPlaneCursor::at`, the last message that was begun.

/// One statistic of an event or of a plane: its name by number, its value in the one field that it
/// has.
struct XStat {
  std::int64_t name_id = 0;
  std::optional<std::int64_t> integer;  ///< signed, or unsigned as the same bits
  std::optional<double> real;
  std::string_view text;                   ///< string or bytes
  std::optional<std::int64_t> text_by_id;  ///< the value is the name of this statistic
};

struct XEvent {
  std::int64_t metadata_id = 0;
  std::int64_t offset_ps = 0;
  std::int64_t duration_ps = 0;
  bool timed = true;  ///< false: an aggregate of occurrences
};

struct XLine {
  std::string_view name;
  std::int64_t timestamp_ns = 0;
  std::string_view message;  ///< for `ForEachEvent`
};

struct XPlane {
  std::string_view name;
  std::vector<XLine> lines;
  std::unordered_map<std::int64_t, std::string_view> event_names;
  std::unordered_map<std::int64_t, std::string_view> stat_names;
  std::vector<XStat> stats;

  std::string_view EventName(std::int64_t id) const;
  std::string_view StatName(std::int64_t id) const;
  std::string_view TextOf(const XStat& stat) const;
};

/// Where decoding has come to.
struct XPlaneCursor {
  const char* at = nullptr;
};

void ForEachPlane(std::string_view space, XPlaneCursor& cursor,
                  const std::function<void(const XPlane&)>& take);
void ForEachEvent(const XLine& line, XPlaneCursor& cursor,
                  const std::function<void(std::string_view event)>& take);
XEvent DecodeEvent(std::string_view event, XPlaneCursor& cursor);
void ForEachStat(std::string_view event, XPlaneCursor& cursor,
                 const std::function<void(const XStat&)>& take);

}  // namespace flopledger
