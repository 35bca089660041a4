#include "flopledger/auxiliary.h"

#include <algorithm>
#include <string>

#include "exact.h"

namespace flopledger {
namespace {

using flops::Exact;

Result<Flops> Finish(Exact total) {
  if (!total.valid()) return Fail(StatusCode::kOverflow, "auxiliary FLOPs leave 128 bits");
  return Flops::FromInteger(total.value());
}

Result<Flops> PerParameter(Int128 parameters, std::int64_t each) {
  if (parameters < 0) {
    return InvalidArgument("parameters is " + ToString(parameters) + "; accepted: 0 and more");
  }
  return Finish(Exact(parameters) * each);
}

}  // namespace

Result<Flops> MuonFlops(std::span<const MuonMatrix> matrices, std::int64_t newton_schulz_steps) {
  if (newton_schulz_steps < 0) {
    return InvalidArgument("newton_schulz_steps is " + std::to_string(newton_schulz_steps) +
                           "; accepted: 0 and more");
  }
  Exact total = 0;
  for (std::size_t i = 0; i < matrices.size(); ++i) {
    const MuonMatrix& matrix = matrices[i];
    if (matrix.rows < 0 || matrix.columns < 0 || matrix.count < 0) {
      return InvalidArgument("matrices[" + std::to_string(i) +
                             "] has a negative side or count; accepted: 0 and more");
    }
    const Exact m = std::min(matrix.rows, matrix.columns);
    const Exact n = std::max(matrix.rows, matrix.columns);
    total += (Exact(4) * m * m * n + Exact(2) * m * m * m) * matrix.count * newton_schulz_steps;
  }
  return Finish(total);
}

Result<Flops> AdamWFlops(Int128 parameters) { return PerParameter(parameters, 15); }

Result<Flops> GlobalNormClipFlops(Int128 parameters) { return PerParameter(parameters, 3); }

Result<Flops> OneHotDispatchFlops(std::int64_t tokens, std::int64_t experts, std::int64_t capacity,
                                  std::int64_t hidden) {
  if (tokens < 0 || experts < 0 || capacity < 0 || hidden < 0) {
    return InvalidArgument("tokens, experts, capacity and hidden: accepted: 0 and more");
  }
  return Finish(Exact(2) * tokens * experts * capacity * hidden);
}

}  // namespace flopledger
