#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "flopledger/report_sink.h"
#include "flopledger/status.h"

namespace flopledger {

/// A file for Prometheus' `file_sd_configs` that names where this rank is served, written whole or
/// not at all, removed with the object.
///
///     auto file = DiscoveryFile::Create("/var/run/flopledger", identity, "127.0.0.1:9410");
///
/// Thread: of one owner. Fails: kUnavailable if the folder cannot be written to.
class DiscoveryFile {
 public:
  static Result<std::unique_ptr<DiscoveryFile>> Create(const std::string& folder,
                                                       const RunIdentity& identity,
                                                       const std::string& host_and_port);
  ~DiscoveryFile();
  DiscoveryFile(const DiscoveryFile&) = delete;
  DiscoveryFile& operator=(const DiscoveryFile&) = delete;

  /// `<folder>/<run_id>-<rank>.json`, the run id reduced to letters, digits, `.`, `_`, `-`.
  const std::string& path() const { return path_; }
  /// Leaves the file to somebody else: in a forked child it is the parent's.
  void Disown() noexcept { owner_ = -1; }

 private:
  explicit DiscoveryFile(std::string path);
  std::string path_;
  pid_t owner_;
};

}  // namespace flopledger
