#pragma once

#include <cstdint>
#include <string>

#include "flopledger/transformer.h"
#include "terms.h"
#include "transformer_terms.h"

namespace flopledger::flops {

/// A stretch of layers that are alike in shape and in what needs gradients.
struct LayerSegment {
  LayerRun run = {};  ///< `count` is the number of layers of the segment
  bool input_needs_gradient = true;
  bool trains = true;  ///< false: frozen whole, without adapters
};

/// Adds the terms of a segment.
class LayerTerms {
 public:
  LayerTerms(const TransformerDescription& description, const StackOptions& options,
             TermBuilder* builder)
      : description_(description), options_(options), builder_(*builder) {}

  void Add(const LayerSegment& segment);

 private:
  struct State {
    std::int64_t times = 1;
    bool input = true;  ///< the normalised input of a matmul needs a gradient
    TrainableParts trainable = {};
    bool lora = false;
  };

  bool AddMixer(const LayerRun& run, const State& state);
  bool AddAttention(const LayerRun& run, const State& state);
  bool AddLatentAttention(const LayerRun& run, const State& state);
  bool AddCrossAttention(const State& state);
  bool AddMamba2(const State& state);
  bool AddGatedDelta(const State& state);
  void AddIndexer(const State& state);
  void AddCore(const LayerRun& run, std::int64_t times, const AttentionCore& core);
  void AddFfn(const LayerRun& run, const State& state);
  void AddDenseFfn(std::string_view part, std::int64_t width, const State& state);
  void AddExperts(const State& state);
  /// A weight and, where asked for, its adapter. Returns whether the output needs a gradient.
  bool AddWeight(std::string_view part, const State& state, std::int64_t in, std::int64_t out,
                 bool weight_trains, bool has_adapter);
  void AddNormParameters(std::int64_t times);
  Quantity Tokens() const { return {.kind = options_.tokens}; }
  std::string Part(std::string_view name) const {
    return options_.part_prefix + "." + std::string(name);
  }

  const TransformerDescription& description_;
  const StackOptions& options_;
  TermBuilder& builder_;
};

}  // namespace flopledger::flops
