#include "collect/trace/nsys_layout.h"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <limits>
#include <map>
#include <utility>

namespace flopledger {
namespace {

constexpr std::int64_t kProcessMask = 0xFFFFFF;  // a serialised id is hardware, VM, process, thread
constexpr std::size_t kMostProcesses = 4096;

using Columns = NsysLayout::Columns;

struct WorkTable {
  const char* table;
  const Columns& columns;
  int kind;
};

std::vector<WorkTable> WorkTables(const NsysLayout& layout) {
  std::vector<WorkTable> tables;
  for (const WorkTable& each : {WorkTable{"CUPTI_ACTIVITY_KIND_KERNEL", layout.kernel, 0},
                                WorkTable{"CUPTI_ACTIVITY_KIND_MEMCPY", layout.memcpy, 1},
                                WorkTable{"CUPTI_ACTIVITY_KIND_MEMSET", layout.memset, 2},
                                WorkTable{"CUPTI_ACTIVITY_KIND_GRAPH_TRACE", layout.graph, 3}}) {
    if (!each.columns.empty()) tables.push_back(each);
  }
  return tables;
}

std::string Column(const Columns& columns, const char* name, const char* otherwise = "NULL") {
  return columns.count(name) != 0 ? "\"" + std::string(name) + "\"" : otherwise;
}

// The first of the names that the table has.
std::string FirstColumn(const Columns& columns, std::initializer_list<const char*> names) {
  std::string found;
  for (const char* name : names) {
    if (columns.count(name) == 0) continue;
    found += (found.empty() ? "\"" : ",\"") + std::string(name) + "\"";
  }
  if (found.empty()) return "NULL";
  return found.find(',') == std::string::npos ? found : "coalesce(" + found + ")";
}

std::string ProcessOf(const Columns& columns, const char* column) {
  return columns.count(column) == 0 ? "0" : "ifnull(\"" + std::string(column) + "\">>24,0)";
}

std::string OfProcess(const Columns& columns, const char* column, std::int64_t process) {
  if (process == 0 || columns.count(column) == 0) return "1";
  return ProcessOf(columns, column) + "=" + std::to_string(process);
}

struct GpuFacts {
  DeviceDescription device;
  std::int64_t gpu = 0;
};

Result<std::vector<GpuFacts>> ReadGpus(SqliteFile& file, const Columns& columns) {
  std::vector<GpuFacts> gpus;
  if (columns.count("id") == 0) return gpus;
  Result<SqliteRows> rows = file.Query(
      "TARGET_INFO_GPU", "SELECT id," + Column(columns, "name") + "," +
                             Column(columns, "busLocation") + "," + Column(columns, "uuid") + "," +
                             FirstColumn(columns, {"computeMajor", "smMajor"}) + "," +
                             FirstColumn(columns, {"computeMinor", "smMinor"}) + "," +
                             Column(columns, "smCount") + "," + Column(columns, "totalMemory") +
                             " FROM main.TARGET_INFO_GPU ORDER BY id LIMIT 4096");
  if (!rows.has_value()) return tl::unexpected(rows.error());
  Result<bool> more = rows->Next();
  for (; more.has_value() && *more; more = rows->Next()) {
    GpuFacts gpu;
    gpu.gpu = rows->Integer(0);
    gpu.device.name = rows->Text(1);
    gpu.device.pci_bus_id = rows->Text(2);
    gpu.device.uuid = rows->Text(3);
    gpu.device.compute_capability_major = static_cast<int>(rows->Integer(4));
    gpu.device.compute_capability_minor = static_cast<int>(rows->Integer(5));
    gpu.device.multiprocessors = static_cast<int>(rows->Integer(6));
    gpu.device.memory_bytes = rows->Integer(7);
    gpus.push_back(std::move(gpu));
  }
  if (!more.has_value()) return tl::unexpected(more.error());
  return gpus;
}

// A process numbers its devices itself (CUDA_VISIBLE_DEVICES); this table says which one is which.
Result<std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t>> ReadNumbering(
    SqliteFile& file, const Columns& columns) {
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> numbering;
  if (columns.count("gpuId") == 0 || columns.count("cudaId") == 0) return numbering;
  Result<SqliteRows> rows = file.Query(
      "TARGET_INFO_CUDA_DEVICE", "SELECT " + Column(columns, "pid", "0") +
                                     ",cudaId,gpuId FROM main.TARGET_INFO_CUDA_DEVICE LIMIT 65536");
  if (!rows.has_value()) return tl::unexpected(rows.error());
  Result<bool> more = rows->Next();
  for (; more.has_value() && *more; more = rows->Next()) {
    numbering[{rows->Integer(0), rows->Integer(1)}] = rows->Integer(2);
  }
  if (!more.has_value()) return tl::unexpected(more.error());
  return numbering;
}

Result<std::map<std::int64_t, NsysProcess>> CountWork(SqliteFile& file, const NsysLayout& layout,
                                                      bool lenient, NsysLoss* loss) {
  std::map<std::int64_t, NsysProcess> processes;
  const auto take = [&](const SqliteRows& row) -> Result<bool> {
    NsysProcess& process = processes[row.Integer(1)];
    process.key = row.Integer(1);
    ++process.rows;
    const auto device = static_cast<std::uint16_t>(row.Integer(2));
    std::vector<DeviceDescription>& known = process.devices;
    if (std::none_of(known.begin(), known.end(),
                     [&](const DeviceDescription& d) { return d.device == device; })) {
      known.push_back({.device = device});
    }
    if (processes.size() <= kMostProcesses) return true;
    return Fail(StatusCode::kDataLoss,
                file.path() + ": more than 4096 processes; the export is corrupt");
  };
  for (const WorkTable& each : WorkTables(layout)) {
    const Result<NsysLoss> lost =
        ForEachNsysRow(file,
                       {.table = each.table,
                        .columns = ProcessOf(each.columns, "globalPid") + ",ifnull(" +
                                   Column(each.columns, "deviceId", "0") + ",0)",
                        .where = "1"},
                       lenient, take);
    if (!lost.has_value()) return tl::unexpected(lost.error());
    if (lost->faults > 0 && loss->faults == 0) *loss = *lost;
  }
  return processes;
}

Result<bool> NameProcesses(SqliteFile& file, const NsysLayout& layout,
                           std::map<std::int64_t, NsysProcess>& processes) {
  for (auto& [key, process] : processes) {
    process.name = key == 0 ? "" : "pid " + std::to_string(key & kProcessMask);
  }
  if (layout.processes.count("globalPid") == 0 || layout.processes.count("name") == 0) return true;
  Result<SqliteRows> rows =
      file.Query("PROCESSES", "SELECT globalPid>>24,name FROM main.PROCESSES LIMIT 65536");
  if (!rows.has_value()) return tl::unexpected(rows.error());
  Result<bool> more = rows->Next();
  for (; more.has_value() && *more; more = rows->Next()) {
    const auto found = processes.find(rows->Integer(0));
    if (found == processes.end() || rows->Text(1).empty()) continue;
    found->second.name = std::string(rows->Text(1).substr(0, 256)) + " (pid " +
                         std::to_string(found->first & kProcessMask) + ")";
  }
  if (!more.has_value()) return tl::unexpected(more.error());
  return true;
}

}  // namespace

Result<NsysLayout> NsysLayout::Read(SqliteFile& file) {
  NsysLayout layout;
  const std::array<std::pair<const char*, Columns*>, 12> tables = {{
      {"CUPTI_ACTIVITY_KIND_KERNEL", &layout.kernel},
      {"CUPTI_ACTIVITY_KIND_MEMCPY", &layout.memcpy},
      {"CUPTI_ACTIVITY_KIND_MEMSET", &layout.memset},
      {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE", &layout.graph},
      {"CUPTI_ACTIVITY_KIND_RUNTIME", &layout.runtime},
      {"CUPTI_ACTIVITY_KIND_DRIVER", &layout.driver},
      {"NVTX_EVENTS", &layout.nvtx},
      {"StringIds", &layout.strings},
      {"PROCESSES", &layout.processes},
      {"TARGET_INFO_GPU", &layout.gpu},
      {"TARGET_INFO_CUDA_DEVICE", &layout.cuda_device},
      {"ENUM_CUDA_MEMCPY_OPER", &layout.memcpy_kinds},
  }};
  for (const auto& [name, columns] : tables) {
    Result<Columns> found = file.Columns(name);
    if (!found.has_value()) return tl::unexpected(found.error());
    *columns = *std::move(found);
  }
  for (const WorkTable& each : WorkTables(layout)) {
    if (each.columns.count("start") != 0 && each.columns.count("end") != 0) continue;
    return Fail(StatusCode::kDataLoss,
                file.path() + ": " + each.table + ": no columns start and end");
  }
  return layout;
}

bool NsysLayout::HasGpuWork() const { return !WorkTables(*this).empty(); }

Result<std::vector<NsysProcess>> ReadNsysProcesses(SqliteFile& file, const NsysLayout& layout,
                                                   bool lenient, NsysLoss* loss) {
  Result<std::map<std::int64_t, NsysProcess>> processes = CountWork(file, layout, lenient, loss);
  if (!processes.has_value()) return tl::unexpected(processes.error());
  if (Result<bool> named = NameProcesses(file, layout, *processes); !named.has_value()) {
    return tl::unexpected(named.error());
  }
  auto gpus = ReadGpus(file, layout.gpu);
  if (!gpus.has_value()) return tl::unexpected(gpus.error());
  auto numbering = ReadNumbering(file, layout.cuda_device);
  if (!numbering.has_value()) return tl::unexpected(numbering.error());

  std::vector<NsysProcess> result;
  for (auto& [key, process] : *processes) {
    std::sort(process.devices.begin(), process.devices.end(),
              [](const auto& a, const auto& b) { return a.device < b.device; });
    for (DeviceDescription& device : process.devices) {
      auto gpu = numbering->find({key & kProcessMask, device.device});
      if (gpu == numbering->end()) gpu = numbering->find({0, device.device});
      const std::int64_t id = gpu == numbering->end() ? device.device : gpu->second;
      for (const GpuFacts& facts : *gpus) {
        if (facts.gpu != id) continue;
        const std::uint16_t number = device.device;
        device = facts.device;
        device.device = number;
      }
    }
    result.push_back(std::move(process));
  }
  std::stable_sort(result.begin(), result.end(), [](const auto& a, const auto& b) {
    return a.devices.front().device < b.devices.front().device;
  });
  return result;
}

std::vector<NsysSelection> NsysWork(const NsysLayout& layout, std::int64_t process) {
  std::vector<NsysSelection> selections;
  for (const WorkTable& each : WorkTables(layout)) {
    const Columns& has = each.columns;
    std::string work = std::to_string(each.kind) + " AS kind,start AS s,\"end\" AS e," +
                       Column(has, "deviceId", "0") + " AS device," + Column(has, "streamId", "0") +
                       " AS stream," + Column(has, "correlationId") + " AS correlation,";
    work += each.kind == 0 ? FirstColumn(has, {"demangledName", "mangledName", "shortName"})
                           : (each.kind == 1 ? Column(has, "copyKind") : std::string("NULL"));
    work += " AS name";
    for (const char* size : {"gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"}) {
      work += "," + Column(has, size) + " AS " + size;
    }
    work += ",ifnull(" + Column(has, "staticSharedMemory") + ",0)+ifnull(" +
            Column(has, "dynamicSharedMemory") + ",0) AS shared";
    selections.push_back({.table = each.table,
                          .columns = std::move(work),
                          .where = OfProcess(has, "globalPid", process)});
  }
  return selections;
}

std::string NsysUnion(const std::vector<NsysSelection>& selections) {
  std::string all;
  for (const NsysSelection& each : selections) {
    all += (all.empty() ? "(SELECT " : " UNION ALL SELECT ") + each.columns + " FROM main." +
           each.table + " WHERE " + each.where;
  }
  return all + ")";
}

std::string NsysWorkQuery(const std::string& work, const std::string& launches) {
  return "SELECT coalesce(l.start,g.s),g.kind,g.s,g.e,g.device,g.stream,l.start,l.thread,g.name,"
         "g.gridX,g.gridY,g.gridZ,g.blockX,g.blockY,g.blockZ,g.shared FROM " +
         work + " g LEFT JOIN temp." + launches +
         " l ON l.correlation=g.correlation ORDER BY 1,3,4,5,6,9";
}

std::vector<NsysSelection> NsysLaunches(const NsysLayout& layout, std::int64_t process) {
  std::vector<NsysSelection> selections;
  const std::array<std::pair<const char*, const Columns&>, 2> tables = {{
      {"CUPTI_ACTIVITY_KIND_RUNTIME", layout.runtime},
      {"CUPTI_ACTIVITY_KIND_DRIVER", layout.driver},
  }};
  for (const auto& [name, columns] : tables) {
    if (columns.count("correlationId") == 0 || columns.count("start") == 0) continue;
    selections.push_back(
        {.table = name,
         .columns = "correlationId,start," + Column(columns, "globalTid", "0"),
         .where = "correlationId IS NOT NULL AND " + OfProcess(columns, "globalTid", process)});
  }
  return selections;
}

std::optional<NsysSelection> NsysRanges(const NsysLayout& layout, std::int64_t process) {
  const Columns& has = layout.nvtx;
  if (has.count("start") == 0 || has.count("end") == 0) return std::nullopt;
  std::string text = Column(has, "text");
  if (has.count("textId") != 0 && layout.strings.count("value") != 0) {
    text = "coalesce(" + text + ",(SELECT value FROM main.StringIds WHERE id=textId))";
  }
  // 59: pushed and popped, 60: started and ended (ENUM_NSYS_EVENT_TYPE); without types, every
  // event with an end is a range.
  const bool typed = has.count("eventType") != 0;
  return NsysSelection{
      .table = "NVTX_EVENTS",
      .columns = "start AS s,\"end\" AS e," + text + " AS text," + Column(has, "globalTid", "0") +
                 " AS thread," + (typed ? "eventType=59" : "1") + " AS nested," +
                 FirstColumn(has, {"int64Value", "uint64Value", "int32Value", "uint32Value"}) +
                 " AS payload",
      .where = std::string(typed ? "eventType IN (59,60)" : "\"end\" IS NOT NULL") + " AND " +
               OfProcess(has, "globalTid", process)};
}

}  // namespace flopledger
