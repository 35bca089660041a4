#include "export/discovery_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cctype>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "export/write_all.h"

namespace flopledger {
namespace {

std::string FileName(const RunIdentity& identity) {
  std::string name;
  for (char c : identity.run_id.substr(0, 100)) {
    const bool plain =
        std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
    name.push_back(plain ? c : '_');
  }
  if (name.empty() || name.front() == '.') name.insert(0, "run");
  return fmt::format("{}-{}.json", name, identity.rank);
}

}  // namespace

Result<std::unique_ptr<DiscoveryFile>> DiscoveryFile::Create(const std::string& folder,
                                                             const RunIdentity& identity,
                                                             const std::string& host_and_port) {
  const std::string path = folder + "/" + FileName(identity);
  const std::string temporary = fmt::format("{}.{}.tmp", path, getpid());
  // The run id and rank are on every series of the page already; a target needs its address only.
  const std::string text = fmt::format("[{{\"targets\": [\"{}\"]}}]\n", host_and_port);
  const int fd = open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  int error = fd < 0 ? errno : 0;
  if (fd >= 0) {
    error = WriteAll(fd, text);
    close(fd);
    if (error == 0 && rename(temporary.c_str(), path.c_str()) != 0) error = errno;
    if (error != 0) unlink(temporary.c_str());
  }
  if (error != 0) {
    return Fail(StatusCode::kUnavailable,
                fmt::format("discovery file {} cannot be written: {}", path,
                            std::generic_category().message(error)));
  }
  return std::unique_ptr<DiscoveryFile>(new DiscoveryFile(path));
}

DiscoveryFile::DiscoveryFile(std::string path) : path_(std::move(path)), owner_(getpid()) {}

DiscoveryFile::~DiscoveryFile() {
  if (owner_ == getpid()) unlink(path_.c_str());
}

}  // namespace flopledger
