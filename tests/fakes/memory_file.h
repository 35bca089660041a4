#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace flopledger::fakes {

/// A file that is in memory alone, with a path for those who want one.
class MemoryFile {
 public:
  MemoryFile(const std::uint8_t* bytes, std::size_t size)
      : descriptor_(memfd_create("flopledger", 0)) {
    if (descriptor_ < 0) std::abort();
    for (std::size_t done = 0; done < size;) {
      const ssize_t wrote = write(descriptor_, bytes + done, size - done);
      if (wrote <= 0) std::abort();
      done += static_cast<std::size_t>(wrote);
    }
  }
  ~MemoryFile() { close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  const int descriptor_;
};

}  // namespace flopledger::fakes
