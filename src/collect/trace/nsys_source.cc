#include "collect/trace/nsys_source.h"

#include <limits>
#include <utility>

#include "collect/trace/range_names.h"

// Three streams in the order of host time: starts of ranges, ends of steps and sections, launches.
// At one and the same time an end comes before a start, and a start before a launch: an interval
// holds its start and not its end.

namespace flopledger {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kWorkPerBatch = 4096;
constexpr int kRangesPerBatch = 16384;
constexpr std::size_t kNameCache = 65536;

// Columns of NsysWorkQuery.
enum WorkColumn {
  kKey,
  kKind,
  kStart,
  kEnd,
  kDevice,
  kStream,
  kLaunch,
  kThread,
  kName,
  kGrid,
  kBlock = kGrid + 3,
  kShared = kBlock + 3,
};

KernelRecord::Kind KindOf(std::int64_t table) {
  if (table == 1) return KernelRecord::Kind::kMemcpy;
  if (table == 2) return KernelRecord::Kind::kMemset;
  return KernelRecord::Kind::kKernel;
}

}  // namespace

NsysSource::NsysSource(std::shared_ptr<SqliteFile> file, const NsysLayout& layout,
                       NsysProcess process, int index, const TraceOptions& options)
    : TraceSource(options),
      file_(std::move(file)),
      layout_(layout),
      process_(std::move(process)),
      index_(std::to_string(index)),
      launches_("launches_" + index_),
      lenient_(options.lenient),
      step_names_(options.step_names),
      progress_(options.progress) {
  description_.format = "nsys";
  description_.name = process_.name;
  description_.devices = process_.devices;
  description_.file_bytes = file_->bytes();
  description_.text_bytes = file_->bytes();
}

NsysSource::~NsysSource() = default;

Result<bool> NsysSource::CopyRows(const std::string& table, const NsysSelection& selection,
                                  int columns) {
  // Of a call that another call made the ids are the same; the outer one is the launch.
  std::string sql = "INSERT INTO temp." + table + " VALUES(?1";
  for (int i = 2; i <= columns; ++i) sql += ",?" + std::to_string(i);
  sql += ")";
  if (table == launches_) {
    sql +=
        " ON CONFLICT(correlation) DO UPDATE SET start=excluded.start,thread=excluded.thread "
        "WHERE excluded.start<start";
  }
  Result<SqliteRows> insert = file_->Query("temporary table", sql);
  if (!insert.has_value()) return tl::unexpected(insert.error());
  // One transaction, since each has its price; lenient, a corrupt page would take it back.
  Result<bool> done = true;
  if (!lenient_) done = file_->Execute("temporary table", "BEGIN");
  if (!done.has_value()) return done;
  const Result<NsysLoss> loss =
      ForEachNsysRow(*file_, selection, lenient_, [&](const SqliteRows& row) {
        insert->Rewind();
        for (int column = 1; column <= columns; ++column) insert->BindValue(column, row, column);
        return insert->Next();
      });
  insert->Rewind();
  if (!lenient_) done = file_->Execute("temporary table", "COMMIT");
  if (!loss.has_value()) return tl::unexpected(loss.error());
  if (loss->faults > 0) {
    description_.cut = true;
    Warn("corrupt_pages", loss->text + ": rows that cannot be read are left out", loss->faults);
  }
  return done;
}

Result<bool> NsysSource::FillLaunches() {
  Result<bool> done = file_->Execute(
      "temporary table", "CREATE TEMP TABLE " + launches_ +
                             "(correlation INTEGER PRIMARY KEY,start INTEGER,thread INTEGER)");
  for (const NsysSelection& selection : NsysLaunches(layout_, process_.key)) {
    if (done.has_value()) done = CopyRows(launches_, selection, 3);
  }
  return done;
}

// Strict, the file's own tables are sorted; lenient, what can be read of them.
Result<std::string> NsysSource::WorkTable() {
  const std::vector<NsysSelection> work = NsysWork(layout_, process_.key);
  if (!lenient_) return NsysUnion(work);
  const std::string table = "work_" + index_;
  Result<bool> done =
      file_->Execute("temporary table", "CREATE TEMP TABLE " + table + "(" + kNsysWorkNames + ")");
  for (const NsysSelection& selection : work) {
    if (done.has_value()) done = CopyRows(table, selection, kNsysWorkColumns);
  }
  if (!done.has_value()) return tl::unexpected(done.error());
  return "temp." + table;
}

Result<std::string> NsysSource::RangeTable() {
  const std::optional<NsysSelection> ranges = NsysRanges(layout_, process_.key);
  if (!ranges) return std::string();
  if (!lenient_) return NsysUnion({*ranges});
  const std::string table = "ranges_" + index_;
  Result<bool> done = file_->Execute(
      "temporary table", "CREATE TEMP TABLE " + table + "(s,e,text,thread,nested,payload)");
  if (done.has_value()) done = CopyRows(table, *ranges, kNsysRangeColumns);
  if (!done.has_value()) return tl::unexpected(done.error());
  return "temp." + table;
}

Result<bool> NsysSource::Begin() {
  begun_ = true;
  if (Result<bool> filled = FillLaunches(); !filled.has_value()) return filled;
  if (layout_.strings.count("id") != 0 && layout_.strings.count("value") != 0) {
    auto strings = file_->Query("StringIds", "SELECT value FROM main.StringIds WHERE id=?1");
    if (!strings.has_value()) return tl::unexpected(strings.error());
    strings_.emplace(*std::move(strings));
  }
  if (layout_.memcpy_kinds.count("id") != 0 && layout_.memcpy_kinds.count("label") != 0) {
    const Result<NsysLoss> loss = ForEachNsysRow(
        *file_, {.table = "ENUM_CUDA_MEMCPY_OPER", .columns = "id,label", .where = "id<256"},
        lenient_, [&](const SqliteRows& row) -> Result<bool> {
          copy_kinds_[row.Integer(1)] = row.Text(2);
          return true;
        });
    if (!loss.has_value()) return tl::unexpected(loss.error());
  }
  if (layout_.HasGpuWork()) {
    const Result<std::string> table = WorkTable();
    if (!table.has_value()) return tl::unexpected(table.error());
    auto work = file_->Query("CUPTI_ACTIVITY_KIND_KERNEL", NsysWorkQuery(*table, launches_));
    if (!work.has_value()) return tl::unexpected(work.error());
    work_.emplace(*std::move(work));
  }
  const Result<std::string> ranges = RangeTable();
  if (!ranges.has_value()) return tl::unexpected(ranges.error());
  if (!ranges->empty()) {
    auto rows =
        file_->Query("NVTX_EVENTS", "SELECT s,e,text,thread,nested,payload FROM " + *ranges +
                                        " ORDER BY s,ifnull(e,9223372036854775807) DESC");
    if (!rows.has_value()) return tl::unexpected(rows.error());
    ranges_.emplace(*std::move(rows));
  }
  if (layout_.runtime.empty() && layout_.driver.empty()) {
    Warn("missing_table", "CUPTI_ACTIVITY_KIND_RUNTIME: no launches are known");
  }
  if (layout_.nvtx.empty()) Warn("missing_table", "NVTX_EVENTS: no steps or sections are known");
  if (Result<bool> more = NextWork(); !more.has_value()) return more;
  return NextRange();
}

Result<bool> NsysSource::NextWork() {
  have_work_ = false;
  if (!work_) return false;
  Result<bool> more = work_->Next();
  if (more.has_value()) have_work_ = *more;
  if (have_work_) ++description_.events;
  return more;
}

Result<bool> NsysSource::NextRange() {
  range_.reset();
  if (!ranges_) return false;
  Result<bool> more = ranges_->Next();
  if (!more.has_value() || !*more) return more;
  ++description_.events;
  Range range;
  range.start_ns = ranges_->Integer(0);
  range.end_ns = ranges_->IsNull(1) ? kNever : ranges_->Integer(1);
  range.text = ranges_->Text(2).substr(0, 4096);
  range.thread = ranges_->Integer(3);
  range.nested = ranges_->Integer(4) != 0;
  if (!ranges_->IsNull(5)) range.payload = ranges_->Integer(5);
  if (range.end_ns < range.start_ns) {
    Warn("negative_duration", "a range ends before it begins: it is left out");
    range.text.clear();
  }
  range_ = std::move(range);
  return true;
}

Result<std::string> NsysSource::NameOf(std::int64_t id) {
  if (const auto found = names_.find(id); found != names_.end()) return found->second;
  if (!strings_) return std::string();
  strings_->Rewind();
  strings_->Bind(1, id);
  Result<bool> found = strings_->Next();
  if (!found.has_value() && lenient_ && found.error().code() == StatusCode::kDataLoss) {
    found = false;
  }
  if (!found.has_value()) return tl::unexpected(found.error());
  std::string name(*found ? strings_->Text(0) : std::string_view());
  strings_->Rewind();
  if (!*found) Warn("missing_string", "a kernel's name is not in StringIds: it has none");
  if (names_.size() >= kNameCache) names_.clear();
  names_.emplace(id, name);
  return name;
}

Result<KernelId> NsysSource::InternKernel(KernelRecord::Kind kind) {
  KernelSignature signature;
  const std::int64_t table = work_->Integer(kKind);
  if (kind == KernelRecord::Kind::kMemcpy) {
    const auto label = copy_kinds_.find(work_->Integer(kName));
    signature.name = "Memcpy";
    if (label != copy_kinds_.end()) signature.name += " " + label->second;
  } else if (kind == KernelRecord::Kind::kMemset) {
    signature.name = "Memset";
  } else if (table == 3) {
    signature.name = "CUDA graph";
  } else if (!work_->IsNull(kName)) {
    Result<std::string> name = NameOf(work_->Integer(kName));
    if (!name.has_value()) return tl::unexpected(name.error());
    signature.name = *std::move(name);
  }
  for (int i = 0; i < 3; ++i) {
    const auto axis = static_cast<std::size_t>(i);
    signature.grid[axis] = static_cast<std::uint32_t>(work_->Integer(kGrid + i));
    signature.block[axis] = static_cast<std::uint32_t>(work_->Integer(kBlock + i));
  }
  signature.shared_memory_bytes = static_cast<std::uint32_t>(work_->Integer(kShared));
  return kernels_.Intern(signature);
}

Result<bool> NsysSource::TakeWork(RecordBatch& batch) {
  KernelRecord record;
  record.kind = KindOf(work_->Integer(kKind));
  record.start_ns = work_->Integer(kStart);
  record.end_ns = work_->Integer(kEnd);
  record.device = static_cast<std::uint16_t>(work_->Integer(kDevice));
  record.stream = static_cast<std::uint32_t>(work_->Integer(kStream));
  if (record.start_ns == 0 && record.end_ns == 0) {
    batch.losses.push_back({.time_ns = 0,
                            .count = 1,
                            .where = LossRecord::Where::kDevice,
                            .reason = LossRecord::Reason::kInvalidTime});
    Gap("untimed", "work without times: the collector could not time it", 1, DurationNs());
    return NextWork();
  }
  if (record.end_ns < record.start_ns) {
    Warn("negative_duration", "work that ends before it begins: it is kept without a duration");
    record.end_ns = record.start_ns;
  }
  Result<KernelId> kernel = InternKernel(record.kind);
  if (!kernel.has_value()) return tl::unexpected(kernel.error());
  record.kernel = *kernel;
  record.op_class =
      record.kind == KernelRecord::Kind::kKernel ? kernels_.ClassOf(*kernel) : OpClass::kCopy;
  const DurationNs duration(record.end_ns - record.start_ns);
  if (work_->IsNull(kLaunch)) {
    Gap("unlaunched", "work whose launch was not recorded", 1, duration);
  } else {
    record.launch_known = true;
    record.launch_order = work_->Integer(kLaunch);
    const LaunchContext context = stacks_.At(work_->Integer(kThread), record.launch_order);
    record.phase = context.phase;
    record.op_known = context.op.has_value();
    record.op = context.op.value_or(kOverflowSignature);
    if (record.op_known && record.kind == KernelRecord::Kind::kKernel) {
      Gap("no_shapes", "ranges tell no element types of an op's tensors: FLOPs are unknown", 1,
          duration);
    }
  }
  if (work_->Integer(kKind) == 3) {
    Gap("graph_not_expanded",
        "CUDA graphs whose kernels were not recorded; record with --cuda-graph-trace=node", 1,
        duration);
  }
  batch.kernels.push_back(record);
  return NextWork();
}

bool NsysSource::TakeStep(const Range& range, RecordBatch& batch) {
  if (!IsStepName(range.text, step_names_)) return false;
  if (!step_thread_) step_thread_ = range.thread;
  if (*step_thread_ != range.thread) {
    Warn("steps_of_other_threads", "ranges named like steps on a second thread: " + range.text);
    return false;
  }
  // A step in a step is a part of it.
  if (range.start_ns < step_end_ns_) return false;
  const std::int64_t number = NumberInName(range.text).value_or(range.payload.value_or(next_step_));
  next_step_ = number == kNever ? number : number + 1;
  step_end_ns_ = range.end_ns;
  description_.steps.push_back(
      {.name = range.text, .number = number, .start_ns = range.start_ns, .end_ns = range.end_ns});
  batch.markers.push_back(
      {.time_ns = range.start_ns, .step = number, .kind = MarkerRecord::Kind::kStepBegin});
  batch.fences.push_back({.boundary_ns = range.start_ns, .launch_order = range.start_ns});
  if (range.end_ns != kNever) {
    ends_.push(
        {.time_ns = range.end_ns,
         .marker = {
             .time_ns = range.end_ns, .step = number, .kind = MarkerRecord::Kind::kStepEnd}});
  }
  return true;
}

std::optional<SignatureId> NsysSource::InternOp(std::string_view text, RangeStacks::Range& range) {
  const std::optional<OpRange> op = OpOfRange(text);
  if (!op) return std::nullopt;
  range.differentiable = op->differentiable;
  range.backward_node = op->backward_node;
  OpSignature signature{.name = std::string(op->name), .arguments = {}};
  if (!op->sizes.empty()) {
    // Sizes come without element types.
    for (std::vector<std::int64_t>& shape :
         ShapesOfText(op->sizes).value_or(std::vector<std::vector<std::int64_t>>{})) {
      signature.arguments.push_back({.kind = OpArgument::Kind::kTensor,
                                     .dtype = DType::kOther,
                                     .integers = std::move(shape)});
    }
  }
  return signatures_.Intern(signature);
}

void NsysSource::TakeRange(const Range& range, RecordBatch& batch) {
  if (range.text.empty()) return;
  if (TakeStep(range, batch)) return;
  RangeStacks::Range entry{.end_ns = range.end_ns};
  entry.op = InternOp(range.text, entry);
  if (!entry.op) entry.phase = PhaseOfRange(range.text);
  if (!entry.op && !entry.phase) return;
  if (range.nested) stacks_.Push(range.thread, range.start_ns, entry);
  if (!entry.phase || range.end_ns == kNever) return;
  // Sections are of the thread that steps; without steps, of the first that has sections.
  if (!section_thread_) section_thread_ = range.thread;
  if (step_thread_.value_or(*section_thread_) != range.thread) return;
  batch.markers.push_back({.time_ns = range.start_ns,
                           .kind = MarkerRecord::Kind::kSectionBegin,
                           .phase = *entry.phase});
  ends_.push({.time_ns = range.end_ns,
              .marker = {.time_ns = range.end_ns,
                         .kind = MarkerRecord::Kind::kSectionEnd,
                         .phase = *entry.phase}});
}

Result<bool> NsysSource::Read(RecordBatch& batch) {
  if (finished_) return false;
  if (!begun_) {
    if (Result<bool> begun = Begin(); !begun.has_value()) {
      finished_ = true;
      return begun;
    }
  }
  int ranges = 0;
  const std::size_t full = batch.kernels.size() + kWorkPerBatch;
  bool any = false;
  while (batch.kernels.size() < full && ranges < kRangesPerBatch) {
    const std::int64_t work_ns = have_work_ ? work_->Integer(kKey) : kNever;
    const std::int64_t range_ns = range_ ? range_->start_ns : kNever;
    const std::int64_t end_ns = ends_.empty() ? kNever : ends_.top().time_ns;
    Result<bool> taken = true;
    if (!ends_.empty() && end_ns <= range_ns && end_ns <= work_ns) {
      const MarkerRecord& end = ends_.top().marker;
      batch.markers.push_back(end);
      if (end.kind == MarkerRecord::Kind::kStepEnd) {
        batch.fences.push_back({.boundary_ns = end_ns, .launch_order = end_ns});
      }
      ends_.pop();
    } else if (range_ && range_ns <= work_ns) {
      TakeRange(*range_, batch);
      ++ranges;
      taken = NextRange();
    } else if (have_work_) {
      taken = TakeWork(batch);
    } else {
      break;
    }
    any = true;
    if (!taken.has_value()) {
      finished_ = true;
      return taken;
    }
  }
  if (progress_) {
    const std::int64_t rows = process_.rows > 0 ? process_.rows : 1;
    progress_(file_->bytes() / static_cast<std::uint64_t>(rows) *
                  static_cast<std::uint64_t>(work_ ? work_->row() : rows),
              file_->bytes());
  }
  if (!any) Finish();
  return any;
}

void NsysSource::Finish() {
  finished_ = true;
  work_.reset();
  ranges_.reset();
  strings_.reset();
  for (const std::string& table : {launches_, "work_" + index_, "ranges_" + index_}) {
    static_cast<void>(file_->Execute("temporary table", "DROP TABLE IF EXISTS temp." + table));
  }
  if (stacks_.too_deep() > 0) {
    Warn("too_deep", "ranges nested deeper than 1024: the inner ones are left out",
         stacks_.too_deep());
  }
}

bool IsNsys(std::string_view head, bool) { return head.starts_with("SQLite format 3"); }

Result<TraceSources> OpenNsys(const std::string& path, const TraceOptions& options) {
  Result<std::shared_ptr<SqliteFile>> file = SqliteFile::Open(path);
  if (!file.has_value()) return tl::unexpected(file.error());
  Result<NsysLayout> layout = NsysLayout::Read(**file);
  if (!layout.has_value()) return tl::unexpected(layout.error());
  if (!layout->HasGpuWork() && layout->nvtx.empty() && layout->runtime.empty()) {
    return InvalidArgument(path +
                           ": a SQLite file without any table of an Nsight Systems export; "
                           "accepted: what `nsys export --type sqlite` writes");
  }
  NsysLoss loss;
  Result<std::vector<NsysProcess>> processes =
      ReadNsysProcesses(**file, *layout, options.lenient, &loss);
  if (!processes.has_value()) return tl::unexpected(processes.error());
  TraceSources sources;
  if (processes->empty()) processes->push_back({});
  for (NsysProcess& process : *processes) {
    sources.push_back(std::make_unique<NsysSource>(*file, *layout, std::move(process),
                                                   static_cast<int>(sources.size()), options));
  }
  return sources;
}

}  // namespace flopledger
