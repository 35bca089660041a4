#include "flopledger/peak_table.h"

#include <algorithm>
#include <array>
#include <utility>

#include "number_text.h"
#include "peak_data.h"

namespace flopledger {
namespace {

std::string Upper(std::string_view text) {
  std::string upper;
  for (char c : text) {
    upper.push_back(c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c);
  }
  return upper;
}

/// Words of a device name in upper case, without the vendor's: `{H100, 80GB, HBM3}`.
std::vector<std::string> Words(std::string_view name) {
  std::vector<std::string> words;
  std::string word;
  const std::string text = Upper(name) + " ";
  for (char c : text) {
    if (c != ' ' && c != '-' && c != '_' && c != '/') {
      word.push_back(c);
      continue;
    }
    if (!word.empty() && word != "NVIDIA" && word != "TESLA") words.push_back(word);
    word.clear();
  }
  return words;
}

std::string Label(const PeakSku& sku) {
  std::string label(sku.sku);
  if (label.find(sku.form_factor) == std::string::npos) {
    label += " (" + std::string(sku.form_factor) + ")";
  }
  return label;
}

std::string ListLabels(const std::vector<const PeakSku*>& skus) {
  std::string text;
  for (const PeakSku* sku : skus) text += (text.empty() ? "" : ", ") + Label(*sku);
  return text;
}

std::string Hex(std::uint16_t id) { return "0x" + flops::HexText(id, 4); }

/// `SXM` means any SXM generation; `PCIe` is written in many ways.
bool FormFactorFits(std::string_view wanted, const PeakSku& sku) {
  return Upper(sku.form_factor).find(Upper(wanted)) != std::string::npos;
}

bool NameDecides(const std::vector<std::string>& words, const PeakSku& sku) {
  return std::any_of(sku.names.begin(), sku.names.end(), [&words](std::string_view name) {
    return !name.empty() && Words(name) == words;
  });
}

/// All words of the name belong to the part, which does not decide: `H100` alone.
bool NameFits(const std::vector<std::string>& words, const PeakSku& sku) {
  std::vector<std::string> own = Words(sku.sku);
  for (std::string_view name : sku.names) {
    for (std::string& word : Words(name)) own.push_back(std::move(word));
  }
  for (std::string& word : Words(sku.form_factor)) own.push_back(std::move(word));
  return std::all_of(words.begin(), words.end(), [&own](const std::string& word) {
    return std::find(own.begin(), own.end(), word) != own.end();
  });
}

template <typename Predicate>
std::vector<const PeakSku*> Select(Predicate fits) {
  std::vector<const PeakSku*> selected;
  for (const PeakSku* sku : ListPeaks()) {
    if (fits(*sku)) selected.push_back(sku);
  }
  return selected;
}

std::string NameOf(const DeviceIdentity& device) {
  return device.name.empty() ? "the device" : "'" + device.name + "'";
}

Result<const PeakSku*> Decide(const DeviceIdentity& device,
                              const std::vector<const PeakSku*>& fitting, std::string_view by,
                              std::vector<std::string>* reasoning) {
  if (fitting.size() == 1) {
    reasoning->push_back(std::string(by) + " is that of " + Label(*fitting.front()));
    return fitting.front();
  }
  return InvalidArgument(NameOf(device) + " is ambiguous by " + std::string(by) +
                         "; candidates: " + ListLabels(fitting) +
                         "; give the PCI device id, or SM count and form factor");
}

Result<const PeakSku*> FindByName(const DeviceIdentity& device,
                                  std::vector<std::string>* reasoning) {
  const std::vector<std::string> words = Words(device.name);
  if (words.empty()) {
    return InvalidArgument(
        "nothing identifies the device; give a PCI device id, SM count and form factor, or a name");
  }
  std::vector<const PeakSku*> fitting =
      Select([&words](const PeakSku& sku) { return NameDecides(words, sku); });
  if (fitting.empty()) {
    fitting = Select([&words](const PeakSku& sku) { return NameFits(words, sku); });
    if (fitting.size() == 1 && words.front() != Words(fitting.front()->sku).front()) {
      fitting.clear();  // a memory size or a form factor alone names no part
    }
  }
  if (!device.form_factor.empty()) {
    std::erase_if(fitting, [&device](const PeakSku* sku) {
      return !FormFactorFits(device.form_factor, *sku);
    });
  }
  if (fitting.empty()) {
    return Fail(StatusCode::kNotFound,
                "no peak is known for " + NameOf(device) +
                    "; none is guessed. Give one with its source, or see 'flopledger peaks'");
  }
  return Decide(device, fitting, "name '" + device.name + "'", reasoning);
}

Result<const PeakSku*> FindSku(const DeviceIdentity& device, std::vector<std::string>* reasoning) {
  if (device.pci_device_id.has_value()) {
    const std::uint16_t id = *device.pci_device_id;
    const std::vector<const PeakSku*> fitting = Select([id](const PeakSku& sku) {
      return id != 0 && std::find(sku.pci_device_ids.begin(), sku.pci_device_ids.end(), id) !=
                            sku.pci_device_ids.end();
    });
    if (!fitting.empty()) return Decide(device, fitting, "PCI device id " + Hex(id), reasoning);
    reasoning->push_back("PCI device id " + Hex(id) + " is not in the table");
  }
  if (device.sm_count > 0 && !device.form_factor.empty()) {
    const std::vector<std::string> words = Words(device.name);
    const std::vector<const PeakSku*> fitting = Select([&](const PeakSku& sku) {
      return sku.sm_count == device.sm_count && FormFactorFits(device.form_factor, sku) &&
             (device.compute_capability == 0 ||
              sku.compute_capability == device.compute_capability) &&
             (words.empty() || NameDecides(words, sku) || NameFits(words, sku));
    });
    const std::string by =
        std::to_string(device.sm_count) + " SMs and form factor " + device.form_factor;
    if (!fitting.empty()) return Decide(device, fitting, by, reasoning);
    return Fail(StatusCode::kNotFound,
                "no peak is known for " + NameOf(device) + " with " + by + "; none is guessed");
  }
  return FindByName(device, reasoning);
}

ModeRate RateOf(const PeakSku& sku, const PeakMode& mode) {
  switch (mode.dtype) {
    case DType::kFloat64:
      return sku.fp64_tensor.dense_tflops > 0 ? sku.fp64_tensor : sku.fp64;
    case DType::kFloat32:
      return sku.fp32;
    case DType::kTf32:
      return sku.tf32;
    case DType::kFloat16:
      return mode.fp16_accumulate ? sku.fp16_fp16_accumulate : sku.fp16;
    case DType::kBfloat16:
      return sku.bf16;
    case DType::kFloat8:
      return sku.fp8;
    case DType::kFloat4:
      return sku.fp4;
    case DType::kInt8:
      return sku.int8;
    case DType::kOther:
      return {};
  }
  return {};
}

Result<void> CheckConsistency(const DeviceIdentity& device, const PeakSku& sku) {
  const std::string label = Label(sku);
  if (device.sm_count > 0 && device.sm_count != sku.sm_count) {
    return InvalidArgument(NameOf(device) + " reports " + std::to_string(device.sm_count) +
                           " SMs, " + label + " has " + std::to_string(sku.sm_count) +
                           "; another part, or a MIG slice (give slice_sm_count)");
  }
  if (device.compute_capability > 0 && device.compute_capability != sku.compute_capability) {
    return InvalidArgument(NameOf(device) + " reports compute capability " +
                           std::to_string(device.compute_capability) + ", " + label + " has " +
                           std::to_string(sku.compute_capability));
  }
  if (!device.form_factor.empty() && !FormFactorFits(device.form_factor, sku)) {
    return InvalidArgument(NameOf(device) + " is said to be " + device.form_factor +
                           ", but it is " + label);
  }
  if (device.slice_sm_count < 0 || device.slice_sm_count > sku.sm_count) {
    return InvalidArgument("slice_sm_count is " + std::to_string(device.slice_sm_count) +
                           "; accepted: 1 to " + std::to_string(sku.sm_count));
  }
  return {};
}

}  // namespace

std::vector<const PeakSku*> ListPeaks() {
  std::vector<const PeakSku*> skus;
  for (const PeakSku& sku : flops::PeaksVoltaToAda()) skus.push_back(&sku);
  for (const PeakSku& sku : flops::PeaksHopperAndBlackwell()) skus.push_back(&sku);
  return skus;
}

Result<PeakAnswer> LookUpPeak(const DeviceIdentity& device, const PeakMode& mode) {
  PeakAnswer answer;
  Result<const PeakSku*> found = FindSku(device, &answer.reasoning);
  if (!found.has_value()) return tl::unexpected(found.error());
  const PeakSku& sku = **found;
  if (Result<void> fits = CheckConsistency(device, sku); !fits.has_value()) {
    return tl::unexpected(fits.error());
  }
  const ModeRate rates = RateOf(sku, mode);
  double tflops = mode.sparse ? rates.sparse_tflops : rates.dense_tflops;
  const std::string mode_name = std::string(ToString(mode.dtype)) +
                                (mode.sparse ? ", 2:4 sparse" : ", dense") +
                                (mode.fp16_accumulate ? ", fp16 accumulate" : "");
  if (tflops <= 0) {
    return Fail(StatusCode::kNotFound, Label(sku) + " has no " + mode_name +
                                           " matmul mode with a known peak; none is guessed");
  }
  const std::string shown = flops::ShortestText(tflops) + " TFLOP/s";
  answer.reasoning.push_back("its " + mode_name + " rate is " + shown + " (" +
                             std::string(sku.source) + "; " + std::string(ToString(sku.evidence)) +
                             ")");
  if (sku.contested) answer.reasoning.emplace_back("contested: sources disagree on this part");
  if (!sku.caution.empty()) answer.reasoning.push_back("caution: " + std::string(sku.caution));
  if (device.slice_sm_count > 0) {
    tflops = tflops * device.slice_sm_count / sku.sm_count;
    answer.reasoning.push_back("a slice of " + std::to_string(device.slice_sm_count) + " of " +
                               std::to_string(sku.sm_count) + " SMs has that share of it");
  }
  std::string source(sku.source);
  if (sku.contested) source += " (contested)";
  answer.sku = &sku;
  answer.peak = {.device_model = Label(sku),
                 .dtype = mode.dtype,
                 .sparse = mode.sparse,
                 .rate = FlopsPerSecond(tflops * 1e12),
                 .source = source,
                 .evidence = sku.evidence};
  return answer;
}

Result<PeakRate> MakeUserPeak(std::string_view device_model, DType dtype, std::string_view rate,
                              std::string_view source) {
  Result<FlopsPerSecond> parsed = ParsePeakRate(rate);
  if (!parsed.has_value()) return tl::unexpected(parsed.error());
  if (source.find_first_not_of(" \t") == std::string_view::npos) {
    return InvalidArgument("the peak " + std::string(rate) +
                           " has no source; say where the figure is from");
  }
  return PeakRate{.device_model = std::string(device_model),
                  .dtype = dtype,
                  .rate = *parsed,
                  .source = std::string(source),
                  .evidence = PeakEvidence::kUser};
}

}  // namespace flopledger
