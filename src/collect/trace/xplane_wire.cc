#include "collect/trace/xplane_wire.h"

#include <protozero/pbf_reader.hpp>

namespace flopledger {
namespace {

using protozero::pbf_reader;
using Wire = protozero::pbf_wire_type;

constexpr std::uint32_t Field(std::uint32_t number, Wire type) {
  return protozero::tag_and_type(number, type);
}

std::string_view ViewOf(pbf_reader& message) {
  const protozero::data_view view = message.get_view();
  return {view.data(), view.size()};
}

pbf_reader Begin(std::string_view bytes, XPlaneCursor& cursor) {
  cursor.at = bytes.data();
  return pbf_reader(bytes.data(), bytes.size());
}

XStat DecodeStat(std::string_view bytes, XPlaneCursor& cursor) {
  XStat stat;
  pbf_reader message = Begin(bytes, cursor);
  while (message.next()) {
    switch (message.tag_and_type()) {
      case Field(1, Wire::varint):
        stat.name_id = message.get_int64();
        break;
      case Field(2, Wire::fixed64):
        stat.real = message.get_double();
        break;
      case Field(3, Wire::varint):
        stat.integer = static_cast<std::int64_t>(message.get_uint64());
        break;
      case Field(4, Wire::varint):
        stat.integer = message.get_int64();
        break;
      case Field(5, Wire::length_delimited):
      case Field(6, Wire::length_delimited):
        stat.text = ViewOf(message);
        break;
      case Field(7, Wire::varint):
        stat.text_by_id = static_cast<std::int64_t>(message.get_uint64());
        break;
      default:
        message.skip();
    }
  }
  return stat;
}

// An entry of a map: key 1, value 2, a message with the name in its field 2.
void DecodeName(std::string_view bytes, XPlaneCursor& cursor,
                std::unordered_map<std::int64_t, std::string_view>& names) {
  std::int64_t id = 0;
  std::string_view name;
  pbf_reader entry = Begin(bytes, cursor);
  while (entry.next()) {
    if (entry.tag_and_type() == Field(1, Wire::varint)) {
      id = entry.get_int64();
    } else if (entry.tag_and_type() == Field(2, Wire::length_delimited)) {
      pbf_reader value = Begin(ViewOf(entry), cursor);
      while (value.next()) {
        if (value.tag_and_type() == Field(2, Wire::length_delimited)) {
          name = ViewOf(value);
        } else {
          value.skip();
        }
      }
    } else {
      entry.skip();
    }
  }
  names[id] = name;
}

XLine DecodeLine(std::string_view bytes, XPlaneCursor& cursor) {
  XLine line;
  line.message = bytes;
  pbf_reader message = Begin(bytes, cursor);
  while (message.next()) {
    switch (message.tag_and_type()) {
      case Field(2, Wire::length_delimited):
        line.name = ViewOf(message);
        break;
      case Field(3, Wire::varint):
        line.timestamp_ns = message.get_int64();
        break;
      default:
        message.skip();
    }
  }
  return line;
}

XPlane DecodePlane(std::string_view bytes, XPlaneCursor& cursor) {
  XPlane plane;
  pbf_reader message = Begin(bytes, cursor);
  while (message.next()) {
    switch (message.tag_and_type()) {
      case Field(2, Wire::length_delimited):
        plane.name = ViewOf(message);
        break;
      case Field(3, Wire::length_delimited):
        plane.lines.push_back(DecodeLine(ViewOf(message), cursor));
        break;
      case Field(4, Wire::length_delimited):
        DecodeName(ViewOf(message), cursor, plane.event_names);
        break;
      case Field(5, Wire::length_delimited):
        DecodeName(ViewOf(message), cursor, plane.stat_names);
        break;
      case Field(6, Wire::length_delimited):
        plane.stats.push_back(DecodeStat(ViewOf(message), cursor));
        break;
      default:
        message.skip();
    }
  }
  return plane;
}

std::string_view Find(const std::unordered_map<std::int64_t, std::string_view>& names,
                      std::int64_t id) {
  const auto found = names.find(id);
  return found == names.end() ? std::string_view() : found->second;
}

}  // namespace

std::string_view XPlane::EventName(std::int64_t id) const { return Find(event_names, id); }

std::string_view XPlane::StatName(std::int64_t id) const { return Find(stat_names, id); }

std::string_view XPlane::TextOf(const XStat& stat) const {
  return stat.text_by_id ? StatName(*stat.text_by_id) : stat.text;
}

void ForEachPlane(std::string_view space, XPlaneCursor& cursor,
                  const std::function<void(const XPlane&)>& take) {
  pbf_reader message = Begin(space, cursor);
  while (message.next()) {
    if (message.tag_and_type() == Field(1, Wire::length_delimited)) {
      take(DecodePlane(ViewOf(message), cursor));
      cursor.at = message.data().data();
    } else {
      message.skip();
    }
  }
}

void ForEachEvent(const XLine& line, XPlaneCursor& cursor,
                  const std::function<void(std::string_view event)>& take) {
  pbf_reader message = Begin(line.message, cursor);
  while (message.next()) {
    if (message.tag_and_type() == Field(4, Wire::length_delimited)) {
      take(ViewOf(message));
    } else {
      message.skip();
    }
  }
}

XEvent DecodeEvent(std::string_view bytes, XPlaneCursor& cursor) {
  XEvent event;
  pbf_reader message = Begin(bytes, cursor);
  while (message.next()) {
    switch (message.tag_and_type()) {
      case Field(1, Wire::varint):
        event.metadata_id = message.get_int64();
        break;
      case Field(2, Wire::varint):
        event.offset_ps = message.get_int64();
        break;
      case Field(3, Wire::varint):
        event.duration_ps = message.get_int64();
        break;
      case Field(5, Wire::varint):
        event.timed = false;
        message.skip();
        break;
      default:
        message.skip();
    }
  }
  return event;
}

void ForEachStat(std::string_view event, XPlaneCursor& cursor,
                 const std::function<void(const XStat&)>& take) {
  pbf_reader message = Begin(event, cursor);
  while (message.next()) {
    if (message.tag_and_type() == Field(4, Wire::length_delimited)) {
      take(DecodeStat(ViewOf(message), cursor));
    } else {
      message.skip();
    }
  }
}

}  // namespace flopledger
