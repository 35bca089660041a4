#include <fstream>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "commands.h"
#include "flopledger/explain.h"

namespace flopledger::cli {
namespace {

struct ExplainOptions {
  std::string config_path;
  std::string formula;
  std::vector<std::string> variables;
  std::int64_t batch = 1;
  std::int64_t length = 0;
  std::int64_t source_length = 0;
  std::int64_t context = 0;
  std::int64_t samples = 0;
  bool forward_only = false;
  bool last_logits = false;
  std::string convention = "house";
  std::string against;
  bool json = false;
  bool list = false;
};

int Fault(const Status& status, int exit_code = kBadInput) {
  std::cerr << "flopledger: " << status.message() << "\n";
  return exit_code;
}

Result<ModelFlops> ReadModel(const ExplainOptions& options) {
  if (!options.formula.empty()) {
    FormulaVariables variables;
    for (const std::string& text : options.variables) {
      const std::size_t equals = text.find('=');
      Result<Int128> value = equals == std::string::npos
                                 ? ParseInt128("")
                                 : ParseInt128(std::string_view(text).substr(equals + 1));
      if (!value.has_value()) {
        return InvalidArgument("--variable is '" + text + "'; accepted: NAME=INTEGER");
      }
      variables[text.substr(0, equals)] = *value;
    }
    return ModelFlops::FromFormula(options.formula, variables);
  }
  std::ifstream file(options.config_path, std::ios::binary);
  std::ostringstream content;
  if (file) content << file.rdbuf();
  if (!file || file.bad()) return InvalidArgument("cannot read '" + options.config_path + "'");
  Result<ModelFlops> model = ModelFlops::FromHfConfig(content.str());
  if (!model.has_value()) {
    return Fail(model.error().code(), options.config_path + ": " + model.error().message());
  }
  return model;
}

nlohmann::ordered_json ToJson(const Explanation& explanation) {
  nlohmann::ordered_json document;
  document["model"] = explanation.model;
  document["convention"] = explanation.convention.name;
  document["convention_hash"] = std::to_string(explanation.convention.hash);
  // Whole FLOPs as texts: JSON numbers end at 2^53 for many readers.
  document["forward_flops"] = explanation.work.forward.ToString();
  document["backward_flops"] = explanation.work.backward.ToString();
  document["total_flops"] = (explanation.work.forward + explanation.work.backward).ToString();
  document["approximate"] = explanation.work.approximate;
  if (explanation.size.parameters > 0) {
    document["parameters"] = ToString(explanation.size.parameters);
    document["active_parameters"] = ToString(explanation.size.active_parameters);
  }
  if (explanation.rule_of_thumb_error.has_value()) {
    document["rule_of_thumb_error_ratio"] = *explanation.rule_of_thumb_error;
  }
  document["parts"] = nlohmann::ordered_json::array();
  for (const DeclaredPart& part : explanation.work.parts) {
    document["parts"].push_back({{"name", part.name},
                                 {"forward_flops", part.forward.ToString()},
                                 {"backward_input_flops", part.backward_input.ToString()},
                                 {"backward_weight_flops", part.backward_weight.ToString()}});
  }
  return document;
}

nlohmann::ordered_json ToJson(const ConventionComparison& comparison) {
  nlohmann::ordered_json document;
  document["convention"] = comparison.first.name;
  document["against"] = comparison.second.name;
  document["total_flops"] = comparison.first_total.ToString();
  document["against_total_flops"] = comparison.second_total.ToString();
  document["switches"] = nlohmann::ordered_json::array();
  for (const SwitchDifference& difference : comparison.switches) {
    document["switches"].push_back({{"name", difference.name},
                                    {"from", difference.from},
                                    {"to", difference.to},
                                    {"change_flops", difference.change.ToString()}});
  }
  return document;
}

int ListConventions() {
  for (const NamedConvention& known : KnownConventions()) {
    std::string name(known.name);
    name.resize(std::max<std::size_t>(name.size() + 2, 28), ' ');
    std::cout << name << known.used_by << "\n";
  }
  std::cout << "\nSwitches, on top of a name (house,router=out):\n";
  for (const ConventionSwitch& item : ListSwitches(FlopConvention{})) {
    std::cout << "  " << item.name << "=" << item.value << "\n";
  }
  return kOk;
}

int RunExplain(const ExplainOptions& options) {
  if (options.list) return ListConventions();
  if (options.config_path.empty() == options.formula.empty()) {
    std::cerr << "flopledger: give either --config or --formula\n";
    return kUsage;
  }
  Result<FlopConvention> convention = FindConvention(options.convention);
  if (!convention.has_value()) return Fault(convention.error(), kUsage);
  Result<ModelFlops> model = ReadModel(options);
  if (!model.has_value()) return Fault(model.error());
  Workload workload{.samples = options.samples};
  if (options.length > 0) {
    workload.sequences = {{.length = options.length,
                           .count = options.batch,
                           .context = options.context,
                           .source_length = options.source_length}};
  }
  if (options.forward_only) workload.passes = Passes::kForwardOnly;
  if (options.last_logits) workload.logits = LogitRows::kLastOfEachSequence;
  if (options.length == 0 && options.samples == 0) {
    std::cerr << "flopledger: give --seq (tokens of a sequence) or --samples; a length is never "
                 "taken from the configuration's maximum\n";
    return kUsage;
  }
  if (!options.against.empty()) {
    Result<FlopConvention> against = FindConvention(options.against);
    if (!against.has_value()) return Fault(against.error(), kUsage);
    Result<ConventionComparison> comparison =
        CompareConventions(*model, workload, *convention, *against);
    if (!comparison.has_value()) return Fault(comparison.error());
    std::cout << (options.json ? ToJson(*comparison).dump(1) + "\n" : WriteText(*comparison));
    return kOk;
  }
  Result<Explanation> explanation = Explain(*model, workload, *convention);
  if (!explanation.has_value()) return Fault(explanation.error());
  std::cout << (options.json ? ToJson(*explanation).dump(1) + "\n" : WriteText(*explanation));
  return kOk;
}

}  // namespace

void AddExplainCommand(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<ExplainOptions>();
  CLI::App* command = AddCommand(
      app, "explain", "Prints how declared FLOPs come about; splits two conventions by switch.",
      "  flopledger explain --config config.json --batch 8 --seq 4096\n"
      "  flopledger explain --config config.json --seq 8192 --convention house --against MEGATRON\n"
      "  flopledger explain --formula '6*N*T' --variable N=8030261248 --seq 4096\n"
      "  flopledger explain --conventions");
  command->add_option("--config", options->config_path, "a model's config.json");
  command->add_option("--formula", options->formula,
                      "training FLOPs of a sequence of T = S tokens, or of B samples");
  command->add_option("--variable", options->variables, "NAME=INTEGER of the formula, repeatable");
  command->add_option("--batch", options->batch, "sequences")->check(CLI::NonNegativeNumber);
  command->add_option("--seq", options->length, "tokens of one sequence")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--source-seq", options->source_length, "tokens of its encoder side")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--context", options->context, "tokens already cached before it")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--samples", options->samples, "images or other samples")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("--forward-only", options->forward_only, "no backward pass");
  command->add_flag("--last-logits", options->last_logits, "logits of the last token only");
  command->add_option("--convention", options->convention, "name, or name,switch=value,...")
      ->capture_default_str();
  command->add_option("--against", options->against, "a second convention to compare with");
  command->add_flag("--conventions", options->list, "list the conventions that are known");
  command->add_flag("--json", options->json, "one object for programs");
  command->callback([options, exit_code] { *exit_code = RunExplain(*options); });
}

}  // namespace flopledger::cli
