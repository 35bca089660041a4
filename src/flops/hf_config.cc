#include <array>
#include <string>

#include "config_reader.h"
#include "flopledger/model_flops.h"
#include "hf_families.h"
#include "nearest.h"

namespace flopledger {
namespace {

using flops::ConfigReader;
using flops::HfFamily;

std::array<std::span<const HfFamily>, 2> AllFamilies() {
  return {flops::HfClassicFamilies(), flops::HfLlamaFamilies()};
}

const HfFamily* FindFamily(std::string_view model_type) {
  for (std::span<const HfFamily> families : AllFamilies()) {
    for (const HfFamily& family : families) {
      if (family.model_type == model_type) return &family;
    }
  }
  return nullptr;
}

tl::unexpected<Status> UnknownFamily(std::string_view model_type) {
  std::string known;
  for (std::span<const HfFamily> families : AllFamilies()) {
    for (const HfFamily& family : families) {
      known += (known.empty() ? "" : ", ") + std::string(family.model_type);
    }
  }
  return Fail(StatusCode::kUnsupported,
              "model_type '" + std::string(model_type) + "' is not known; known: " + known);
}

}  // namespace

Result<ModelFlops> ModelFlops::FromHfConfig(std::string_view json) {
  Result<ConfigReader> config = ConfigReader::Create(json);
  if (!config.has_value()) return tl::unexpected(config.error());
  const std::optional<std::string> model_type = config->Text("model_type");
  if (!model_type.has_value()) {
    return InvalidArgument("config.json: missing model_type (a string such as 'llama')");
  }
  const HfFamily* family = FindFamily(*model_type);
  if (family == nullptr) return UnknownFamily(*model_type);
  const TransformerDescription description = family->read(*config);
  Result<void> read = config->Verdict();
  if (!read.has_value()) return tl::unexpected(read.error());
  Result<ModelFlops> model = FromTransformer(description);
  if (!model.has_value()) {
    return InvalidArgument("config.json of a " + *model_type + ": " + model.error().message());
  }
  return model;
}

}  // namespace flopledger
