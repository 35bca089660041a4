#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flopledger/export.h"
#include "flopledger/peak.h"
#include "flopledger/status.h"

namespace flopledger {

/// TFLOP/s of one dtype (TOP/s of int8). 0: no such mode, or no value that is known.
struct ModeRate {
  double dense_tflops = 0;
  double sparse_tflops = 0;  ///< 2:4 structured; not always twice the dense rate
};

/// One part in one form factor, as its source prints it. Rates accumulate in fp32 unless said.
struct PeakSku {
  std::string_view sku;
  std::string_view form_factor;
  std::string_view architecture;
  int compute_capability = 0;  ///< 90 is 9.0
  int sm_count = 0;
  int tensor_clock_mhz = 0;                          ///< at which the tensor rates hold; 0: unknown
  std::array<std::uint16_t, 2> pci_device_ids = {};  ///< 0: none that is certain
  std::array<std::string_view, 3> names = {};        ///< whole device names, without the vendor
  ModeRate fp64 = {};
  ModeRate fp64_tensor = {};
  ModeRate fp32 = {};
  ModeRate tf32 = {};
  ModeRate fp16 = {};
  ModeRate fp16_fp16_accumulate = {};  ///< not for training
  ModeRate bf16 = {};
  ModeRate fp8 = {};
  ModeRate int8 = {};
  ModeRate fp4 = {};
  std::string_view source;
  PeakEvidence evidence = PeakEvidence::kUnconfirmed;
  bool contested = false;  ///< sources disagree
  std::string_view caution;
};

/// The whole table, in the order of the generations.
FLOPLEDGER_EXPORT std::vector<const PeakSku*> ListPeaks();

/// What is known of a device. A PCI device id decides; else SM count and form factor; else a whole
/// name, where it decides. Give what the driver says.
struct DeviceIdentity {
  std::string name = {};  ///< `NVIDIA H100 80GB HBM3`
  std::optional<std::uint16_t> pci_device_id = {};
  int sm_count = 0;              ///< of the whole device; 0: unknown
  std::string form_factor = {};  ///< `SXM5`, `PCIe`; empty: unknown
  int compute_capability = 0;    ///< 90; 0: unknown
  int slice_sm_count = 0;  ///< of a MIG slice, whose share of the peak is meant; 0: whole device
};

/// Which rate of a device is wanted.
struct PeakMode {
  DType dtype = DType::kBfloat16;
  bool sparse = false;
  bool fp16_accumulate = false;
};

/// A peak with what led to it.
struct PeakAnswer {
  PeakRate peak = {};
  const PeakSku* sku = nullptr;
  std::vector<std::string> reasoning = {};  ///< one sentence a step
};

/// Finds a peak. Never guesses.
///
///     auto peak = LookUpPeak({.name = "NVIDIA H100 PCIe"}, {.dtype = DType::kBfloat16});
///
/// Thread: pure. Fails: kNotFound if nothing in the table is this device, or the part has no such
/// mode; kInvalidArgument if several parts fit (all are named) or what is given contradicts itself.
FLOPLEDGER_EXPORT Result<PeakAnswer> LookUpPeak(const DeviceIdentity& device, const PeakMode& mode);

/// A user's own peak. Fails: kInvalidArgument for a rate that cannot be, or without a source.
FLOPLEDGER_EXPORT Result<PeakRate> MakeUserPeak(std::string_view device_model, DType dtype,
                                                std::string_view rate, std::string_view source);

}  // namespace flopledger
