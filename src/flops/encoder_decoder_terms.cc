#include <utility>

#include "family_terms.h"
#include "findings.h"

namespace flopledger::flops {

Result<void> Validate(const EncoderDecoderDescription& description) {
  TransformerDescription encoder = description.encoder;
  encoder.language_model_head = false;
  for (const auto& [side, part] : {std::pair{"encoder", &std::as_const(encoder)},
                                   std::pair{"decoder", &description.decoder}}) {
    Result<void> valid = Validate(*part);
    if (!valid.has_value()) {
      return InvalidArgument(std::string(side) + ": " + valid.error().message());
    }
    if (part->latent_attention.has_value()) {
      return InvalidArgument(std::string(side) +
                             ": latent attention is not counted beside cross attention");
    }
  }
  return {};
}

Result<TermList> CompileEncoderDecoder(const EncoderDecoderDescription& description,
                                       const FlopConvention& convention) {
  const TransformerDescription encoder = Normalize(description.encoder, convention);
  const TransformerDescription decoder = Normalize(description.decoder, convention);
  TermBuilder builder(convention);
  StackOptions source;
  source.part_prefix = "encoder";
  source.tokens = QuantityKind::kSourceTokens;
  source.pairs = QuantityKind::kSourceHalfPairs;
  source.input_needs_gradient = encoder.trainable.embedding && encoder.trainable.frozen_layers == 0;
  if (!description.shared_embedding) {
    const Exact table = Exact(encoder.vocabulary) * encoder.hidden;
    builder.Parameters(table, table);
  }
  const bool encoded = AddLayerStack(encoder, source, &builder) || encoder.trainable.norms;

  StackOptions target;
  target.part_prefix = "decoder";
  target.cross_attention = true;
  target.source_needs_gradient = encoded;
  target.source_hidden = encoder.hidden;
  target.input_needs_gradient = AddEmbedding(decoder, &builder);
  // The first layer's cross attention already mixes in what the encoder trained.
  const bool decoded = AddLayerStack(decoder, target, &builder) || encoded;
  AddHead(decoder, decoded, &builder);
  AddMinorParameters(encoder, &builder);
  AddMinorParameters(decoder, &builder);
  return builder.Finish(decoder.parameters,
                        decoder.tied_embeddings ? 0 : decoder.vocabulary * decoder.hidden);
}

}  // namespace flopledger::flops
