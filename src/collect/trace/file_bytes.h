#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "flopledger/status.h"

namespace flopledger {

/// The bytes of a file for readers that need all of it at once: mapped as it lies, or inflated into
/// memory if it is gzip (one member or several).
///
///     Result<FileBytes> bytes = FileBytes::Open(path, 16 << 30);
///     Decode(bytes->view());
///
/// Ownership: the view is valid as long as the object. Fails: kNotFound; kDataLoss with the byte at
/// which gzip is broken; kInvalidArgument for what inflates to more than the limit.
class FileBytes {
 public:
  static Result<FileBytes> Open(const std::string& path, std::uint64_t max_inflated_bytes);
  ~FileBytes();
  FileBytes(FileBytes&& other) noexcept;
  FileBytes& operator=(FileBytes&&) = delete;

  std::string_view view() const { return view_; }
  std::uint64_t file_bytes() const { return file_bytes_; }

 private:
  FileBytes() = default;

  std::string inflated_;
  void* mapped_ = nullptr;
  std::uint64_t file_bytes_ = 0;
  std::string_view view_;
};

}  // namespace flopledger
