#include "expression.h"

#include <algorithm>
#include <utility>

namespace flopledger::flops {

bool Expression::Uses(std::string_view name) const {
  return std::find(names_.begin(), names_.end(), name) != names_.end();
}

std::optional<Rational> Expression::Apply(Operation operation, const Rational& a,
                                          const Rational& b) {
  switch (operation) {
    case Operation::kAdd:
      return Rational::Add(a, b);
    case Operation::kSubtract:
      return Rational::Subtract(a, b);
    case Operation::kMultiply:
      return Rational::Multiply(a, b);
    case Operation::kDivide:
      return Rational::Divide(a, b);
    case Operation::kPower:
      return Rational::Power(a, b);
    case Operation::kMin:
    case Operation::kMax: {
      const std::optional<bool> less = Rational::Less(a, b);
      if (!less.has_value()) return std::nullopt;
      return *less == (operation == Operation::kMin) ? a : b;
    }
    case Operation::kNegate:
    case Operation::kNumber:
    case Operation::kVariable:
      break;
  }
  return std::nullopt;
}

Result<Rational> Expression::Evaluate(const Variables& variables) const {
  std::vector<Rational> stack;
  for (const Step& step : steps_) {
    if (step.operation == Operation::kNumber) {
      stack.push_back(step.number);
      continue;
    }
    if (step.operation == Operation::kVariable) {
      const auto found = variables.find(names_[step.variable]);
      if (found == variables.end()) {
        return InvalidArgument("formula, column " + std::to_string(step.column) + ": variable '" +
                               names_[step.variable] + "' has no value");
      }
      stack.emplace_back(found->second);
      continue;
    }
    Rational b = stack.back();
    stack.pop_back();
    if (step.operation == Operation::kNegate) {
      stack.emplace_back(b);
      b = stack.back();
      stack.back() = Rational(0);
    }
    const Operation operation =
        step.operation == Operation::kNegate ? Operation::kSubtract : step.operation;
    const std::optional<Rational> value = Apply(operation, stack.back(), b);
    if (!value.has_value()) {
      const std::string where = "formula, column " + std::to_string(step.column) + ": ";
      if (operation == Operation::kDivide && b.numerator() == 0) {
        return InvalidArgument(where + "division by 0");
      }
      if (operation == Operation::kPower && b.denominator() != 1) {
        return InvalidArgument(where + "the exponent is no integer");
      }
      return Fail(StatusCode::kOverflow, where + "the value leaves 128 bits");
    }
    stack.back() = *value;
  }
  return stack.back();
}

/// Recursive descent that writes reverse Polish.
class ExpressionParser {
 public:
  explicit ExpressionParser(std::string_view text) : text_(text) {}

  Result<Expression> Run() {
    constexpr std::size_t kLongest = 4096;
    if (text_.size() > kLongest) {
      return InvalidArgument("formula has " + std::to_string(text_.size()) +
                             " characters; accepted: up to 4096");
    }
    if (!ParseSum(0)) return tl::unexpected(*error_);
    SkipSpace();
    if (at_ < text_.size()) {
      Refuse("'" + Shown() + "' is not expected here");
      return tl::unexpected(*error_);
    }
    return std::move(out_);
  }

 private:
  using Operation = Expression::Operation;
  static constexpr int kDeepest = 64;

  static bool IsDigit(char c) { return c >= '0' && c <= '9'; }
  static bool IsLetter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  }
  bool Refuse(std::string what) {
    if (!error_.has_value()) {
      error_ = Status(StatusCode::kInvalidArgument,
                      "formula, column " + std::to_string(at_ + 1) + ": " + std::move(what));
    }
    return false;
  }
  /// The character at hand as it may stand in a message.
  std::string Shown() const {
    const char c = text_[at_];
    return c >= ' ' && c <= '~' ? std::string(1, c) : std::string("?");
  }
  void SkipSpace() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool Take(std::string_view token) {
    SkipSpace();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  void Emit(Operation operation, std::size_t position) {
    out_.steps_.push_back({.operation = operation, .column = position + 1});
  }

  bool ParseSum(int depth) {
    if (depth > kDeepest) return Refuse("nested deeper than 64 levels");
    if (!ParseProduct(depth)) return false;
    while (true) {
      SkipSpace();
      const std::size_t position = at_;
      if (Take("+")) {
        if (!ParseProduct(depth)) return false;
        Emit(Operation::kAdd, position);
      } else if (Take("-")) {
        if (!ParseProduct(depth)) return false;
        Emit(Operation::kSubtract, position);
      } else {
        return true;
      }
    }
  }

  bool ParseProduct(int depth) {
    if (!ParseUnary(depth)) return false;
    while (true) {
      SkipSpace();
      const std::size_t position = at_;
      if (text_.substr(at_, 2) != "**" && Take("*")) {
        if (!ParseUnary(depth)) return false;
        Emit(Operation::kMultiply, position);
      } else if (Take("/")) {
        if (!ParseUnary(depth)) return false;
        Emit(Operation::kDivide, position);
      } else {
        return true;
      }
    }
  }

  bool ParseUnary(int depth) {
    SkipSpace();
    const std::size_t position = at_;
    if (Take("-")) {
      if (depth >= kDeepest) return Refuse("nested deeper than 64 levels");
      if (!ParseUnary(depth + 1)) return false;
      Emit(Operation::kNegate, position);
      return true;
    }
    return ParsePower(depth);
  }

  bool ParsePower(int depth) {
    if (!ParsePrimary(depth)) return false;
    SkipSpace();
    const std::size_t position = at_;
    if (!Take("^") && !Take("**")) return true;
    if (depth >= kDeepest) return Refuse("nested deeper than 64 levels");
    if (!ParseUnary(depth + 1)) return false;
    Emit(Operation::kPower, position);
    return true;
  }

  bool ParsePrimary(int depth) {
    SkipSpace();
    if (at_ >= text_.size()) return Refuse("the formula ends where a value is expected");
    if (Take("(")) {
      if (!ParseSum(depth + 1)) return false;
      return Take(")") || Refuse("a closing parenthesis is missing");
    }
    if (IsDigit(text_[at_]) || text_[at_] == '.') return ParseNumber();
    if (IsLetter(text_[at_])) return ParseName(depth);
    return Refuse("'" + Shown() + "' is no number, name or parenthesis");
  }

  bool ParseName(int depth) {
    const std::size_t start = at_;
    while (at_ < text_.size() && (IsLetter(text_[at_]) || IsDigit(text_[at_]))) ++at_;
    const std::string name(text_.substr(start, at_ - start));
    if (Take("(")) {
      if (name != "min" && name != "max") {
        at_ = start;
        return Refuse("'" + name + "' is no function; known: min, max");
      }
      if (!ParseSum(depth + 1)) return false;
      if (!Take(",")) return Refuse("a comma is missing");
      if (!ParseSum(depth + 1)) return false;
      if (!Take(")")) return Refuse("a closing parenthesis is missing");
      Emit(name == "min" ? Operation::kMin : Operation::kMax, start);
      return true;
    }
    const auto found = std::find(out_.names_.begin(), out_.names_.end(), name);
    const std::size_t index = static_cast<std::size_t>(found - out_.names_.begin());
    if (found == out_.names_.end()) out_.names_.push_back(name);
    out_.steps_.push_back(
        {.operation = Operation::kVariable, .variable = index, .column = start + 1});
    return true;
  }

  bool ParseNumber() {
    const std::size_t start = at_;
    Int128 digits = 0;
    int exponent = 0;
    bool any = false;
    bool after_point = false;
    for (; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '.' && !after_point) {
        after_point = true;
        continue;
      }
      if (!IsDigit(c)) break;
      any = true;
      if (!CheckedMultiply(digits, 10, &digits) || !CheckedAdd(digits, c - '0', &digits)) {
        at_ = start;
        return Refuse("the number leaves 128 bits");
      }
      if (after_point) --exponent;
    }
    if (!any) return Refuse("a number has no digits");
    if (at_ < text_.size() && (text_[at_] == 'e' || text_[at_] == 'E')) {
      if (!ParseExponent(&exponent)) return false;
    }
    const std::optional<Rational> scale = Rational::Power(Rational(10), Rational(exponent));
    const std::optional<Rational> value =
        scale.has_value() ? Rational::Multiply(Rational(digits), *scale) : std::nullopt;
    if (!value.has_value()) {
      at_ = start;
      return Refuse("the number leaves 128 bits");
    }
    out_.steps_.push_back({.operation = Operation::kNumber, .number = *value, .column = start + 1});
    return true;
  }

  bool ParseExponent(int* exponent) {
    ++at_;
    const bool negative = at_ < text_.size() && text_[at_] == '-';
    if (negative || (at_ < text_.size() && text_[at_] == '+')) ++at_;
    int value = 0;
    bool any = false;
    for (; at_ < text_.size() && IsDigit(text_[at_]); ++at_) {
      any = true;
      value = std::min(value * 10 + (text_[at_] - '0'), 1000);
    }
    if (!any) return Refuse("an exponent has no digits");
    *exponent += negative ? -value : value;
    return true;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::optional<Status> error_;
  Expression out_;
};

Result<Expression> Expression::Parse(std::string_view text) { return ExpressionParser(text).Run(); }

}  // namespace flopledger::flops
