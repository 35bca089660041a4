// Any bytes as the compressed part of a gzip file: inflated within the limit, or refused. The input
// is split into members, so that the fuzzer reaches the second one.
#include <cstdint>
#include <cstdlib>
#include <string>

#include "collect/trace/text_input.h"
#include "fakes/memory_file.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  constexpr std::uint64_t kLimit = 1 << 20;
  std::string content("\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03", 10);
  content.append(reinterpret_cast<const char*>(bytes), size);
  const flopledger::fakes::MemoryFile file(reinterpret_cast<const std::uint8_t*>(content.data()),
                                           content.size());
  for (const bool lenient : {false, true}) {
    auto input = flopledger::TextInput::Open(
        file.path(), {.max_inflated_bytes = kLimit, .lenient = lenient, .progress = {}});
    if (!input.has_value()) std::abort();
    std::string buffer(4099, '\0');
    std::uint64_t read = 0;
    while (true) {
      const auto got = input->Read(buffer.data(), buffer.size());
      if (!got.has_value() || *got == 0) break;
      read += *got;
      if (read > kLimit || read != input->position()) std::abort();
    }
  }
  return 0;
}
