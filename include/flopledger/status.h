#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <utility>

namespace flopledger {

/// Why a call could not do what it was asked to.
enum class StatusCode {
  kInvalidArgument,  ///< a value that the caller gave is wrong; the message names it
  kNotFound,         ///< a thing that was asked for by name does not exist
  kUnavailable,      ///< the machine lacks it (hardware, library, port); a normal state
  kUnsupported,      ///< correct, but outside of what this version can count
  kOverflow,         ///< a count left the range of 128 bits; never wrapped
  kDataLoss,         ///< the input ends early or is corrupt
  kInternal,         ///< a fault of flopledger itself
};

/// A refusal: a code for programs and one sentence for people, with the offending value and the
/// accepted ones.
///
///     return Status(StatusCode::kInvalidArgument, "rank is 9; accepted: 0 to 7 (world_size is
///     8)");
///
/// Thread: a value. Fails: never.
class [[nodiscard]] Status {
 public:
  Status(StatusCode code, std::string message) : code_(code), message_(std::move(message)) {}

  StatusCode code() const { return code_; }
  const std::string& message() const { return message_; }

  friend bool operator==(const Status&, const Status&) = default;

 private:
  StatusCode code_;
  std::string message_;
};

/// A value, or the reason why there is none.
template <typename T>
using Result = tl::expected<T, Status>;

/// Shorthand for the failing side of a `Result`.
inline tl::unexpected<Status> Fail(StatusCode code, std::string message) {
  return tl::unexpected<Status>(Status(code, std::move(message)));
}

inline tl::unexpected<Status> InvalidArgument(std::string message) {
  return Fail(StatusCode::kInvalidArgument, std::move(message));
}

/// Name of the code in lower snake case, for logs and metric labels: `invalid_argument`.
constexpr std::string_view ToString(StatusCode code) {
  switch (code) {
    case StatusCode::kInvalidArgument:
      return "invalid_argument";
    case StatusCode::kNotFound:
      return "not_found";
    case StatusCode::kUnavailable:
      return "unavailable";
    case StatusCode::kUnsupported:
      return "unsupported";
    case StatusCode::kOverflow:
      return "overflow";
    case StatusCode::kDataLoss:
      return "data_loss";
    case StatusCode::kInternal:
      return "internal";
  }
  return "internal";
}

}  // namespace flopledger
