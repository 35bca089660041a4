#include "session/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "flops/nearest.h"

namespace flopledger {
namespace {

constexpr std::string_view kPrefix = "FLOPLEDGER_";

/// What has to be put together once all variables have been read.
struct Pending {
  SessionOptions options;
  bool start = false;
  std::string dtype;
  std::string peak;
  std::string model;
};

using Wrong = std::optional<std::string>;  // what is accepted

Wrong ReadBool(std::string_view text, bool& to) {
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  const bool yes = lower == "1" || lower == "true" || lower == "yes" || lower == "on";
  const bool no = lower == "0" || lower == "false" || lower == "no" || lower == "off";
  if (!yes && !no) return "1 or 0, true or false";
  to = yes;
  return std::nullopt;
}

template <typename Integer>
Wrong ReadInteger(std::string_view text, Integer& to) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), to);
  if (error != std::errc() || end != text.data() + text.size()) return "an integer";
  return std::nullopt;
}

Wrong ReadText(std::string_view text, std::string& to) {
  to = std::string(text);
  return std::nullopt;
}

Wrong ReadDeviceRecords(std::string_view text, DeviceRecords& to) {
  if (text != "auto" && text != "off") return "auto, off";
  to = text == "off" ? DeviceRecords::kOff : DeviceRecords::kAuto;
  return std::nullopt;
}

struct Variable {
  std::string_view name;
  Wrong (*read)(std::string_view text, Pending& to);
};

Wrong Elsewhere(std::string_view, Pending&) { return std::nullopt; }

// Those of python_bindings/flopledger/_config.py, by the same names.
constexpr std::array kVariables = {
    Variable{"AUTOSTART", [](std::string_view t, Pending& p) { return ReadBool(t, p.start); }},
    Variable{"PEAK", [](std::string_view t, Pending& p) { return ReadText(t, p.peak); }},
    Variable{"MODEL_FLOPS", [](std::string_view t, Pending& p) { return ReadText(t, p.model); }},
    Variable{"DTYPE", [](std::string_view t, Pending& p) { return ReadText(t, p.dtype); }},
    Variable{"RUN",
             [](std::string_view t, Pending& p) { return ReadText(t, p.options.identity.run_id); }},
    Variable{"SEQ_LEN", [](std::string_view t,
                           Pending& p) { return ReadInteger(t, p.options.sequence_length); }},
    Variable{"WARMUP_STEPS",
             [](std::string_view t, Pending& p) { return ReadInteger(t, p.options.warmup_steps); }},
    Variable{"WINDOW_STEPS",
             [](std::string_view t, Pending& p) { return ReadInteger(t, p.options.window_steps); }},
    Variable{"LOG_EVERY", [](std::string_view t,
                             Pending& p) { return ReadInteger(t, p.options.log_every_steps); }},
    Variable{"LOG_LEVEL",
             [](std::string_view t, Pending& p) { return ReadText(t, p.options.log_level); }},
    Variable{"JSONL",
             [](std::string_view t, Pending& p) { return ReadText(t, p.options.jsonl_path); }},
    Variable{"CAPTURE",
             [](std::string_view t, Pending& p) { return ReadText(t, p.options.capture_path); }},
    Variable{
        "CAPTURE_MAX_BYTES",
        [](std::string_view t, Pending& p) { return ReadInteger(t, p.options.capture_max_bytes); }},
    Variable{"DEVICE_RECORDS",
             [](std::string_view t, Pending& p) {
               return ReadDeviceRecords(t, p.options.device_records);
             }},
    Variable{"HTTP",
             [](std::string_view t, Pending& p) { return ReadBool(t, p.options.http.enabled); }},
    Variable{"ADDRESS",
             [](std::string_view t, Pending& p) { return ReadText(t, p.options.http.address); }},
    Variable{"PORT", [](std::string_view t,
                        Pending& p) { return ReadInteger(t, p.options.http.base_port); }},
    Variable{"ALLOW_REMOTE", [](std::string_view t,
                                Pending& p) { return ReadBool(t, p.options.http.allow_remote); }},
    Variable{"DISCOVERY", [](std::string_view t,
                             Pending& p) { return ReadText(t, p.options.http.discovery_folder); }},
    Variable{"NVTX",
             [](std::string_view t, Pending& p) { return ReadBool(t, p.options.nvtx.enabled); }},
    Variable{"NVTX_STEPS",
             [](std::string_view t, Pending& p) { return ReadText(t, p.options.nvtx.steps); }},
    Variable{"NVTX_PHASES",
             [](std::string_view t, Pending& p) { return ReadText(t, p.options.nvtx.phases); }},
    // Read where the rank is found, or by the Python package alone.
    Variable{"RANK", &Elsewhere},
    Variable{"LOCAL_RANK", &Elsewhere},
    Variable{"WORLD_SIZE", &Elsewhere},
    Variable{"RUN_ID", &Elsewhere},
    Variable{"OBSERVER", &Elsewhere},
    Variable{"STRICT", &Elsewhere},
    Variable{"CACHE_DIR", &Elsewhere},
};

Status UnknownVariable(std::string_view name) {
  std::vector<std::string_view> known;
  known.reserve(kVariables.size());
  for (const Variable& variable : kVariables) known.push_back(variable.name);
  return Status(StatusCode::kInvalidArgument,
                fmt::format("unknown variable {}{}; did you mean {}{}?", kPrefix, name, kPrefix,
                            flops::Nearest(name, known)));
}

std::optional<Status> ReadVariable(std::string_view name, std::string_view text, Pending& to) {
  const auto* found = std::find_if(kVariables.begin(), kVariables.end(),
                                   [&](const Variable& each) { return each.name == name; });
  if (found == kVariables.end()) return UnknownVariable(name);
  const Wrong accepted = found->read(text, to);
  if (!accepted) return std::nullopt;
  return Status(StatusCode::kInvalidArgument,
                fmt::format("{}{} is '{}'; accepted: {}", kPrefix, name, text, *accepted));
}

Result<ModelFlops> ReadModel(const std::string& text) {
  if (!text.ends_with(".json")) return ModelFlops::FromFormula(text, {});
  std::ifstream file(text);
  std::ostringstream content;
  content << file.rdbuf();
  if (!file) {
    return Fail(StatusCode::kNotFound,
                fmt::format("{}MODEL_FLOPS is '{}', which cannot be read", kPrefix, text));
  }
  return ModelFlops::FromHfConfig(content.str());
}

Result<SessionOptions> Assemble(Pending pending) {
  SessionOptions& options = pending.options;
  options.host_ops = false;  // nobody is there to install an observer
  if (!pending.dtype.empty()) {
    const std::optional<DType> dtype = ParseDType(pending.dtype);
    if (!dtype) {
      return InvalidArgument(
          fmt::format("{}DTYPE is '{}'; accepted: fp64, fp32, tf32, fp16, bf16, "
                      "fp8, fp4, int8",
                      kPrefix, pending.dtype));
    }
    options.dtype = *dtype;
  }
  if (!pending.peak.empty()) {
    const Result<FlopsPerSecond> rate = ParsePeakRate(pending.peak);
    if (!rate) return tl::unexpected(rate.error());
    options.peaks.push_back({.device_model = "given",
                             .dtype = options.dtype,
                             .rate = *rate,
                             .source = "FLOPLEDGER_PEAK"});
  }
  if (!pending.model.empty()) {
    Result<ModelFlops> model = ReadModel(pending.model);
    if (!model) return tl::unexpected(model.error());
    options.model = *std::move(model);
  }
  return std::move(options);
}

}  // namespace

Result<std::optional<SessionOptions>> OptionsFromEnvironment(
    std::span<const std::string_view> environment) {
  // The others matter only if a session is wanted.
  Pending pending;
  for (const std::string_view entry : environment) {
    if (!entry.starts_with("FLOPLEDGER_AUTOSTART=")) continue;
    const std::string_view text = entry.substr(entry.find('=') + 1);
    if (text.empty()) continue;
    if (auto wrong = ReadVariable("AUTOSTART", text, pending)) {
      return tl::unexpected(*std::move(wrong));
    }
  }
  if (!pending.start) return std::nullopt;
  for (const std::string_view entry : environment) {
    const auto equals = entry.find('=');
    if (!entry.starts_with(kPrefix) || equals == std::string_view::npos) continue;
    const std::string_view name = entry.substr(kPrefix.size(), equals - kPrefix.size());
    const std::string_view text = entry.substr(equals + 1);
    if (text.empty()) continue;
    if (auto wrong = ReadVariable(name, text, pending)) return tl::unexpected(*std::move(wrong));
  }
  Result<SessionOptions> options = Assemble(std::move(pending));
  if (!options) return tl::unexpected(options.error());
  return std::optional<SessionOptions>(*std::move(options));
}

}  // namespace flopledger
