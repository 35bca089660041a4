#pragma once

#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "collect/trace/kineto_document.h"
#include "collect/trace/kineto_records.h"
#include "collect/trace/text_table.h"
#include "collect/trace/trace_source.h"

namespace flopledger {

/// Turns the events of a document into compact records. Names are kept once; of an event nothing
/// is left but numbers.
///
/// Thread: one. Ownership: the tables are the source's. Fails: never; what an event lacks is
/// counted in `oddities`.
class KinetoDecoder : public KinetoConsumer {
 public:
  /// Counts of events that are odd, by kind.
  struct Oddities {
    std::int64_t string_numbers = 0;
    std::int64_t unreadable = 0;  ///< without a time that can be read: left out
    std::int64_t negative_durations = 0;
    std::int64_t missing_fields = 0;
    std::int64_t huge_ids = 0;
    std::int64_t threads_refused = 0;
    std::int64_t ops_without_shapes = 0;  ///< of those that have a counting rule
  };
  struct Ranges {
    std::map<std::string, TraceCounter, std::less<>> counters;
    std::int64_t uncounted_matmuls = 0;  ///< matmul kernels whose counters saw no multiply-add
  };

  KinetoDecoder(const TraceOptions& options, KernelTable& kernels, SignatureTable& signatures)
      : options_(options), kernels_(kernels), signatures_(signatures) {}

  void OnEvent(JsonTokens& tokens, const KinetoEvent& event) override;
  void OnMember(JsonTokens& tokens, std::string_view key, std::size_t i) override;

  KinetoRecords& records() { return records_; }
  const KinetoRecords& records() const { return records_; }
  const Oddities& oddities() const { return oddities_; }
  const Ranges& ranges() const { return ranges_; }
  const std::vector<DeviceDescription>& devices() const { return devices_; }
  std::optional<int> rank() const { return rank_; }
  std::optional<int> world_size() const { return world_size_; }

 private:
  enum class Category : std::uint8_t {
    kOther,
    kOp,
    kCall,
    kKernel,
    kMemcpy,
    kMemset,
    kAnnotation,
    kRange
  };
  struct NameFacts {
    SignatureId signature = kOverflowSignature;  // without arguments
    bool has_rule = false;
    bool autograd_node = false;
    bool graph_launch = false;
    bool step = false;
    bool is_annotation = false;
    Phase phase = Phase::kOther;
    std::uint32_t number = 0;  // of the name
    bool interned = false;
  };
  struct KernelKey {
    std::uint32_t name = 0;
    std::array<std::uint32_t, 7> shape{};
    friend bool operator==(const KernelKey&, const KernelKey&) = default;
  };
  struct KernelKeyHash {
    std::size_t operator()(const KernelKey& key) const;
  };
  struct Times {
    std::int64_t start_ns = 0;
    std::int64_t duration_ns = 0;
  };

  Category CategoryOf(std::string_view name);
  NameFacts& Name(std::string_view name);
  bool ReadTimes(const KinetoEvent& event, Times* times);
  bool ReadTime(std::size_t token, std::int64_t* ns);
  std::string_view Text(std::size_t token);
  std::optional<std::uint64_t> Id(std::size_t token);
  std::uint16_t Thread(std::size_t token);
  void AddOp(const KinetoEvent& event, Category category);
  void AddCall(const KinetoEvent& event);
  void AddWork(const KinetoEvent& event, Category category);
  void AddRange(const KinetoEvent& event);
  SignatureId OpSignatureOf(const KinetoEvent& event, std::string_view name);
  KernelId KernelOf(const KinetoEvent& event, const NameFacts& facts, std::string_view name);
  void Extents(std::size_t token, std::uint32_t* to);
  std::int64_t IntegerOr(std::size_t token, std::int64_t otherwise);
  void ReadDevices(std::size_t i);
  void ReadDistributed(std::size_t i);

  const TraceOptions& options_;
  KernelTable& kernels_;
  SignatureTable& signatures_;
  JsonTokens* tokens_ = nullptr;
  KinetoRecords records_;
  Oddities oddities_;
  Ranges ranges_;
  TextTable<NameFacts> names_;
  TextTable<SignatureId> calls_with_arguments_;
  TextTable<std::uint16_t> threads_;
  TextTable<Category> categories_;
  std::unordered_map<KernelKey, KernelId, KernelKeyHash> kernel_ids_;
  std::string key_;
  std::vector<DeviceDescription> devices_;
  std::optional<int> rank_;
  std::optional<int> world_size_;
};

/// A string's characters with its escapes decoded.
std::string Unescaped(std::string_view content);

}  // namespace flopledger
