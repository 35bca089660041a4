#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "collect/trace/json_window.h"

namespace flopledger {

/// What an event's fields and arguments are called, in every dialect, and which is which.
enum class KinetoField : std::uint8_t {
  kPh,
  kCat,
  kName,
  kPid,
  kTid,
  kTs,
  kDur,
  kArgs,
  // of `args`
  kCorrelation,
  kExternalId,
  kStream,
  kDevice,
  kGrid,
  kBlock,
  kSharedMemory,
  kInputDims,
  kInputType,
  kConcreteInputs,
  kSequenceNumber,
  kForwardThread,
  kEventIndex,
  kOther,
};
inline constexpr std::size_t kKinetoFieldCount = 21;

/// One event: where in the tokens the values of its fields begin. Valid until the next event.
class KinetoEvent {
 public:
  void Clear() { at_.fill(0); }
  void Set(KinetoField field, std::size_t token) {
    at_[static_cast<std::size_t>(field)] = static_cast<std::uint32_t>(token);
  }
  /// Token of the value; 0 where the field is absent (no value is the first token of a window).
  std::size_t at(KinetoField field) const { return at_[static_cast<std::size_t>(field)]; }
  bool has(KinetoField field) const { return at(field) != 0; }

 private:
  std::array<std::uint32_t, kKinetoFieldCount> at_{};
};

/// Who takes what the document has.
class KinetoConsumer {
 public:
  virtual ~KinetoConsumer() = default;
  virtual void OnEvent(JsonTokens& tokens, const KinetoEvent& event) = 0;
  /// A member of the outermost object other than `traceEvents`; its value begins at token `i`.
  virtual void OnMember(JsonTokens& tokens, std::string_view key, std::size_t i) = 0;
};

/// The outline of a Kineto (Chrome trace) document: an object with `traceEvents`, or the array
/// alone. Events are handed on once they are whole, so a cut takes nothing half.
///
/// Thread: one. Fails: kDataLoss with byte and line of the fault in the inflated text. Lenient: it
/// goes on behind what cannot be read; `lost` and `repairs` have the counts.
class KinetoDocument {
 public:
  /// What a lenient reader did not get.
  struct Lost {
    std::int64_t events = 0;    ///< that could not be read
    bool unterminated = false;  ///< the outer array or object has no end
    bool cut = false;           ///< the last event is not whole
  };

  KinetoDocument(TextPart text, bool lenient)
      : lenient_(lenient), window_(std::move(text), lenient) {}

  Result<bool> ReadAll(KinetoConsumer& consumer);

  const JsonWindow& window() const { return window_; }
  const JsonTokens::Repairs& repairs() { return window_.tokens().repairs(); }
  const Lost& lost() const { return lost_; }
  bool byte_order_mark() const { return byte_order_mark_; }
  bool has_events() const { return has_events_; }
  std::int64_t events() const { return events_; }
  std::uint64_t text_bytes() const { return text_bytes_; }

 private:
  enum class State : std::uint8_t { kStart, kMembers, kEvents, kEnd };
  using Verdict = JsonTokens::Verdict;

  /// Takes as many whole items as the window has; `*taken` is where the next one begins.
  Verdict TakeItems(KinetoConsumer& consumer, std::size_t* taken);
  Verdict TakeStart(std::size_t* i);
  Verdict TakeMember(KinetoConsumer& consumer, std::size_t* i);
  Verdict TakeEvent(KinetoConsumer& consumer, std::size_t* i);
  Verdict ReadEvent(std::size_t* i);
  Verdict ReadArguments(std::size_t* i);
  Verdict TakeItemEnd(std::size_t* i, char close);
  Verdict Bad(std::size_t i, std::string_view what);
  /// Lenient: the next place where an event seems to begin.
  std::size_t Resynchronise(std::size_t i);
  Result<bool> Refuse(std::size_t offset, std::string_view what) const;
  Result<bool> AtEndOfText(std::size_t taken);

  const bool lenient_;
  JsonWindow window_;
  State state_ = State::kStart;
  bool in_object_ = false;
  bool first_item_ = true;
  bool byte_order_mark_ = false;
  bool has_events_ = false;
  std::int64_t events_ = 0;
  std::uint64_t text_bytes_ = 0;
  Lost lost_;
  KinetoEvent event_;
  JsonTokens::Fault fault_;
};

}  // namespace flopledger
