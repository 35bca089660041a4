#include <charconv>
#include <cstdio>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "commands.h"
#include "flopledger/peak_table.h"

namespace flopledger::cli {
namespace {

struct PeaksOptions {
  DeviceIdentity device;
  std::string pci_id;
  std::string dtype = "bf16";
  bool sparse = false;
  bool fp16_accumulate = false;
  bool json = false;
};

std::string Rate(double tflops) {
  if (tflops <= 0) return "-";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%g", tflops);
  return text.data();
}

void PrintRow(const std::vector<std::string>& cells) {
  constexpr std::array<int, 11> kWidths = {27, 14, 5, 7, 8, 8, 8, 8, 8, 8, 13};
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const int width = i < kWidths.size() ? kWidths[i] : 0;
    std::cout << cells[i];
    for (std::size_t n = cells[i].size(); n < static_cast<std::size_t>(width); ++n) {
      std::cout << ' ';
    }
  }
  std::cout << "\n";
}

int ListAll(bool json) {
  if (json) {
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const PeakSku* sku : ListPeaks()) {
      nlohmann::ordered_json entry;
      entry["sku"] = sku->sku;
      entry["form_factor"] = sku->form_factor;
      entry["sm_count"] = sku->sm_count;
      entry["source"] = sku->source;
      entry["evidence"] = ToString(sku->evidence);
      entry["contested"] = sku->contested;
      for (const auto& [name, rate] :
           {std::pair{"fp64", sku->fp64}, std::pair{"fp64_tensor", sku->fp64_tensor},
            std::pair{"fp32", sku->fp32}, std::pair{"tf32", sku->tf32},
            std::pair{"fp16", sku->fp16},
            std::pair{"fp16_fp16_accumulate", sku->fp16_fp16_accumulate},
            std::pair{"bf16", sku->bf16}, std::pair{"fp8", sku->fp8}, std::pair{"int8", sku->int8},
            std::pair{"fp4", sku->fp4}}) {
        if (rate.dense_tflops > 0) entry[std::string(name) + "_dense_tflops"] = rate.dense_tflops;
        if (rate.sparse_tflops > 0) {
          entry[std::string(name) + "_sparse_tflops"] = rate.sparse_tflops;
        }
      }
      list.push_back(std::move(entry));
    }
    std::cout << list.dump(1) << "\n";
    return kOk;
  }
  PrintRow({"part", "form factor", "SMs", "MHz", "fp64", "fp32", "tf32", "bf16", "fp16", "fp8",
            "evidence", "source"});
  for (const PeakSku* sku : ListPeaks()) {
    const double fp64 = std::max(sku->fp64.dense_tflops, sku->fp64_tensor.dense_tflops);
    PrintRow({std::string(sku->sku), std::string(sku->form_factor), std::to_string(sku->sm_count),
              Rate(sku->tensor_clock_mhz), Rate(fp64), Rate(sku->fp32.dense_tflops),
              Rate(sku->tf32.dense_tflops), Rate(sku->bf16.dense_tflops),
              Rate(sku->fp16.dense_tflops), Rate(sku->fp8.dense_tflops),
              std::string(ToString(sku->evidence)),
              std::string(sku->source) + (sku->contested ? " (contested)" : "")});
  }
  std::cout << "Dense TFLOP/s with fp32 accumulation. '-': no such mode, or no value is known.\n";
  return kOk;
}

int Refuse(const Status& status, bool json) {
  if (json) {
    nlohmann::ordered_json document;
    document["error"] = status.message();
    document["code"] = ToString(status.code());
    std::cout << document.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) << "\n";
  } else {
    std::cerr << "flopledger: " << status.message() << "\n";
  }
  return kFinding;
}

int RunPeaks(const PeaksOptions& options) {
  DeviceIdentity device = options.device;
  if (!options.pci_id.empty()) {
    std::string_view digits = options.pci_id;
    if (digits.substr(0, 2) == "0x" || digits.substr(0, 2) == "0X") digits.remove_prefix(2);
    std::uint16_t id = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), id, 16);
    if (error != std::errc() || end != digits.data() + digits.size()) {
      std::cerr << "flopledger: --pci-id is '" << options.pci_id
                << "'; accepted: four hexadecimal digits, as in 0x2330\n";
      return kUsage;
    }
    device.pci_device_id = id;
  }
  const std::optional<DType> dtype = ParseDType(options.dtype);
  if (!dtype.has_value()) {
    std::cerr << "flopledger: --dtype is '" << options.dtype
              << "'; accepted: fp64, fp32, tf32, fp16, bf16, fp8, fp4, int8\n";
    return kUsage;
  }
  const bool asks = !device.name.empty() || device.pci_device_id.has_value() ||
                    device.sm_count > 0 || !device.form_factor.empty();
  if (!asks) return ListAll(options.json);
  Result<PeakAnswer> answer = LookUpPeak(
      device,
      {.dtype = *dtype, .sparse = options.sparse, .fp16_accumulate = options.fp16_accumulate});
  if (!answer.has_value()) return Refuse(answer.error(), options.json);
  if (options.json) {
    nlohmann::ordered_json document;
    document["device_model"] = answer->peak.device_model;
    document["dtype"] = ToString(answer->peak.dtype);
    document["sparse"] = answer->peak.sparse;
    document["flops_per_second"] = answer->peak.rate.value();
    document["source"] = answer->peak.source;
    document["evidence"] = ToString(answer->peak.evidence);
    document["contested"] = answer->sku->contested;
    document["reasoning"] = answer->reasoning;
    std::cout << document.dump(1) << "\n";
    return kOk;
  }
  std::cout << answer->peak.device_model << ": " << Rate(answer->peak.rate.value() / 1e12)
            << " TFLOP/s " << ToString(answer->peak.dtype)
            << (answer->peak.sparse ? " (2:4 sparse)" : " (dense)") << "\n";
  for (const std::string& step : answer->reasoning) std::cout << "  " << step << "\n";
  return kOk;
}

}  // namespace

void AddPeaksCommand(CLI::App& app, int* exit_code) {
  auto options = std::make_shared<PeaksOptions>();
  CLI::App* command = AddCommand(
      app, "peaks", "Lists sourced peak rates, or answers for one device with the reasoning.",
      "  flopledger peaks\n"
      "  flopledger peaks --device 'NVIDIA H100 PCIe'\n"
      "  flopledger peaks --pci-id 0x2330 --dtype fp8\n"
      "  flopledger peaks --pci-id 0x2330 --slice-sm-count 32");
  command->add_option("--device", options->device.name, "name of the device, as the driver says");
  command->add_option("--pci-id", options->pci_id, "PCI device id, in hexadecimal");
  command->add_option("--sm-count", options->device.sm_count, "multiprocessors of the device")
      ->check(CLI::PositiveNumber);
  command->add_option("--form-factor", options->device.form_factor, "SXM5, PCIe, ...");
  command
      ->add_option("--slice-sm-count", options->device.slice_sm_count,
                   "multiprocessors of a MIG slice")
      ->check(CLI::PositiveNumber);
  command->add_option("--dtype", options->dtype, "fp64, fp32, tf32, fp16, bf16, fp8, fp4, int8")
      ->capture_default_str();
  command->add_flag("--sparse", options->sparse, "the rate of 2:4 sparse operands");
  command->add_flag("--fp16-accumulate", options->fp16_accumulate,
                    "the fp16 rate with fp16 accumulation");
  command->add_flag("--json", options->json, "one object for programs");
  command->callback([options, exit_code] { *exit_code = RunPeaks(*options); });
}

}  // namespace flopledger::cli
