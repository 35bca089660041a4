#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace flopledger::cli {

/// One thing that flopledger would use, and whether it is here.
struct DoctorCheck {
  std::string name;  ///< of `--require`: `driver`, `cupti`, ...
  bool ok = false;
  std::string found;  ///< what was seen, or why it is not there
  std::string fix;    ///< what to do about it; empty if ok
};

struct DoctorOptions {
  std::string proc = "/proc";
  std::string dev = "/dev";
  std::string log_folder = ".";
  std::string python = "python3";
  int port = 9410;
  std::string address = "127.0.0.1";
  /// Of the environment; null: not set.
  std::function<const char*(const char*)> variable;
};

/// Names of all checks, in the order in which they are shown.
std::vector<std::string> DoctorCheckNames();

/// Looks, and changes nothing: CUPTI is not called, the CUDA driver is not initialised, nothing is
/// left open or written. Asks one Python for the versions of its packages, without importing them.
///
/// Thread: any. Fails: never; what cannot be found out is a check that is not ok.
std::vector<DoctorCheck> RunDoctor(const DoctorOptions& options);

/// The rungs of evidence (docs/concepts.md) that would be reached, in words.
std::vector<std::string> ReachedRungs(const std::vector<DoctorCheck>& checks);

/// What a Python says of itself; of a package that it lacks there is no version.
struct PythonFacts {
  std::string version;
  std::string path;
  std::string packages_folder;
  std::string torch_version;
  std::string jax_version;
  std::string flopledger_version;
};

/// Fails: absent if there is no such Python, or it does not answer within ten seconds.
std::optional<PythonFacts> AskPython(const std::string& python);

}  // namespace flopledger::cli
