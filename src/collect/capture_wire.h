#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "flopledger/units.h"

namespace flopledger {

/// `to - from` modulo 2^64, so that both may be anything.
constexpr std::int64_t WrappedDifference(std::int64_t to, std::int64_t from) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(to) -
                                   static_cast<std::uint64_t>(from));
}

/// Appends the numbers of a capture to a buffer: integers in base 128 with the low group first,
/// signed ones folded so that small magnitudes are short, reals as eight little-endian bytes.
///
///     WireWriter out(&bytes);
///     out.Unsigned(count);
///     out.Signed(start_ns - last_ns);
///
/// Thread: one. Fails: never, but for memory.
class WireWriter {
 public:
  explicit WireWriter(std::string* out) : out_(out) {}

  void Byte(std::uint8_t value) { out_->push_back(static_cast<char>(value)); }
  void Unsigned(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) Byte(static_cast<std::uint8_t>(value) | 0x80);
    Byte(static_cast<std::uint8_t>(value));
  }
  void Signed(std::int64_t value) {
    const auto bits = static_cast<std::uint64_t>(value);
    Unsigned((bits << 1) ^ (value < 0 ? ~std::uint64_t{0} : 0));
  }
  void Difference(std::int64_t to, std::int64_t from) { Signed(WrappedDifference(to, from)); }
  void Wide(Int128 value) {
    Signed(static_cast<std::int64_t>(value >> 64));
    Unsigned(static_cast<std::uint64_t>(value));
  }
  void Real(double value) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (int shift = 0; shift < 64; shift += 8) Byte(static_cast<std::uint8_t>(bits >> shift));
  }
  void Text(std::string_view text) {
    Unsigned(text.size());
    out_->append(text);
  }

 private:
  std::string* out_;
};

/// Reads what `WireWriter` wrote from bytes that may be anything. The first fault latches: `ok()`
/// turns false, everything after it reads as zero, and `offset()` stays where the fault was.
///
/// Thread: one. Ownership: refers to the bytes. Fails: by `ok()`.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : bytes_(bytes) {}

  bool ok() const { return ok_; }
  bool AtEnd() const { return !ok_ || next_ == bytes_.size(); }
  std::size_t offset() const { return next_; }
  std::size_t remaining() const { return bytes_.size() - next_; }
  void Refuse() { ok_ = false; }

  std::uint8_t Byte() {
    if (!ok_ || next_ == bytes_.size()) {
      ok_ = false;
      return 0;
    }
    return static_cast<std::uint8_t>(bytes_[next_++]);
  }
  std::uint64_t Unsigned() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64; shift += 7) {
      const std::uint8_t group = Byte();
      if (shift == 63 && group > 1) ok_ = false;
      value |= std::uint64_t{group & 0x7fU} << shift;
      if (group < 0x80) return ok_ ? value : 0;
    }
    ok_ = false;
    return 0;
  }
  /// A number that is at most `most`, else a fault.
  std::uint64_t UpTo(std::uint64_t most) {
    const std::uint64_t value = Unsigned();
    if (value > most) ok_ = false;
    return ok_ ? value : 0;
  }
  /// A count of things that take at least one byte each, so that no count outgrows its bytes.
  std::size_t Count() {
    const std::uint64_t value = Unsigned();
    // What remains is behind the count itself.
    if (value > remaining()) ok_ = false;
    return ok_ ? static_cast<std::size_t>(value) : 0;
  }
  std::int64_t Signed() {
    const std::uint64_t folded = Unsigned();
    return static_cast<std::int64_t>((folded >> 1) ^ ((folded & 1) != 0 ? ~std::uint64_t{0} : 0));
  }
  std::int64_t Difference(std::int64_t from) {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(Signed()) +
                                     static_cast<std::uint64_t>(from));
  }
  Int128 Wide() {
    const Int128 high = Signed();
    return high * (Int128{1} << 64) + Int128{Unsigned()};
  }
  double Real() {
    std::uint64_t bits = 0;
    for (int shift = 0; shift < 64; shift += 8) bits |= std::uint64_t{Byte()} << shift;
    return std::bit_cast<double>(bits);
  }
  std::string_view Text() {
    const std::size_t size = Count();
    if (!ok_) return {};
    const std::string_view text = bytes_.substr(next_, size);
    next_ += size;
    return text;
  }

 private:
  std::string_view bytes_;
  std::size_t next_ = 0;
  bool ok_ = true;
};

}  // namespace flopledger
