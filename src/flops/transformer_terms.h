#pragma once

#include <string>

#include "flopledger/convention.h"
#include "flopledger/status.h"
#include "flopledger/transformer.h"
#include "terms.h"

namespace flopledger::flops {

/// Refuses what is missing or contradicts itself; the message names every field.
Result<void> Validate(const TransformerDescription& description);

/// The terms of a transformer under a convention. The description has been validated.
Result<TermList> CompileTransformer(const TransformerDescription& description,
                                    const FlopConvention& convention);

/// `transformer L=4 h=256 heads=8/8 ffn=1024 V=103`.
std::string Describe(const TransformerDescription& description);

/// The layer stack alone, for models that are made of more than one (encoder and decoder): adds
/// terms of `part_prefix` to a builder. `input_needs_gradient` says whether something below trains;
/// the result says whether something at the top does.
struct StackOptions {
  std::string part_prefix = "layers";
  QuantityKind tokens = QuantityKind::kTokens;
  QuantityKind pairs = QuantityKind::kHalfPairs;
  bool input_needs_gradient = true;
  bool cross_attention = false;
  bool source_needs_gradient = true;  ///< of cross attention
  std::int64_t source_hidden = 0;     ///< width of what is attended to; 0: hidden
};
bool AddLayerStack(const TransformerDescription& description, const StackOptions& options,
                   TermBuilder* builder);

/// Embedding, its projections and its parameters. Says whether it trains.
bool AddEmbedding(const TransformerDescription& description, TermBuilder* builder);
/// Logits, pooler and classifier; `below` says whether something under them trains.
void AddHead(const TransformerDescription& description, bool below, TermBuilder* builder);
/// Norms at the end, biases and whatever else is no matrix multiplication.
void AddMinorParameters(const TransformerDescription& description, TermBuilder* builder);

/// The description with defaults filled in and the convention's shape switches applied.
TransformerDescription Normalize(const TransformerDescription& description,
                                 const FlopConvention& convention);

}  // namespace flopledger::flops
