#include <array>
#include <optional>
#include <string>
#include <vector>

#include "config_reader.h"
#include "flopledger/model_flops.h"
#include "hf_families.h"

namespace flopledger {
namespace {

using flops::ConfigReader;
using flops::HfFamily;

std::array<std::span<const HfFamily>, 4> AllFamilies() {
  return {flops::HfClassicFamilies(), flops::HfLlamaFamilies(), flops::HfExpertFamilies(),
          flops::HfEncoderFamilies()};
}

struct WholeModel {
  std::string_view model_type;
  Result<ModelFlops> (*read)(ConfigReader&);
};
constexpr std::array kWholeModels = {WholeModel{"t5", &flops::ReadT5},
                                     WholeModel{"vit", &flops::ReadVit}};

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
  for (const WholeModel& whole : kWholeModels) known += ", " + std::string(whole.model_type);
  // A hostile name is not repeated at length.
  return Fail(StatusCode::kUnsupported, "model_type '" + std::string(model_type.substr(0, 64)) +
                                            "' is not known; known: " + known);
}

Result<ModelFlops> ReadFamily(const HfFamily& family, ConfigReader& config) {
  const TransformerDescription description = family.read(config);
  Result<void> read = config.Verdict();
  if (!read.has_value()) return tl::unexpected(read.error());
  Result<ModelFlops> model = ModelFlops::FromTransformer(description);
  if (!model.has_value()) {
    return Fail(model.error().code(), "config.json of a " + std::string(family.model_type) + ": " +
                                          model.error().message());
  }
  return model;
}

/// The text part of a multimodal configuration, if there is one that is known.
std::optional<ConfigReader> TextPart(const ConfigReader& config) {
  for (std::string_view name : {"text_config", "llm_config", "language_config"}) {
    std::optional<ConfigReader> section = config.Section(name);
    if (section.has_value()) return section;
  }
  return std::nullopt;
}

}  // namespace

Result<ModelFlops> ModelFlops::FromHfConfig(std::string_view json) {
  Result<ConfigReader> config = ConfigReader::Create(json);
  if (!config.has_value()) return tl::unexpected(config.error());
  std::optional<ConfigReader> section;
  ConfigReader* reader = &*config;
  std::optional<std::string> model_type = reader->Text("model_type");
  if (model_type.has_value() && FindFamily(*model_type) == nullptr) {
    section = TextPart(*config);
    if (section.has_value()) {
      reader = &*section;
      model_type = reader->Text("model_type");
    }
  }
  if (!model_type.has_value()) {
    return InvalidArgument("config.json: missing model_type (a string such as 'llama')");
  }
  for (const WholeModel& whole : kWholeModels) {
    if (whole.model_type == *model_type) return whole.read(*reader);
  }
  const HfFamily* family = FindFamily(*model_type);
  if (family == nullptr) return UnknownFamily(*model_type);
  return ReadFamily(*family, *reader);
}

}  // namespace flopledger
