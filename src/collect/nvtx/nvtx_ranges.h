#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/sync.h"
#include "collect/nvtx/nvtx_injection.h"
#include "collect/nvtx/nvtx_names.h"

namespace flopledger {

/// A range on this thread that means something.
struct NvtxOpenRange {
  void* taken_by = nullptr;  // the listener and what it has open; never freed
  std::int32_t level = 0;
  std::int32_t exceptions = 0;  // under way when it began
  std::uint16_t domain = 0;
  NvtxMeaning::Kind kind = NvtxMeaning::Kind::kNone;
  Phase phase = Phase::kOther;
};

/// What a thread has open: nesting levels of each domain, and the few ranges that concern us. A pop
/// has no name, so that the pops of everybody else's ranges are told apart by their level.
struct NvtxThread {
  static constexpr std::size_t kMostOpen = 16;
  std::array<std::int32_t, NvtxDomain::kTracked + 1> levels{};  // the last: of all untracked ones
  std::uint32_t open_count = 0;
  std::array<NvtxOpenRange, kMostOpen> open{};
};
extern thread_local constinit NvtxThread nvtx_thread;

/// What comes with a range or a mark besides its name.
using NvtxPayload = std::optional<std::int64_t>;

/// The slow halves: a range that means something. `level` is the one at which it was pushed.
void BeginNvtxRange(const NvtxDomain& domain, std::int32_t level, NvtxMeaning meaning,
                    NvtxPayload payload) noexcept;
void EndNvtxRange(const NvtxDomain& domain, std::int32_t level) noexcept;
/// A range of the process: the number that ends it.
std::uint64_t StartNvtxRange(NvtxMeaning meaning, NvtxPayload payload) noexcept;
void FinishNvtxRange(std::uint64_t range) noexcept;
void TakeNvtxMark(NvtxMeaning meaning, NvtxPayload payload) noexcept;
/// Copies of NVTX whose tables we filled.
int AttachedNvtxClients() noexcept;

/// Number of a range that concerns nobody.
inline constexpr std::uint64_t kForeignNvtxRange = std::uint64_t{1} << 63;

/// The level of the range that begins, counted from 0.
FLOPLEDGER_HOT inline std::int32_t EnterNvtxLevel(const NvtxDomain& domain) noexcept {
  return nvtx_thread.levels[domain.index]++;
}

/// Ends the innermost range of the domain: its level, or -1 if none is open.
FLOPLEDGER_HOT inline int LeaveNvtxLevel(const NvtxDomain& domain) noexcept {
  NvtxThread& thread = nvtx_thread;
  std::int32_t& level = thread.levels[domain.index];
  if (level <= 0) return -1;
  --level;
  if (thread.open_count != 0) EndNvtxRange(domain, level);
  return level;
}

}  // namespace flopledger
