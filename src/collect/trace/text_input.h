#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "flopledger/status.h"

namespace flopledger {

/// The text of a file in one direction: as it is, or inflated if it is gzip. Several members are
/// one text; zeros after the last member are none of it.
///
///     Result<TextInput> input = TextInput::Open("trace.json.gz", {});
///     Result<std::size_t> got = input->Read(buffer, sizeof buffer);   // 0: the end
///
/// Memory: one block of the file, whatever its size. Thread: one. Fails: `Open` kNotFound; `Read`
/// kDataLoss (cut, corrupt, checksum) and kInvalidArgument (inflates to more than the limit), with
/// the position in the file.
class TextInput {
 public:
  struct Options {
    std::uint64_t max_inflated_bytes = std::uint64_t{16} << 30;
    bool lenient = false;  ///< a cut or corrupt stream ends the text; `damage` says so
    std::function<void(std::uint64_t done_bytes, std::uint64_t total_bytes)> progress;
  };

  static Result<TextInput> Open(const std::string& path, const Options& options);
  TextInput(TextInput&&) noexcept;
  TextInput& operator=(TextInput&&) noexcept;
  ~TextInput();

  Result<std::size_t> Read(char* to, std::size_t size);

  bool compressed() const { return inflater_ != nullptr; }
  std::uint64_t position() const { return position_; }  ///< in the text
  std::uint64_t file_bytes() const { return file_bytes_; }
  std::int64_t members() const { return members_; }
  std::uint64_t padding_bytes() const { return padding_; }  ///< zeros after the last member
  std::uint64_t foreign_bytes() const { return foreign_; }  ///< others after the last member
  const std::string& damage() const { return damage_; }     ///< lenient: why the text ended early

 private:
  struct Inflater;
  struct FileCloser {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  TextInput();

  Result<std::size_t> ReadPlain(char* to, std::size_t size);
  Result<std::size_t> Inflate(char* to, std::size_t size);
  /// Fills the block from the file; false at its end.
  bool Refill();
  /// After a member: the next one, or what else follows it.
  Result<bool> BeginMember();
  Result<std::size_t> Damaged();
  std::uint64_t FilePosition() const;

  std::string path_;
  Options options_;
  std::unique_ptr<std::FILE, FileCloser> file_;
  std::vector<unsigned char> block_;
  std::size_t block_at_ = 0;
  std::size_t block_end_ = 0;
  std::uint64_t file_read_ = 0;
  std::uint64_t file_bytes_ = 0;
  std::uint64_t position_ = 0;
  std::int64_t members_ = 0;
  std::uint64_t padding_ = 0;
  std::uint64_t foreign_ = 0;
  bool in_member_ = false;
  bool ended_ = false;
  std::string fault_;
  std::string damage_;
  std::unique_ptr<Inflater> inflater_;
};

}  // namespace flopledger
