#pragma once

#include <string>

#include "flopledger/convention.h"
#include "flopledger/families.h"
#include "flopledger/status.h"
#include "flopledger/workload.h"
#include "terms.h"
#include "transformer_terms.h"

namespace flopledger::flops {

// For each family: refusal of what is missing, and terms under a convention.

Result<void> Validate(const EncoderDecoderDescription& description);
Result<TermList> CompileEncoderDecoder(const EncoderDecoderDescription& description,
                                       const FlopConvention& convention);

Result<void> Validate(const VisionTransformerDescription& description);
Result<TermList> CompileVisionTransformer(const VisionTransformerDescription& description,
                                          const FlopConvention& convention);
/// Images as sequences of their patches.
Workload ExpandImages(const VisionTransformerDescription& description, const Workload& workload);

Result<void> Validate(const ConvNetDescription& description);
Result<TermList> CompileConvNet(const ConvNetDescription& description,
                                const FlopConvention& convention);

Result<void> Validate(const DiffusionTransformerDescription& description);
Result<TermList> CompileDiffusionTransformer(const DiffusionTransformerDescription& description,
                                             const FlopConvention& convention);

Result<void> Validate(const UNetDescription& description);
Result<TermList> CompileUNet(const UNetDescription& description, const FlopConvention& convention);

Result<void> Validate(const RecommenderDescription& description);
Result<TermList> CompileRecommender(const RecommenderDescription& description,
                                    const FlopConvention& convention);

class Findings;
void CheckConvolutions(const std::vector<ConvolutionLayer>& layers, Findings* findings);
void CheckDense(const std::vector<DenseLayer>& layers, Findings* findings);
/// Adds layers from the data upwards; `below` says whether something under them trains, and is
/// brought up to date.
void AddConvolutions(const std::vector<ConvolutionLayer>& layers, bool* below,
                     TermBuilder* builder);
void AddDense(std::string_view part, const std::vector<DenseLayer>& layers, bool* below,
              TermBuilder* builder);

}  // namespace flopledger::flops
