#pragma once

#include <cstdint>
#include <span>

#include "flopledger/export.h"
#include "flopledger/status.h"
#include "flopledger/units.h"

namespace flopledger {

// Work beside the model: it is executed, takes time, and is never part of MFU. Each function is
// pure and fails with kInvalidArgument for a negative input, kOverflow beyond 128 bits.

/// Weight matrices that Muon orthogonalises.
struct MuonMatrix {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t count = 1;
};

/// Newton-Schulz of Muon: per step, with m the shorter side, X X^T, A A and B X: 4 m^2 n + 2 m^3.
///
///     auto flops = MuonFlops(std::array{MuonMatrix{.rows = 1024, .columns = 4096}});
FLOPLEDGER_EXPORT Result<Flops> MuonFlops(std::span<const MuonMatrix> matrices,
                                          std::int64_t newton_schulz_steps = 5);

/// About 15 operations a parameter on plain units: bound by memory.
FLOPLEDGER_EXPORT Result<Flops> AdamWFlops(Int128 parameters);

/// Sum of squares (2) and scaling (1) of each gradient.
FLOPLEDGER_EXPORT Result<Flops> GlobalNormClipFlops(Int128 parameters);

/// Dispatch or combine of experts as a product with a one-hot mask: a real matmul, 2 T E C h.
FLOPLEDGER_EXPORT Result<Flops> OneHotDispatchFlops(std::int64_t tokens, std::int64_t experts,
                                                    std::int64_t capacity, std::int64_t hidden);

}  // namespace flopledger
