#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/kernel_table.h"
#include "collect/cupti/cupti_api.h"
#include "collect/cupti/device_clock.h"
#include "collect/cupti/external_id.h"
#include "collect/cupti/launch_order.h"
#include "collect/cupti/record_views.h"
#include "flopledger/records.h"

namespace flopledger {

/// Turns the activity records of a buffer into records of flopledger: names interned once, times on
/// the session's clock, launches in one order, what cannot be a time counted as lost.
///
///     decoder.BeginDrain(now_ns);
///     decoder.Decode(api, clock, buffer, valid, batch);
///     decoder.EndDrain(batch);
///
/// Thread: one. Fails: never; a buffer that cannot be walked ends there and counts as an unknown
/// loss.
class ActivityDecoder {
 public:
  struct Counts {
    std::int64_t records = 0;
    std::int64_t skipped = 0;
    std::int64_t kernels = 0;
    std::int64_t graph_kernels = 0;
    std::int64_t backward_kernels = 0;  ///< end before start
    std::int64_t fences = 0;
  };

  /// `link_ops`: launch records come, with the op that was pushed.
  ActivityDecoder(std::size_t kernel_signatures, KernelTable::Classifier classify, bool link_ops);

  void set_api_version(std::uint32_t version) { has_graph_node_ = version >= kGraphNodeVersion; }
  /// Kernels of before are not believed to start earlier than a second before this.
  void set_started_at(std::int64_t now_ns) { started_at_ns_ = now_ns; }

  void BeginDrain(std::int64_t now_ns);
  /// What ended later than a second after this is not believed.
  void SetNow(std::int64_t now_ns) { now_ns_ = now_ns; }
  void Decode(CuptiApi& api, const DeviceClock& clock, std::uint8_t* buffer, std::size_t valid,
              RecordBatch& batch);
  void EndDrain(RecordBatch& batch);

  /// Records in a buffer that is given up unread.
  static std::int64_t CountRecords(CuptiApi& api, std::uint8_t* buffer, std::size_t valid);

  const KernelTable& kernels() const { return kernels_; }
  const Counts& counts() const { return counts_; }
  /// Bit per device that has reported anything.
  std::uint64_t devices_seen() const { return devices_seen_; }

 private:
  struct NameSlot {  // a signature by the pointer that the library gave for its name
    const char* name = nullptr;
    std::array<std::uint64_t, 4> shape{};  // grid, block, shared memory, as they lie
    KernelId kernel = kOverflowKernel;
    std::uint32_t checked_in = 0;  // the drain in which the text was last compared
    OpClass op_class = OpClass::kUnknown;
  };
  struct OpSlot {
    std::uint32_t correlation = 0;
    SignatureId op = kOverflowSignature;
    Phase phase = Phase::kForward;
    bool known = false;
  };
  struct Work {
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    std::uint32_t correlation = 0;
    std::uint32_t device = 0;
    std::uint32_t stream = 0;
    KernelId kernel = kOverflowKernel;
    KernelRecord::Kind kind = KernelRecord::Kind::kKernel;
    OpClass op_class = OpClass::kUnknown;
  };
  struct Times {
    std::int64_t start_ns = 0;
    std::int64_t end_ns = 0;
  };

  void DecodeKernel(const DeviceClock& clock, const std::uint8_t* record, std::size_t left,
                    RecordBatch& batch);
  void DecodeCopy(const DeviceClock& clock, const CopyView& copy, std::uint32_t correlation,
                  KernelRecord::Kind kind, RecordBatch& batch);
  void DecodeExternal(const ExternalView& external, RecordBatch& batch);
  void DecodeOverhead(const DeviceClock& clock, const OverheadView& overhead, RecordBatch& batch);
  void Add(const DeviceClock& clock, const Work& work, RecordBatch& batch);
  std::optional<Times> TimesOf(const DeviceClock& clock, std::uint64_t start, std::uint64_t end,
                               std::optional<std::int64_t> boundary_ns) const;
  const NameSlot& Intern(const std::uint8_t* record);
  void InternSlow(const KernelView& kernel, NameSlot& slot);
  KernelId CopyId(std::size_t copy_kind);
  void LinkOp(std::uint32_t correlation, KernelRecord& record) const;
  void Lose(std::int64_t time_ns, std::int64_t count, LossRecord::Reason reason,
            RecordBatch& batch);

  KernelTable kernels_;
  const bool link_ops_;
  bool has_graph_node_ = true;
  std::int64_t started_at_ns_ = 0;
  std::int64_t now_ns_ = 0;
  std::uint32_t drain_ = 0;
  std::uint64_t devices_seen_ = 0;
  LaunchOrders orders_;
  RecentFences fences_;
  std::vector<NameSlot> names_;
  std::vector<OpSlot> ops_;  // by the low bits of the correlation id
  std::vector<std::pair<std::size_t, std::uint32_t>> unlinked_;  // index in the batch, correlation
  std::array<KernelId, 12> copy_ids_{};                          // by copy kind; the last: fills
  Counts counts_;
};

}  // namespace flopledger
