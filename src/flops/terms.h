#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "exact.h"
#include "flopledger/convention.h"
#include "flopledger/status.h"
#include "flopledger/units.h"
#include "quantity.h"

namespace flopledger::flops {

/// What a term is, for the switches that ask.
enum class TermClass : std::uint8_t {
  kLinear,       ///< a product with weights
  kScores,       ///< query-key products: no weights
  kValues,       ///< probability-value products: no weights
  kHead,         ///< a product with weights that full recomputation of the layers does not replay
  kIndexer,      ///< scores of a sparse indexer
  kInteraction,  ///< dots of features: no weights
  kRecurrent,    ///< scan of a recurrent mixer: approximate
};

/// One line of arithmetic: FLOPs per unit of a quantity, so many times.
struct Term {
  std::string part = {};   ///< `layers.attention.projections`
  std::string shape = {};  ///< `4096 -> 14336`, for people
  TermClass term_class = TermClass::kLinear;
  Quantity quantity = {};
  std::int64_t times = 1;
  Int128 forward = 0;  ///< per unit; of half pairs: per half pair
  Int128 backward_input = 0;
  Int128 backward_weight = 0;
};

/// Sum over the terms that share a quantity: what an evaluation without parts multiplies out.
struct QuantityTotal {
  Quantity quantity = {};
  Exact forward = {};
  Exact backward = {};
};

/// A model under one convention, ready to be multiplied out.
struct TermList {
  std::vector<Term> terms = {};
  std::vector<QuantityTotal> totals = {};
  bool halved = false;           ///< figures are multiply-adds: half of what the terms say
  Int128 parameters = 0;         ///< all weights
  Int128 active_parameters = 0;  ///< those that a token meets
  bool approximate = false;
};

/// Whether the two sides of a product need gradients.
struct Gradients {
  bool input = true;
  bool weight = true;
};

/// Scores and values of one attention layer.
struct AttentionCore {
  std::int64_t heads = 0;
  std::int64_t score_dim = 0;
  std::int64_t value_dim = 0;
  bool query_gradient = true;
  bool key_gradient = true;
  bool value_gradient = true;
  Exact half_pairs_per_unit = 1;  ///< where the quantity is no pairs (tokens of a sample are fixed)
};

/// Collects terms; remembers an overflow instead of asking after each line.
class TermBuilder {
 public:
  explicit TermBuilder(const FlopConvention& convention) : convention_(convention) {}

  const FlopConvention& convention() const { return convention_; }

  /// A product of `quantity` rows with a weight of in x out. Counts the weight as a parameter,
  /// `copies` times (experts: as many as exist, of which a token meets `met`).
  struct Weight {
    std::int64_t in = 0;
    std::int64_t out = 0;
    std::int64_t copies = 1;
    std::int64_t met = 1;
    std::int64_t rows = 1;            ///< of one unit of the quantity (pixels of a sample)
    bool counts_as_parameter = true;  ///< false: a second use of the same weight
  };
  void Linear(std::string_view part, std::int64_t times, const Weight& weight, Quantity quantity,
              Gradients gradients, TermClass term_class = TermClass::kLinear);
  /// The two products without weights of `quantity` (pairs); nothing under a convention without
  /// an attention term.
  void Core(std::string_view part, std::int64_t times, const Quantity& pairs,
            const AttentionCore& core);
  /// Any other product: FLOPs per unit of each pass.
  void Add(Term term);
  void Parameters(Exact all, Exact active);

  /// The list with the switches on tokens and replay applied. Fails: kOverflow.
  Result<TermList> Finish(std::int64_t declared_parameters, std::int64_t input_lookup_parameters);

 private:
  void ReplaceLinearByParameters(Int128 counted);
  void ApplyPassSwitches();
  /// Layers that are alike become one line.
  void MergeAlikeTerms();

  FlopConvention convention_;
  TermList list_;
  Exact parameters_ = {};
  Exact active_parameters_ = {};
  bool overflow_ = false;
};

/// FLOPs of one pass each.
struct PassTotals {
  Exact forward = {};
  Exact backward_input = {};
  Exact backward_weight = {};
};

/// Multiplies one term out.
PassTotals EvaluateTerm(const Term& term, const Workload& workload);

}  // namespace flopledger::flops
