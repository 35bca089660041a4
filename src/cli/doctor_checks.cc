#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

#include "cli/doctor.h"
#include "export/http_listener.h"

namespace flopledger::cli {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kCapSysAdmin = 21;
/// linux/capability.h of 5.8; reads counters without being an administrator of everything.
constexpr unsigned kCapPerfmon = 38;

std::string Variable(const DoctorOptions& options, const char* name) {
  const char* value = options.variable ? options.variable(name) : nullptr;
  return value == nullptr ? "" : value;
}

/// The value behind `key` in a file of lines `key: value`.
std::string ValueIn(const std::string& path, std::string_view key) {
  std::ifstream file(path);
  std::string line;
  while (std::getline(file, line)) {
    if (line.compare(0, key.size(), key) != 0 || line.size() <= key.size()) continue;
    if (line[key.size()] != ':') continue;
    const std::size_t at = line.find_first_not_of(" \t", key.size() + 1);
    return at == std::string::npos ? "" : line.substr(at);
  }
  return "";
}

DoctorCheck CheckDriver() {
  DoctorCheck check{.name = "driver", .ok = false, .found = "", .fix = ""};
  void* library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
  if (library == nullptr) {
    check.found = "libcuda.so.1 is not found by the loader";
    check.fix = "install the NVIDIA driver; in a container, start it with its GPUs (--gpus all)";
    return check;
  }
  // The one call that needs no initialisation.
  using GetVersion = int (*)(int*);
  auto* get_version = reinterpret_cast<GetVersion>(dlsym(library, "cuDriverGetVersion"));
  int version = 0;
  check.ok = get_version != nullptr && get_version(&version) == 0;
  check.found = check.ok ? fmt::format("libcuda.so.1, for CUDA up to {}.{}", version / 1000,
                                       version % 1000 / 10)
                         : "libcuda.so.1 is there, but does not answer";
  if (!check.ok) check.fix = "reinstall the driver: library and kernel module are of two versions";
  return check;
}

DoctorCheck CheckGpus(const DoctorOptions& options) {
  DoctorCheck check{.name = "gpu", .ok = false, .found = "", .fix = ""};
  std::error_code error;
  std::size_t seen = 0;
  std::string refused;
  for (const fs::directory_entry& entry : fs::directory_iterator(options.dev, error)) {
    const std::string name = entry.path().filename().string();
    if (name.size() < 7 || name.compare(0, 6, "nvidia") != 0) continue;
    if (name.find_first_not_of("0123456789", 6) != std::string::npos) continue;
    if (access(entry.path().c_str(), R_OK | W_OK) == 0) {
      ++seen;
    } else {
      refused = entry.path().string();
    }
  }
  check.ok = seen > 0;
  if (seen > 0) {
    check.found = fmt::format("{} devices", seen);
  } else if (!refused.empty()) {
    check.found = fmt::format("{} may not be opened", refused);
    check.fix = "give this user access to the device files (group video or render)";
  } else {
    check.found =
        fmt::format("no {}/nvidia0: a machine without a GPU counts operators alone", options.dev);
    check.fix = "run where a GPU is; in a container, start it with its GPUs";
  }
  return check;
}

/// Folders in which libcupti may lie, in the order of trust.
std::vector<std::string> CuptiFolders(const DoctorOptions& options,
                                      const std::optional<PythonFacts>& python) {
  std::vector<std::string> folders;
  if (python) {
    for (const char* part : {"nvidia/cu13/lib", "nvidia/cuda_cupti/lib"}) {
      folders.push_back(python->packages_folder + "/" + part);
    }
  }
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
    const std::string home = Variable(options, name);
    if (home.empty()) continue;
    folders.push_back(home + "/extras/CUPTI/lib64");
    folders.push_back(home + "/lib64");
  }
  std::string path = Variable(options, "LD_LIBRARY_PATH");
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find(':', begin), path.size());
    if (end > begin) folders.push_back(path.substr(begin, end - begin));
    begin = end + 1;
  }
  folders.emplace_back("/usr/local/cuda/extras/CUPTI/lib64");
  folders.emplace_back("/usr/lib/x86_64-linux-gnu");
  return folders;
}

DoctorCheck CheckCupti(const DoctorOptions& options, const std::optional<PythonFacts>& python,
                       bool has_driver) {
  DoctorCheck check{.name = "cupti", .ok = false, .found = "", .fix = ""};
  std::vector<std::string> found;
  for (const std::string& folder : CuptiFolders(options, python)) {
    for (const char* name : {"libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8"}) {
      std::error_code error;
      const std::string path = folder + "/" + name;
      if (!fs::exists(path, error)) continue;
      const std::string real = fs::canonical(path, error).string();
      if (std::find(found.begin(), found.end(), real) == found.end()) found.push_back(real);
    }
  }
  if (found.empty()) {
    check.found =
        "no libcupti.so.13, .12 or .11.8 beside the framework, in CUDA_HOME or on the "
        "loader's path";
    check.fix = "pip install nvidia-cuda-cupti (of the CUDA version of your framework)";
    return check;
  }
  check.found = found.front();
  if (found.size() > 1)
    check.found += fmt::format(" (and {} more; the framework's own counts)", found.size() - 1);
  check.ok = has_driver;
  if (!has_driver) {
    check.found += ", not usable without a driver";
    check.fix = "see driver";
  }
  return check;
}

bool MayAdminister(const DoctorOptions& options) {
  const std::string mask = ValueIn(options.proc + "/self/status", "CapEff");
  std::uint64_t capabilities = 0;
  for (const char digit : mask) {
    const std::string_view digits = "0123456789abcdef";
    const std::size_t value = digits.find(digit);
    if (value == std::string_view::npos) return false;
    capabilities = capabilities << 4U | value;
  }
  return (capabilities >> kCapSysAdmin & 1U) != 0 || (capabilities >> kCapPerfmon & 1U) != 0;
}

DoctorCheck CheckCounters(const DoctorOptions& options) {
  DoctorCheck check{.name = "counters", .ok = false, .found = "", .fix = ""};
  const std::string lock = ValueIn(options.proc + "/driver/nvidia/params", "RmProfilingAdminOnly");
  if (lock.empty()) {
    check.found = "the driver says nothing of RmProfilingAdminOnly (no driver is loaded)";
    check.fix = "see driver";
    return check;
  }
  const bool may = MayAdminister(options);
  check.ok = lock == "0" || may;
  check.found = lock == "0" ? "every user may read hardware counters"
                : may       ? "for administrators alone, and this process is one"
                            : "RmProfilingAdminOnly is 1: for administrators alone";
  if (!check.ok) {
    check.fix =
        "load the driver with NVreg_RestrictProfilingToAdminUsers=0, or give the container "
        "CAP_PERFMON or CAP_SYS_ADMIN; kernel times work without";
  }
  return check;
}

DoctorCheck CheckCounterHolder(const DoctorOptions& options) {
  DoctorCheck check{.name = "counter_lock", .ok = true, .found = "", .fix = ""};
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(options.proc, error)) {
    const std::string pid = entry.path().filename().string();
    if (pid.find_first_not_of("0123456789") != std::string::npos) continue;
    std::ifstream file(entry.path() / "comm");
    std::string name;
    std::getline(file, name);
    if (name != "nv-hostengine" && name != "dcgm-exporter" && name != "nsys" && name != "ncu") {
      continue;
    }
    check.ok = false;
    check.found = fmt::format("{} (process {}) may hold the counters", name, pid);
    check.fix = name == "nsys" || name == "ncu" ? "end the other profiler"
                                                : "dcgmi profile --pause while counters are read";
    return check;
  }
  check.found = "no DCGM and no other profiler is seen on this host";
  return check;
}

DoctorCheck CheckInjection(const DoctorOptions& options, const char* name, const char* variable,
                           const char* what) {
  DoctorCheck check{.name = name, .ok = true, .found = "", .fix = ""};
  const std::string value = Variable(options, variable);
  if (value.empty()) {
    check.found = fmt::format("{} is free", variable);
  } else if (fs::path(value).filename().string().find("flopledger") != std::string::npos) {
    check.found = fmt::format("{} is ours: {}", variable, value);
  } else {
    check.ok = false;
    check.found = fmt::format("{} names another tool: {}", variable, value);
    check.fix = fmt::format("unset {} for runs whose {} flopledger shall see", variable, what);
  }
  return check;
}

DoctorCheck CheckPort(const DoctorOptions& options) {
  DoctorCheck check{.name = "port", .ok = false, .found = "", .fix = ""};
  const auto listener = Listener::Create({.address = options.address,
                                          .port = options.port,
                                          .fallback_to_any = false,
                                          .allow_remote = true});
  check.ok = listener.has_value();
  if (check.ok) {
    check.found = fmt::format("{} can be listened on", listener->host_and_port());
  } else {
    check.found = listener.error().message();
    check.fix = "a run takes another free port and says which; base_port chooses one";
  }
  return check;
}

DoctorCheck CheckLogFolder(const DoctorOptions& options) {
  DoctorCheck check{.name = "log_folder", .ok = false, .found = "", .fix = ""};
  std::error_code error;
  const std::string folder = options.log_folder;
  if (!fs::is_directory(folder, error)) {
    check.found = fmt::format("{} is no folder", folder);
    check.fix = "make it: the step log makes no folders";
    return check;
  }
  if (access(folder.c_str(), W_OK | X_OK) != 0) {
    check.found = fmt::format("{} cannot be written to ({})", folder, std::strerror(errno));
    check.fix = "choose another folder for the step log";
    return check;
  }
  struct statvfs space{};
  const bool known = statvfs(folder.c_str(), &space) == 0;
  const double free_bytes =
      known ? static_cast<double>(space.f_bavail) * static_cast<double>(space.f_frsize) : 0;
  check.ok = !known || free_bytes > 1e9;  // four files of 256 MiB
  check.found = fmt::format("{} can be written to{}", folder,
                            known ? fmt::format(", {:.1f} GB free", free_bytes / 1e9) : "");
  if (!check.ok) check.fix = "free some space: a rotated step log takes up to 1 GiB";
  return check;
}

void AddPython(const std::optional<PythonFacts>& python, const std::string& wanted,
               std::vector<DoctorCheck>* checks) {
  const auto add = [checks](const char* name, bool ok, std::string found, std::string fix) {
    checks->push_back({name, ok, std::move(found), ok ? "" : std::move(fix)});
  };
  add("python", python.has_value(),
      python ? fmt::format("{} at {}", python->version, python->path)
             : fmt::format("'{}' is not there, or does not answer", wanted),
      "name the one of your environment with --python");
  const auto package = [&](const char* name, const std::string& version, const char* fix) {
    add(name, python && !version.empty(),
        !python           ? "no Python"
        : version.empty() ? fmt::format("not installed in {}", python->path)
                          : version,
        fix);
  };
  const PythonFacts none;
  const PythonFacts& facts = python ? *python : none;
  package("torch", facts.torch_version, "pip install torch, or name another Python with --python");
  package("jax", facts.jax_version, "pip install jax, if it is what you train with");
  package("flopledger_package", facts.flopledger_version, "pip install flopledger in that Python");
}

bool IsOk(const std::vector<DoctorCheck>& checks, std::string_view name) {
  return std::any_of(checks.begin(), checks.end(),
                     [&](const DoctorCheck& check) { return check.name == name && check.ok; });
}

}  // namespace

std::vector<std::string> DoctorCheckNames() {
  return {"driver",
          "gpu",
          "cupti",
          "counters",
          "counter_lock",
          "nvtx",
          "cuda_injection",
          "port",
          "log_folder",
          "python",
          "torch",
          "jax",
          "flopledger_package"};
}

std::vector<DoctorCheck> RunDoctor(const DoctorOptions& options) {
  const std::optional<PythonFacts> python = AskPython(options.python);
  std::vector<DoctorCheck> checks;
  checks.push_back(CheckDriver());
  const bool has_driver = checks.front().ok;
  checks.push_back(CheckGpus(options));
  checks.push_back(CheckCupti(options, python, has_driver));
  checks.push_back(CheckCounters(options));
  checks.push_back(CheckCounterHolder(options));
  checks.push_back(CheckInjection(options, "nvtx", "NVTX_INJECTION64_PATH", "NVTX ranges"));
  checks.push_back(
      CheckInjection(options, "cuda_injection", "CUDA_INJECTION64_PATH", "unchanged scripts"));
  checks.push_back(CheckPort(options));
  checks.push_back(CheckLogFolder(options));
  AddPython(python, options.python, &checks);
  return checks;
}

std::vector<std::string> ReachedRungs(const std::vector<DoctorCheck>& checks) {
  std::vector<std::string> rungs = {"0: steps, tokens, MFU (with a formula and a peak)"};
  if (IsOk(checks, "nvtx")) rungs.emplace_back("1: phases from NVTX ranges");
  const bool records = IsOk(checks, "driver") && IsOk(checks, "gpu") && IsOk(checks, "cupti");
  if (records) rungs.emplace_back("2: device time by kernel, communication, copies, idle");
  if (IsOk(checks, "torch") || IsOk(checks, "jax")) {
    rungs.emplace_back("4: executed FLOPs from op shapes, recomputation, HFU");
  }
  if (records && IsOk(checks, "counters") && IsOk(checks, "counter_lock")) {
    rungs.emplace_back("5: hardware counters on sampled steps");
  }
  return rungs;
}

}  // namespace flopledger::cli
