// Peaks in Python: the rate as a value, the sourced table, texts and names of dtypes.

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "bindings.h"
#include "flopledger/peak.h"
#include "flopledger/peak_table.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace flopledger {

[[noreturn]] void Raise(const Status& status) {
  switch (status.code()) {
    case StatusCode::kInvalidArgument:
      throw nb::value_error(status.message().c_str());
    case StatusCode::kNotFound:
      throw nb::key_error(status.message().c_str());
    case StatusCode::kOverflow:
      throw std::overflow_error(status.message());
    case StatusCode::kUnavailable:
      PyErr_SetString(PyExc_OSError, status.message().c_str());
      throw nb::python_error();
    default:
      throw std::runtime_error(std::string(ToString(status.code())) + ": " + status.message());
  }
}

DType DTypeOf(std::string_view name) {
  const std::optional<DType> dtype = ParseDType(name);
  if (dtype) return *dtype;
  std::string accepted;
  for (DType each : kAllDTypes)
    accepted += (accepted.empty() ? "" : ", ") + std::string(ToString(each));
  throw nb::value_error(("dtype is '" + std::string(name) + "'; accepted: " + accepted).c_str());
}

void BindPeak(nb::module_& module) {
  nb::class_<PeakRate>(module, "PeakRate")
      .def(
          "__init__",
          [](PeakRate* self, double flops_per_second, std::string_view dtype, std::string source,
             std::string device_model, bool measured, std::optional<double> spread_low,
             std::optional<double> spread_high) {
            new (self)
                PeakRate{.device_model = std::move(device_model),
                         .dtype = DTypeOf(dtype),
                         .sparse = false,
                         .rate = FlopsPerSecond(flops_per_second),
                         .source = std::move(source),
                         .evidence = measured ? PeakEvidence::kMeasured : PeakEvidence::kUser,
                         .spread_low_ratio = spread_low,
                         .spread_high_ratio = spread_high};
          },
          "flops_per_second"_a, "dtype"_a, "source"_a, "device_model"_a = "", "measured"_a = false,
          "spread_low"_a = nb::none(), "spread_high"_a = nb::none())
      .def_prop_ro("flops_per_second", [](const PeakRate& peak) { return peak.rate.value(); })
      .def_prop_ro("dtype", [](const PeakRate& peak) { return std::string(ToString(peak.dtype)); })
      .def_ro("source", &PeakRate::source)
      .def_ro("device_model", &PeakRate::device_model)
      .def_prop_ro("evidence",
                   [](const PeakRate& peak) { return std::string(ToString(peak.evidence)); })
      .def_ro("spread_low", &PeakRate::spread_low_ratio)
      .def_ro("spread_high", &PeakRate::spread_high_ratio);
  module.def(
      "parse_peak_rate", [](std::string_view text) { return Unwrap(ParsePeakRate(text)).value(); },
      "text"_a);
  module.def(
      "look_up_peak",
      [](std::string name, std::string_view dtype, bool sparse,
         std::optional<std::uint16_t> pci_device_id, int sm_count, std::string form_factor,
         int compute_capability) {
        const DeviceIdentity device{.name = std::move(name),
                                    .pci_device_id = pci_device_id,
                                    .sm_count = sm_count,
                                    .form_factor = std::move(form_factor),
                                    .compute_capability = compute_capability};
        return Unwrap(LookUpPeak(device, {.dtype = DTypeOf(dtype), .sparse = sparse})).peak;
      },
      "name"_a = "", "dtype"_a = "bf16", "sparse"_a = false, "pci_device_id"_a = nb::none(),
      "sm_count"_a = 0, "form_factor"_a = "", "compute_capability"_a = 0);
  module.def("dtypes", [] {
    std::vector<std::string> names;
    for (DType dtype : kAllDTypes) names.emplace_back(ToString(dtype));
    return names;
  });
  module.def("check_dtype",
             [](std::string_view name) { return std::string(ToString(DTypeOf(name))); });
}

}  // namespace flopledger
