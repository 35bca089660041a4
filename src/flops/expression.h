#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flopledger/status.h"
#include "rational.h"

namespace flopledger::flops {

/// An arithmetic expression over named variables, evaluated in exact fractions.
///
///     auto formula = Expression::Parse("6*N*T + 12*L*H*Q*S*T");
///     auto value = formula->Evaluate({{"N", 124'000'000}, ...});
///
/// `+ - * /`, `^` (or `**`) with an integer, parentheses, `min(a, b)`, `max(a, b)`, numbers such as
/// `1.5e9`. Nothing is executed. Bounded: 4096 characters, 64 levels.
/// Fails: `Parse` with the column of what it does not understand; `Evaluate` on a variable without
/// a value, a division by 0, and where a value leaves 128 bits.
class Expression {
 public:
  using Variables = std::map<std::string, Int128, std::less<>>;

  static Result<Expression> Parse(std::string_view text);

  Result<Rational> Evaluate(const Variables& variables) const;
  /// Names that occur, each once, in the order of the text.
  const std::vector<std::string>& variables() const { return names_; }
  bool Uses(std::string_view name) const;

 private:
  friend class ExpressionParser;
  enum class Operation : std::uint8_t {
    kNumber,
    kVariable,
    kAdd,
    kSubtract,
    kMultiply,
    kDivide,
    kPower,
    kNegate,
    kMin,
    kMax,
  };
  struct Step {
    Operation operation = Operation::kNumber;
    Rational number = {};
    std::size_t variable = 0;  ///< index into `names_`
    std::size_t column = 0;    ///< 1 is the first character
  };
  static std::optional<Rational> Apply(Operation operation, const Rational& a, const Rational& b);

  std::vector<Step> steps_;  ///< reverse Polish
  std::vector<std::string> names_;
};

}  // namespace flopledger::flops
