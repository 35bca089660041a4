#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace flopledger {

/// The frame of a capture file (docs/capture.md): a header, then blocks, each with its kind, size
/// and checksum. All numbers are little-endian.
///
/// A reader of version n reads files up to version n; a kind of block that it does not know it
/// passes over.
inline constexpr std::uint32_t kCaptureVersion = 1;
inline constexpr std::string_view kCaptureMagic =
    "\x89"
    "FLOPCAP";
inline constexpr std::size_t kCaptureHeaderBytes = 16;   ///< magic, version, checksum of the two
inline constexpr std::size_t kBlockHeaderBytes = 16;     ///< mark, kind, size, checksum
inline constexpr std::uint32_t kBlockMark = 0x4b4c4246;  ///< `FBLK`
inline constexpr std::uint32_t kMostBlockBytes = 256U << 20;

enum class BlockKind : std::uint32_t {
  kRun = 1,      ///< what the run is; the first block
  kOps = 2,      ///< op signatures with their numbers
  kKernels = 3,  ///< kernel signatures with their numbers
  kValueNames = 4,
  kDevices = 5,
  kBatches = 6,  ///< batches as they were drained
  kEnd = 7,      ///< the session closed; the last block
};

/// What a batch is written as.
enum class BatchTag : std::uint8_t {
  kNothing = 0,  ///< a number of batches without a record
  kBatch = 1,    ///< a batch; a device was not counting
  kDeviceBatch = 2,
};

/// CRC-32 as of zlib and Ethernet, of `bytes` behind what gave `before`.
inline std::uint32_t Checksum(std::string_view bytes, std::uint32_t before = 0) {
  constexpr auto kTable = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      std::uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) * 0xedb88320U);
      table[i] = value;
    }
    return table;
  }();
  std::uint32_t crc = ~before;
  for (const char byte : bytes) {
    crc = kTable[(crc ^ static_cast<std::uint8_t>(byte)) & 0xff] ^ (crc >> 8);
  }
  return ~crc;
}

inline void AppendFixed32(std::uint32_t value, std::string& out) {
  for (int shift = 0; shift < 32; shift += 8) out.push_back(static_cast<char>(value >> shift));
}

/// `bytes` holds at least `at + 4`.
inline std::uint32_t Fixed32At(std::string_view bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    value |= std::uint32_t{static_cast<std::uint8_t>(bytes[at + i])} << (8 * i);
  }
  return value;
}

inline std::string CaptureHeader(std::uint32_t version = kCaptureVersion) {
  std::string header(kCaptureMagic);
  AppendFixed32(version, header);
  AppendFixed32(Checksum(header), header);
  return header;
}

/// One block with its header.
inline std::string MakeBlock(BlockKind kind, std::string_view payload) {
  std::string block;
  block.reserve(kBlockHeaderBytes + payload.size());
  AppendFixed32(kBlockMark, block);
  AppendFixed32(static_cast<std::uint32_t>(kind), block);
  AppendFixed32(static_cast<std::uint32_t>(payload.size()), block);
  AppendFixed32(Checksum(payload, Checksum(std::string_view(block).substr(4, 8))), block);
  block += payload;
  return block;
}

}  // namespace flopledger
