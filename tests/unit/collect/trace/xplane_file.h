#pragma once

#include <unistd.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <protozero/pbf_writer.hpp>
#include <string>
#include <utility>
#include <vector>

namespace flopledger {

/// A small XSpace of our own, message by message.
struct OwnStat {
  std::string name;
  std::int64_t integer = 0;
  std::string text = {};      ///< if not empty: the value
  bool by_reference = false;  ///< the text as the name of a statistic
};

struct OwnEvent {
  std::string name;
  std::int64_t offset_ps = 0;
  std::int64_t duration_ps = 0;
  std::vector<OwnStat> stats = {};
  std::int64_t occurrences = 0;  ///< instead of an offset
};

struct OwnLine {
  std::string name;
  std::int64_t timestamp_ns = 0;
  std::vector<OwnEvent> events;
};

struct OwnPlane {
  std::string name;
  std::vector<OwnLine> lines;
  std::vector<OwnStat> stats = {};
};

class OwnPlaneWriter {
 public:
  explicit OwnPlaneWriter(const OwnPlane& plane) : plane_(plane) {}

  std::string Bytes() {
    std::string lines;
    for (const OwnLine& line : plane_.lines) Line(line, lines);
    std::string stats;
    for (const OwnStat& stat : plane_.stats) Stat(6, stat, stats);
    std::string bytes;
    protozero::pbf_writer out(bytes);
    out.add_int64(1, 1);
    out.add_string(2, plane_.name);
    bytes += lines;
    Names(4, events_, bytes);
    Names(5, stats_, bytes);
    return bytes + stats;
  }

 private:
  static std::int64_t IdOf(std::map<std::string, std::int64_t>& names, const std::string& name) {
    return names.emplace(name, static_cast<std::int64_t>(names.size()) + 1).first->second;
  }
  void Stat(std::uint32_t field, const OwnStat& stat, std::string& to) {
    std::string bytes;
    protozero::pbf_writer out(bytes);
    out.add_int64(1, IdOf(stats_, stat.name));
    if (stat.by_reference) {
      out.add_uint64(7, static_cast<std::uint64_t>(IdOf(stats_, stat.text)));
    } else if (!stat.text.empty()) {
      out.add_string(5, stat.text);
    } else {
      out.add_int64(4, stat.integer);
    }
    protozero::pbf_writer(to).add_message(field, bytes);
  }
  void Line(const OwnLine& line, std::string& to) {
    std::string bytes;
    protozero::pbf_writer out(bytes);
    out.add_string(2, line.name);
    out.add_int64(3, line.timestamp_ns);
    for (const OwnEvent& event : line.events) {
      std::string message;
      protozero::pbf_writer inner(message);
      inner.add_int64(1, IdOf(events_, event.name));
      if (event.occurrences > 0) {
        inner.add_int64(5, event.occurrences);
      } else {
        inner.add_int64(2, event.offset_ps);
      }
      inner.add_int64(3, event.duration_ps);
      for (const OwnStat& stat : event.stats) Stat(4, stat, message);
      out.add_message(4, message);
    }
    protozero::pbf_writer(to).add_message(3, bytes);
  }
  static void Names(std::uint32_t field, const std::map<std::string, std::int64_t>& names,
                    std::string& to) {
    for (const auto& [name, id] : names) {
      std::string value;
      protozero::pbf_writer(value).add_string(2, name);
      std::string entry;
      protozero::pbf_writer out(entry);
      out.add_int64(1, id);
      out.add_message(2, value);
      protozero::pbf_writer(to).add_message(field, entry);
    }
  }

  const OwnPlane& plane_;
  std::map<std::string, std::int64_t> events_;
  std::map<std::string, std::int64_t> stats_;
};

inline std::string SpaceOf(const std::vector<OwnPlane>& planes) {
  std::string space;
  for (const OwnPlane& plane : planes) {
    protozero::pbf_writer(space).add_message(1, OwnPlaneWriter(plane).Bytes());
  }
  protozero::pbf_writer(space).add_string(4, "host-1");
  return space;
}

inline std::string Gzipped(const std::string& bytes) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, bytes.size()) + 64, '\0');
  std::string input = bytes;
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(out.size() - stream.avail_out);
  deflateEnd(&stream);
  return out;
}

/// Bytes as a file that goes when this does.
class OwnFile {
 public:
  OwnFile(const std::string& name, const std::string& bytes)
      : path_((std::filesystem::temp_directory_path() /
               ("flopledger_" + std::to_string(getpid()) + name))
                  .string()) {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~OwnFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

}  // namespace flopledger
