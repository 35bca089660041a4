#pragma once

#include <string>

#include "flopledger/export.h"

/// Steps and phases from NVTX ranges: what a program marks for a profiler, without the step API.
///
///     nvtxDomainHandle_t domain = nvtxDomainCreateA("flopledger");
///     nvtxDomainRangePushEx(domain, &step);      message `step`; an integer payload is its number
///     nvtxDomainRangePushEx(domain, &forward);   message `forward`, `backward`, `data`, ...
///     nvtxDomainMarkEx(domain, &tokens);         message `tokens`, payload: useful tokens
///
/// or by ranges of other names: `SessionOptions::nvtx`. A process has one listener of NVTX, named
/// in NVTX_INJECTION64_PATH; each copy of NVTX (one per shared object) reads it at its first call.
///
/// Thread: see below. Fails: never.
namespace flopledger {

/// What NVTX ranges mean to a session.
struct NvtxOptions {
  bool enabled = true;  ///< claim the slot where it is free, and listen
  /// Ranges that are steps, besides `step` of the domain flopledger: `step*,train_step@my_domain`.
  /// With a payload, or a number in what `*` stands for, that is the step's number.
  std::string steps = {};
  std::string phases = {};  ///< ranges that are phases: `forward=fwd*,data=load_batch`
};

/// Sets NVTX_INJECTION64_PATH to this library, unless another tool has set it. `Session::Create`
/// does the same; call it earlier where NVTX is used before the session is made. False: not ours.
///
/// Thread: no other thread may use the environment meanwhile; call it at the start of the program.
FLOPLEDGER_EXPORT bool ClaimNvtx() noexcept;

/// The path that the variable has to have; empty in a build without NVTX.
FLOPLEDGER_EXPORT std::string NvtxInjectionPath();

}  // namespace flopledger
