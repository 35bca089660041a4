// The Python shape of the session and of declared work. Names are snake_case; a failed `Result`
// becomes a Python exception; calls that may wait release the interpreter lock.

#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "flopledger/nvtx.h"
#include "flopledger/session.h"
#include "flopledger/version.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace flopledger {
namespace {

nb::int_ ToPython(Flops flops) {
  PyObject* value = PyLong_FromString(flops.ToString().c_str(), nullptr, 10);
  if (value == nullptr) throw nb::python_error();
  return nb::steal<nb::int_>(value);
}

Flops FromPython(const nb::int_& value, const char* name) {
  const std::string text = nb::cast<std::string>(nb::str(value));
  Result<Int128> parsed = ParseInt128(text);
  if (!parsed) throw std::overflow_error(std::string(name) + ": " + parsed.error().message());
  return Flops::FromInteger(*parsed);
}

Phase PhaseOf(std::string_view name) {
  std::string accepted;
  for (std::size_t i = 0; i < kPhaseCount; ++i) {
    const std::string_view each = ToString(static_cast<Phase>(i));
    if (each == name) return static_cast<Phase>(i);
    accepted += (accepted.empty() ? "" : ", ") + std::string(each);
  }
  throw nb::value_error(("section is '" + std::string(name) + "'; accepted: " + accepted).c_str());
}

/// One step's figures with all their digits.
nb::dict ReportToDict(const StepReport& report) {
  nb::dict dict;
  dict["step"] = report.step;
  dict["result"] = std::string(ToString(report.result));
  dict["closed_by"] = report.closed_by;
  dict["boundary"] = std::string(ToString(report.boundary));
  dict["wall_ns"] = report.wall.ns();
  dict["useful_tokens"] = report.tokens.useful;
  dict["padded_tokens"] = report.tokens.padded;
  dict["executed_flops"] = ToPython(report.executed.total);
  dict["recomputed_flops"] = ToPython(report.executed.recomputed);
  dict["auxiliary_flops"] = ToPython(report.executed.auxiliary);
  dict["excess_flops"] = ToPython(report.executed.excess);
  nb::dict excess;
  for (const ExcessPart& part : report.executed.excess_parts) {
    excess[part.cause.c_str()] = ToPython(part.flops);
  }
  dict["excess_by_cause"] = excess;
  if (report.declared) {
    dict["useful_flops"] = ToPython(report.declared->useful());
    dict["useful_forward_flops"] = ToPython(report.declared->useful_forward);
    dict["useful_backward_flops"] = ToPython(report.declared->useful_backward);
    dict["padding_flops"] = ToPython(report.declared->padding);
  }
  if (report.unexplained) dict["unexplained_flops"] = ToPython(*report.unexplained);
  dict["mfu_refusal"] = std::string(ToString(report.utilization.mfu_refusal));
  dict["hfu_refusal"] = std::string(ToString(report.utilization.hfu_refusal));
  if (report.utilization.mfu_ratio) dict["mfu"] = *report.utilization.mfu_ratio;
  if (report.utilization.hfu_low_ratio) dict["hfu_low"] = *report.utilization.hfu_low_ratio;
  if (report.utilization.hfu_high_ratio) dict["hfu_high"] = *report.utilization.hfu_high_ratio;
  if (report.coverage.time_ratio) dict["coverage_time"] = *report.coverage.time_ratio;
  if (report.coverage.launch_ratio) dict["coverage_launches"] = *report.coverage.launch_ratio;
  nb::list gaps;
  for (const CoverageGap& gap : report.gaps) {
    nb::dict entry;
    entry["name"] = gap.name;
    entry["reason"] = std::string(ToString(gap.reason));
    entry["launches"] = gap.launches;
    entry["time_ns"] = gap.time.ns();
    gaps.append(entry);
  }
  dict["gaps"] = gaps;
  nb::list findings;
  for (const Finding& finding : report.findings) {
    nb::dict entry;
    entry["id"] = finding.id;
    entry["ratio"] = finding.ratio;
    entry["suspect"] = finding.suspect;
    findings.append(entry);
  }
  dict["findings"] = findings;
  dict["late_records"] = report.late_records;
  return dict;
}

void BindModelFlops(nb::module_& module) {
  nb::class_<ModelFlops>(module, "ModelFlops")
      .def_static(
          "from_hf_config",
          [](std::string_view json) { return Unwrap(ModelFlops::FromHfConfig(json)); }, "json"_a)
      .def_static(
          "from_transformer",
          [](const TransformerDescription& description) {
            return Unwrap(ModelFlops::FromTransformer(description));
          },
          "description"_a)
      .def_static(
          "from_formula",
          [](std::string_view text, const std::map<std::string, nb::int_>& variables) {
            FormulaVariables values;
            for (const auto& [name, value] : variables) {
              values[name] = FromPython(value, name.c_str()).count();
            }
            return Unwrap(ModelFlops::FromFormula(text, values));
          },
          "text"_a, "variables"_a)
      .def_prop_ro("parameters",
                   [](const ModelFlops& model) {
                     return ToPython(Flops::FromInteger(model.Size().parameters));
                   })
      .def("describe", &ModelFlops::Describe)
      .def("needs_sequence_lengths", &ModelFlops::NeedsSequenceLengths)
      .def(
          "evaluate",
          [](const ModelFlops& model,
             const std::vector<std::pair<std::int64_t, std::int64_t>>& sequences) {
            Workload workload;
            for (const auto& [length, count] : sequences) {
              workload.sequences.push_back({.length = length, .count = count});
            }
            const DeclaredWork work = Unwrap(model.Evaluate(workload));
            return nb::make_tuple(ToPython(work.forward), ToPython(work.backward));
          },
          "sequences"_a)
      .def("__repr__", [](const ModelFlops& model) { return "<" + model.Describe() + ">"; });

  nb::class_<TransformerDescription>(module, "TransformerDescription")
      .def(nb::init<>())
      .def_rw("layers", &TransformerDescription::layers)
      .def_rw("hidden", &TransformerDescription::hidden)
      .def_rw("query_heads", &TransformerDescription::query_heads)
      .def_rw("key_value_heads", &TransformerDescription::key_value_heads)
      .def_rw("head_dim", &TransformerDescription::head_dim)
      .def_rw("ffn", &TransformerDescription::ffn)
      .def_rw("gated_ffn", &TransformerDescription::gated_ffn)
      .def_rw("vocabulary", &TransformerDescription::vocabulary)
      .def_rw("tied_embeddings", &TransformerDescription::tied_embeddings)
      .def_rw("causal", &TransformerDescription::causal)
      .def_rw("window", &TransformerDescription::window);
}

/// Options own sinks and cannot be copied, which the binding library must be able to see.
struct BoundOptions : SessionOptions {
  BoundOptions() = default;
  BoundOptions(const BoundOptions&) = delete;
};

void BindOptions(nb::module_& module) {
  nb::class_<BoundOptions>(module, "SessionOptions")
      .def(nb::init<>())
      .def_prop_rw(
          "run_id", [](const BoundOptions& o) { return o.identity.run_id; },
          [](BoundOptions& o, std::string value) { o.identity.run_id = std::move(value); })
      .def("set_rank",
           [](BoundOptions& o, int rank, int local_rank, int world_size, std::string source) {
             o.identity.rank = rank;
             o.identity.local_rank = local_rank;
             o.identity.world_size = world_size;
             o.identity.rank_source = std::move(source);
           })
      .def("set_model", [](BoundOptions& o, const ModelFlops& model) { o.model = model; })
      .def("add_peak", [](BoundOptions& o, const PeakRate& peak) { o.peaks.push_back(peak); })
      .def_prop_rw(
          "dtype", [](const BoundOptions& o) { return std::string(ToString(o.dtype)); },
          [](BoundOptions& o, std::string_view name) { o.dtype = DTypeOf(name); })
      .def_rw("device_count", &SessionOptions::device_count)
      .def_rw("sequence_length", &SessionOptions::sequence_length)
      .def_rw("warmup_steps", &SessionOptions::warmup_steps)
      .def_rw("window_steps", &SessionOptions::window_steps)
      .def_rw("log_every_steps", &SessionOptions::log_every_steps)
      .def_rw("host_ops", &SessionOptions::host_ops)
      .def_prop_rw(
          "device_records",
          [](const BoundOptions& o) {
            return o.device_records == DeviceRecords::kAuto ? "auto" : "off";
          },
          [](BoundOptions& o, std::string_view value) {
            if (value != "auto" && value != "off") {
              throw nb::value_error(
                  ("device_records is '" + std::string(value) + "'; accepted: auto, off").c_str());
            }
            o.device_records = value == "auto" ? DeviceRecords::kAuto : DeviceRecords::kOff;
          })
      .def_rw("jsonl_path", &SessionOptions::jsonl_path)
      .def_rw("capture_path", &SessionOptions::capture_path)
      .def_rw("capture_max_bytes", &SessionOptions::capture_max_bytes)
      .def_rw("log_level", &SessionOptions::log_level)
      .def_rw("handle_sigterm", &SessionOptions::handle_sigterm)
      .def_rw("manual_pump", &SessionOptions::manual_pump)
      .def_prop_rw(
          "nvtx", [](const BoundOptions& o) { return o.nvtx.enabled; },
          [](BoundOptions& o, bool value) { o.nvtx.enabled = value; })
      .def_prop_rw(
          "nvtx_steps", [](const BoundOptions& o) { return o.nvtx.steps; },
          [](BoundOptions& o, std::string value) { o.nvtx.steps = std::move(value); })
      .def_prop_rw(
          "nvtx_phases", [](const BoundOptions& o) { return o.nvtx.phases; },
          [](BoundOptions& o, std::string value) { o.nvtx.phases = std::move(value); })
      .def_prop_rw(
          "http_enabled", [](const BoundOptions& o) { return o.http.enabled; },
          [](BoundOptions& o, bool value) { o.http.enabled = value; })
      .def_prop_rw(
          "http_address", [](const BoundOptions& o) { return o.http.address; },
          [](BoundOptions& o, std::string value) { o.http.address = std::move(value); })
      .def_prop_rw(
          "http_port", [](const BoundOptions& o) { return o.http.base_port; },
          [](BoundOptions& o, int value) { o.http.base_port = value; })
      .def_prop_rw(
          "http_allow_remote", [](const BoundOptions& o) { return o.http.allow_remote; },
          [](BoundOptions& o, bool value) { o.http.allow_remote = value; })
      .def_prop_rw(
          "http_fallback", [](const BoundOptions& o) { return o.http.fallback_to_any; },
          [](BoundOptions& o, bool value) { o.http.fallback_to_any = value; })
      .def_prop_rw(
          "http_discovery_folder", [](const BoundOptions& o) { return o.http.discovery_folder; },
          [](BoundOptions& o, std::string value) { o.http.discovery_folder = std::move(value); });
}

/// Observers written in Python write through this instead of ctypes: about 0.1 us a call.
class HostOpsWriter {
 public:
  explicit HostOpsWriter(Session& session) : ops_(session.HostOps()) {
    if (ops_ == nullptr) throw std::runtime_error("no memory for the host-op table");
  }

  std::uint32_t Intern(const std::string& name, const nb::sequence& arguments) const {
    // Integers are gathered first, so that the pointers into them stay.
    std::vector<std::vector<std::int64_t>> integers;
    std::vector<flopledger_op_argument> encoded;
    for (nb::handle item : arguments) {
      const auto argument = nb::cast<nb::tuple>(item);
      if (argument.size() != 4)
        throw nb::value_error("an argument is (kind, dtype, integers, real)");
      integers.push_back(nb::cast<std::vector<std::int64_t>>(argument[2]));
      encoded.push_back({.kind = nb::cast<std::uint8_t>(argument[0]),
                         .dtype = nb::cast<std::uint8_t>(argument[1]),
                         .reserved = 0,
                         .integer_count = static_cast<std::uint32_t>(integers.back().size()),
                         .integers = nullptr,
                         .real = nb::cast<double>(argument[3])});
    }
    for (std::size_t i = 0; i < encoded.size(); ++i) encoded[i].integers = integers[i].data();
    return ops_->intern(ops_->context, name.c_str(), encoded.data(),
                        static_cast<std::uint32_t>(encoded.size()));
  }
  void Write(std::int64_t start_ns, std::int64_t end_ns, std::int64_t self_ns,
             std::uint32_t signature, std::uint8_t phase) const {
    const flopledger_op_record record{.start_ns = start_ns,
                                      .end_ns = end_ns,
                                      .self_ns = self_ns,
                                      .signature = signature,
                                      .phase = phase,
                                      .reserved = {}};
    ops_->write(ops_->context, &record);
  }
  void Aborted(std::int64_t end_ns) const { ops_->aborted(ops_->context, end_ns); }

 private:
  const flopledger_host_ops* ops_;
};

using Lengths = std::optional<std::vector<std::int64_t>>;

void DeclareTokens(Session& session, std::int64_t useful, std::int64_t padded,
                   std::int64_t sequence_length, const Lengths& lengths) {
  TokenDeclaration declaration{
      .useful = useful, .padded = padded, .sequence_length = sequence_length, .lengths = {}};
  if (lengths) declaration.lengths = *lengths;
  session.Tokens(declaration);
}

// What the training loop says.
void BindDeclarations(nb::class_<Session>& session) {
  session.def("begin_step", &Session::BeginStep, "step"_a = nb::none())
      .def("end_step", &Session::EndStep, "failed"_a = false)
      .def("begin_section",
           [](Session& s, std::string_view name) { s.BeginSection(PhaseOf(name)); })
      .def("end_section", [](Session& s, std::string_view name) { s.EndSection(PhaseOf(name)); })
      .def("tokens", &DeclareTokens, "useful"_a, "padded"_a = 0, "sequence_length"_a = 0,
           "lengths"_a = nb::none())
      .def(
          "declare_work",
          [](Session& s, const nb::int_& forward, const nb::int_& backward, std::int64_t tokens) {
            s.DeclareWork(FromPython(forward, "forward"), FromPython(backward, "backward"), tokens);
          },
          "forward"_a, "backward"_a, "tokens"_a = 0)
      .def("refuse_declaration", &Session::RefuseDeclaration)
      .def("warn", &Session::Warn, "text"_a)
      .def("set_value", &Session::SetValue, "name"_a, "value"_a)
      .def("set_capability", &Session::SetCapability, "name"_a, "available"_a, "reason"_a)
      .def("host_ops_address",
           [](Session& s) { return reinterpret_cast<std::uintptr_t>(s.HostOps()); });
}

// What the books answer.
void BindAnswers(nb::class_<Session>& session) {
  session
      .def("last_values",
           [](const Session& s) {
             nb::dict dict;
             for (const auto& [name, value] : s.LastValues()) dict[name.c_str()] = value;
             return dict;
           })
      .def("last_report",
           [](const Session& s) -> std::optional<nb::dict> {
             const std::shared_ptr<const StepReport> report = s.LastReport();
             if (!report) return std::nullopt;
             return ReportToDict(*report);
           })
      .def("summary", &Session::Summary)
      .def("address", &Session::Address)
      .def("jsonl_path", &Session::JsonlPath)
      .def("run_id", [](const Session& s) { return s.Description().identity.run_id; })
      .def("rank", [](const Session& s) { return s.Description().identity.rank; })
      .def("convention", [](const Session& s) { return s.Description().convention.name; })
      .def("model", [](const Session& s) { return s.Description().model; })
      .def("collector",
           [](const Session& s) {
             switch (s.State().collector) {
               case SessionState::Collector::kCounting:
                 return "counting";
               case SessionState::Collector::kTimingOnly:
                 return "timing_only";
               case SessionState::Collector::kStepsOnly:
                 return "steps_only";
               case SessionState::Collector::kDisabled:
                 break;
             }
             return "disabled";
           })
      .def("capabilities", [](const Session& s) {
        std::map<std::string, std::string> reasons;
        for (const Capability& each : s.State().capabilities) reasons[each.name] = each.reason;
        return reasons;
      });
}

void BindSession(nb::module_& module) {
  module.def("check_section",
             [](std::string_view name) { return std::string(ToString(PhaseOf(name))); });
  nb::class_<HostOpsWriter>(module, "HostOps")
      .def(nb::init<Session&>(), "session"_a)
      .def("intern", &HostOpsWriter::Intern, "name"_a, "arguments"_a)
      .def("write", &HostOpsWriter::Write, "start_ns"_a, "end_ns"_a, "self_ns"_a, "signature"_a,
           "phase"_a)
      .def("aborted", &HostOpsWriter::Aborted, "end_ns"_a);
  nb::class_<Session> bound(module, "Session");
  bound
      .def_static(
          "create",
          [](BoundOptions& options) {
            nb::gil_scoped_release release;
            Result<std::unique_ptr<Session>> session =
                Session::Create(std::move(static_cast<SessionOptions&>(options)));
            nb::gil_scoped_acquire acquire;
            return Unwrap(std::move(session));
          },
          "options"_a)
      .def("pump_once", &Session::PumpOnce, nb::call_guard<nb::gil_scoped_release>())
      .def(
          "close",
          [](Session& s, double limit_seconds) {
            nb::gil_scoped_release release;
            s.Close(DurationNs(static_cast<std::int64_t>(limit_seconds * 1e9)));
          },
          "limit_seconds"_a = 5.0);
  BindDeclarations(bound);
  BindAnswers(bound);
}

}  // namespace
}  // namespace flopledger

NB_MODULE(_core, module) {
  module.attr("version") = FLOPLEDGER_VERSION;
  module.def("claim_nvtx", &flopledger::ClaimNvtx);
  module.def("nvtx_injection_path", &flopledger::NvtxInjectionPath);
  flopledger::BindModelFlops(module);
  flopledger::BindPeak(module);
  flopledger::BindOptions(module);
  flopledger::BindSession(module);
}
