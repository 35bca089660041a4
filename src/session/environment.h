#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "flopledger/session.h"
#include "flopledger/status.h"

namespace flopledger {

/// What a session without a caller is made of: the variables FLOPLEDGER_* of a program that only
/// has NVTX ranges. docs/nvtx.md lists them; they are those of the Python package, and PEAK and
/// MODEL_FLOPS.
///
///     FLOPLEDGER_AUTOSTART=1 FLOPLEDGER_PEAK='989.4 TFLOP/s' FLOPLEDGER_DTYPE=bf16 ./train
///
/// Nullopt if FLOPLEDGER_AUTOSTART is not set. `environment` holds `NAME=value` entries, ours and
/// others'. Fails: the variable, its value, what is accepted; an unknown name of the family is
/// answered with the nearest one.
Result<std::optional<SessionOptions>> OptionsFromEnvironment(
    std::span<const std::string_view> environment);

/// Makes that session, once in the process, and closes it at exit. What is wrong is said in the
/// log: nobody is there to be told.
void StartFromEnvironment() noexcept;

/// A session that somebody makes by hand takes the place of the one from the environment.
void CloseSessionFromEnvironment() noexcept;

}  // namespace flopledger
