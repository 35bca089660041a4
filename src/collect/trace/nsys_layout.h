#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "collect/device_source.h"
#include "collect/trace/nsys_rows.h"
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

/// In the order of their first devices. What a lenient reading could not read is in `loss`.
Result<std::vector<NsysProcess>> ReadNsysProcesses(SqliteFile& file, const NsysLayout& layout,
                                                   bool lenient, NsysLoss* loss);

/// GPU work of one process, a selection a table. Columns behind the row's number: kind (0 kernel,
/// 1 memcpy, 2 memset, 3 graph), start, end, device, stream, correlation, name, grid x y z, block
/// x y z, shared memory.
std::vector<NsysSelection> NsysWork(const NsysLayout& layout, std::int64_t process);
inline constexpr int kNsysWorkColumns = 14;
/// The names of these columns in a temporary table.
inline constexpr const char* kNsysWorkNames =
    "kind,s,e,device,stream,correlation,name,gridX,gridY,gridZ,blockX,blockY,blockZ,shared";

/// Columns: correlation, start, thread. A selection a table.
std::vector<NsysSelection> NsysLaunches(const NsysLayout& layout, std::int64_t process);
/// Columns: start, end or NULL, text, thread, nested (pushed and popped), payload or NULL.
std::optional<NsysSelection> NsysRanges(const NsysLayout& layout, std::int64_t process);
inline constexpr int kNsysRangeColumns = 6;

/// Work joined to its launch, in the order of `key`, which is the launch's start where there is
/// one, else the work's own. `work` is a table or a query in parentheses, `launches` a table.
/// Columns: key, kind, start, end, device, stream, launch start, thread, name, grid, block, shared
/// memory.
std::string NsysWorkQuery(const std::string& work, const std::string& launches);
/// Selections as one query.
std::string NsysUnion(const std::vector<NsysSelection>& selections);

}  // namespace flopledger
