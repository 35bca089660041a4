#include "findings.h"

namespace flopledger::flops {

void Findings::Require(std::string_view name, std::int64_t value) {
  if (value == 0) missing_.emplace_back(name);
  Range(name, value);
}

void Findings::Range(std::string_view name, std::int64_t value) {
  if (value < 0 || value > kLargestDimension) {
    wrong_.push_back(std::string(name) + " is " + std::to_string(value) + " (accepted: 1 to 2^30)");
  }
}

Result<void> Findings::Verdict() const {
  if (missing_.empty() && wrong_.empty()) return {};
  std::string text = what_ + ":";
  for (std::size_t i = 0; i < missing_.size(); ++i) {
    text += (i == 0 ? " missing " : ", ") + missing_[i];
  }
  if (!missing_.empty() && !wrong_.empty()) text += ";";
  for (std::size_t i = 0; i < wrong_.size(); ++i) text += (i > 0 ? "; " : " ") + wrong_[i];
  return InvalidArgument(text);
}

}  // namespace flopledger::flops
