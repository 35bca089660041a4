// The floor under a trace reader: inflate all of a gzip file at once, find the tokens of its text,
// and look at every event's nine fields. It checks nothing, keeps nothing and knows nothing.
//
//     trace_floor FILE.json.gz
#include <libdeflate.h>
#include <simdjson.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

namespace {

std::vector<char> ReadFile(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

simdjson::padded_string Inflate(const std::vector<char>& packed) {
  std::uint32_t size = 0;  // of the text: the last four bytes of the file
  std::memcpy(&size, packed.data() + packed.size() - 4, 4);
  simdjson::padded_string text(size);
  libdeflate_decompressor* const decoder = libdeflate_alloc_decompressor();
  const libdeflate_result result =
      libdeflate_gzip_decompress(decoder, packed.data(), packed.size(), text.data(), size, nullptr);
  libdeflate_free_decompressor(decoder);
  return result == LIBDEFLATE_SUCCESS ? std::move(text) : simdjson::padded_string();
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: trace_floor FILE.json.gz\n");
    return 2;
  }
  const std::vector<char> packed = ReadFile(arguments[1]);
  if (packed.size() < 20) return 3;
  const simdjson::padded_string text = Inflate(packed);
  simdjson::ondemand::parser parser;
  simdjson::ondemand::document document = parser.iterate(text);  // faults throw: it is a measure
  std::uint64_t seen = 0;
  std::uint64_t sum = 0;
  for (simdjson::ondemand::object event : document["traceEvents"].get_array()) {
    for (simdjson::ondemand::field field : event) {
      const simdjson::ondemand::raw_json_string key = field.key();
      if (key == "ph" || key == "cat" || key == "name" || key == "pid" || key == "tid" ||
          key == "ts" || key == "dur" || key == "args" || key == "id") {
        sum += field.value().raw_json_token().size();
      }
    }
    ++seen;
  }
  std::printf("%llu events, %zu bytes, %llu\n", static_cast<unsigned long long>(seen), text.size(),
              static_cast<unsigned long long>(sum));
  return 0;
}
