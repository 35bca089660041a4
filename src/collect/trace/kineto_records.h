#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "collect/trace/growing_array.h"
#include "flopledger/device_records.h"

namespace flopledger {

// What is kept of a Kineto trace until it is linked: events come in any order, so nothing can be
// handed on before the last one. 24 to 64 bytes an event that matters, nothing for the others.

/// An op on the host: ATen, autograd nodes, user functions.
struct KinetoOp {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  SignatureId signature = kOverflowSignature;
  std::uint32_t order =
      0;  ///< recorder's number: of ops with equal times the outer has the smaller
  std::uint16_t thread = 0;
  std::uint16_t device_plus_one = 0;  ///< that it gave work to
  bool has_rule = false;              ///< an op of `TraceOptions::counted_ops`
  bool autograd_node = false;         ///< the backward engine at work
  bool grad_mode = false;             ///< recorded for autograd, not by it
  Phase phase = Phase::kForward;
};

/// A call of the runtime or driver, the launch of what has its correlation id.
struct KinetoCall {
  std::uint64_t correlation = 0;
  std::int64_t start_ns = 0;
  std::uint16_t thread = 0;
  bool graph = false;  ///< launches a graph: many pieces of work have its id
};

/// A piece of work on a device. The record is complete once it is linked.
struct KinetoWork {
  KernelRecord record;
  std::uint64_t correlation = 0;
  bool has_correlation = false;
};

/// A range that the program named, on one thread.
struct KinetoAnnotation {
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::uint16_t thread = 0;
  Phase phase = Phase::kOther;
};

struct KinetoStep {
  std::int64_t number = 0;
  std::int64_t start_ns = 0;
  std::int64_t end_ns = 0;
  std::string name;
};

struct KinetoRecords {
  GrowingArray<KinetoOp> ops;
  GrowingArray<KinetoCall> calls;
  GrowingArray<KinetoWork> work;
  std::vector<KinetoAnnotation> annotations;
  std::vector<KinetoStep> steps;
  std::optional<std::int64_t> base_ns;  ///< `baseTimeNanoseconds`
};

}  // namespace flopledger
