#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "collect/device_source.h"
#include "collect/trace/sqlite_file.h"
#include "flopledger/status.h"

namespace flopledger {

/// Tables of an Nsight Systems export that are read, as sets of their columns; an empty set where a
/// version or a recording has no such table.
struct NsysLayout {
  using Columns = std::set<std::string>;
  Columns kernel;
  Columns memcpy;
  Columns memset;
  Columns graph;  ///< one row a graph launch, where nodes were not traced
  Columns runtime;
  Columns driver;
  Columns nvtx;
  Columns strings;
  Columns processes;
  Columns gpu;
  Columns cuda_device;
  Columns memcpy_kinds;

  static Result<NsysLayout> Read(SqliteFile& file);
  bool HasGpuWork() const;
};

/// A process that used a GPU, or the only one where the export does not tell them apart.
struct NsysProcess {
  std::int64_t key = 0;  ///< `globalPid >> 24`; 0: not told apart
  std::string name;      ///< `python3 (pid 144)`
  std::vector<DeviceDescription> devices;
  std::int64_t rows = 0;  ///< of GPU work
};

/// In the order of their first devices.
Result<std::vector<NsysProcess>> ReadNsysProcesses(SqliteFile& file, const NsysLayout& layout);

/// Queries over one process; `launches` is the name of a temporary table (correlation, start,
/// thread) that `NsysLaunchQueries` fill.
///
/// Columns of GPU work: key, kind (0 kernel, 1 memcpy, 2 memset, 3 graph), start, end, device,
/// stream, launch start, thread, name, grid x y z, block x y z, shared memory; sorted by key, which
/// is the launch's start where there is one, else the work's own.
std::string NsysWorkQuery(const NsysLayout& layout, std::int64_t process,
                          const std::string& launches);
/// Columns: correlation, start, thread. One query a table.
std::vector<std::string> NsysLaunchQueries(const NsysLayout& layout, std::int64_t process);
/// Columns: start, end or NULL, text, thread, nested (pushed and popped), payload or NULL; sorted
/// by start, outer ranges before inner ones.
std::string NsysRangeQuery(const NsysLayout& layout, std::int64_t process);

}  // namespace flopledger
