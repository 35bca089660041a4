#include "collect/trace/kineto_source.h"

#include <set>
#include <utility>

#include "collect/trace/kineto_decoder.h"
#include "collect/trace/kineto_document.h"
#include "collect/trace/trace_formats.h"

namespace flopledger {
namespace {

TextInput::Options InputOptions(const TraceOptions& options) {
  return {.max_inflated_bytes = options.max_inflated_bytes,
          .lenient = options.lenient,
          .progress = options.progress};
}

}  // namespace

KinetoSource::KinetoSource(TextPart text, std::string name, const TraceOptions& options)
    : TraceSource(options), options_(options), text_(std::move(text)) {
  description_.format = "kineto";
  description_.name = std::move(name);
}

Result<bool> KinetoSource::Read(RecordBatch& batch) {
  if (linker_ == nullptr) {
    if (Result<bool> loaded = Load(); !loaded.has_value()) return loaded;
  }
  const std::size_t before = batch.kernels.size();
  const bool more = linker_->Next(batch);
  for (std::size_t i = before; i < batch.kernels.size(); ++i) {
    KernelRecord& kernel = batch.kernels[i];
    kernel.op_class = kernel.kind == KernelRecord::Kind::kKernel ? kernels_.ClassOf(kernel.kernel)
                                                                 : OpClass::kCopy;
  }
  for (OpRecord& op : batch.ops) op.op_class = signatures_.ClassOf(op.signature);
  return more;
}

Result<bool> KinetoSource::Load() {
  KinetoDocument document(text_, options_.lenient);
  KinetoDecoder decoder(options_, kernels_, signatures_);
  const Result<bool> read = document.ReadAll(decoder);
  if (!read.has_value()) return read;
  WarnOfText(document);
  WarnOfEvents(decoder);
  Describe(document, decoder);
  KinetoRecords records = std::move(decoder.records());
  const std::int64_t base = records.base_ns.value_or(0);
  std::int64_t sum = 0;
  for (const KinetoWork& work : records.work) {
    if (__builtin_add_overflow(work.record.end_ns, base, &sum)) records.base_ns.reset();
  }
  linker_ = std::make_unique<KinetoLinker>(std::move(records), signatures_, options_.countable);
  for (const KinetoStep& step : linker_->steps()) {
    description_.steps.push_back({.name = step.name,
                                  .number = step.number,
                                  .start_ns = step.start_ns + linker_->base_ns(),
                                  .end_ns = step.end_ns + linker_->base_ns()});
  }
  WarnOfLinks(linker_->counts());
  return true;
}

void KinetoSource::Describe(const KinetoDocument& document, const KinetoDecoder& decoder) {
  description_.rank = decoder.rank();
  description_.world_size = decoder.world_size();
  description_.events = document.events();
  description_.text_bytes = document.text_bytes();
  if (document.window().text().input() != nullptr) {
    description_.file_bytes = document.window().text().input()->file_bytes();
  }
  std::set<std::uint16_t> working;
  for (const KinetoWork& work : decoder.records().work) {
    working.insert(work.record.device);
  }
  for (const std::uint16_t device : working) {
    DeviceDescription found{.device = device};
    for (const DeviceDescription& described : decoder.devices()) {
      if (described.device == device) found = described;
    }
    description_.devices.push_back(found);
  }
  for (const auto& [name, counter] : decoder.ranges().counters) {
    description_.counters.push_back({.name = name, .sum = counter.sum, .ranges = counter.ranges});
  }
  if (decoder.ranges().uncounted_matmuls > 0) {
    Gap("counters_without_multiply_adds",
        "matmul kernels whose counters saw no multiply-add: tensor cores have other counters",
        decoder.ranges().uncounted_matmuls, DurationNs());
  }
}

void KinetoSource::WarnOfText(const KinetoDocument& document) {
  const auto warn = [this](std::string_view kind, std::int64_t count, std::string_view text) {
    if (count > 0) Warn(kind, text, count);
  };
  warn("byte_order_mark", document.byte_order_mark() ? 1 : 0,
       "the text begins with a byte order mark, which JSON does not have");
  const TextInput* input = document.window().text().input();
  if (input != nullptr && input->compressed()) {
    warn("several_gzip_members", input->members() > 1 ? input->members() : 0,
         "the file is several gzip members one after the other; they are one text");
    warn("gzip_padding", static_cast<std::int64_t>(input->padding_bytes()),
         "zeros after the gzip stream");
    warn("foreign_bytes", static_cast<std::int64_t>(input->foreign_bytes()),
         "bytes after the gzip stream that are no gzip");
    warn("gzip_damaged", input->damage().empty() ? 0 : 1, "the gzip stream is damaged: cut there");
  }
  const JsonTokens::Repairs& repairs = document.window().tokens().repairs();
  warn("not_a_number", repairs.not_numbers, "inf or nan, which JSON does not have");
  warn("trailing_comma", repairs.trailing_commas, "a comma with nothing after it");
  warn("invalid_escape", repairs.escapes, "a backslash that escapes nothing");
  warn("control_character", document.window().control_characters(),
       "a control character in a string");
  warn("invalid_utf8", document.window().broken_text(), "stretches of text that are no UTF-8");
  warn("unreadable_event", document.lost().events, "events that are no JSON: lost");
  warn("unterminated", document.lost().unterminated ? 1 : 0,
       "the array or object of the document is not closed; no event is lost by that");
  warn("cut", document.lost().cut ? 1 : 0,
       "the text ends inside of a value: that one and what came after it are lost");
  description_.cut = document.lost().cut;
  if (!document.has_events()) Warn("no_events", "the document has no traceEvents");
}

void KinetoSource::WarnOfEvents(const KinetoDecoder& decoder) {
  const auto warn = [this](std::string_view kind, std::int64_t count, std::string_view text) {
    if (count > 0) Warn(kind, text, count);
  };
  const KinetoDecoder::Oddities& odd = decoder.oddities();
  warn("string_number", odd.string_numbers, "times that are written as strings");
  warn("unreadable_time", odd.unreadable, "events without a time that can be read: left out");
  warn("negative_duration", odd.negative_durations,
       "events that end before they begin: counted, without time");
  warn("missing_fields", odd.missing_fields,
       "device events without device, stream or correlation id");
  warn("huge_id", odd.huge_ids, "ids that a double cannot hold: read as integers");
  warn("too_many_threads", odd.threads_refused, "ops of more threads than can be told apart");
  if (odd.ops_without_shapes > 0) {
    Gap("no_shapes", "ops with a counting rule whose shapes were not recorded",
        odd.ops_without_shapes, DurationNs());
  }
}

void KinetoSource::WarnOfLinks(const KinetoLinkCounts& counts) {
  const auto warn = [this](std::string_view kind, std::int64_t count, std::string_view text) {
    if (count > 0) Warn(kind, text, count);
  };
  warn("untimed", counts.untimed, "device work without a time that can be: counted, without time");
  warn("starts_before_launch", counts.before_launch,
       "device work that begins more than 5 us before its launch: its time is not believed");
  warn("shared_correlation", counts.shared_correlation,
       "several pieces of device work with the correlation id of one launch that is no graph");
  warn("duplicate_event", counts.duplicates,
       "device work that is recorded twice: counted twice, busy once");
  if (description_.devices.empty()) Warn("no_device_work", "the trace has no work of a device");
  if (counts.unlaunched > 0) {
    Gap("unlaunched",
        "device work whose launch is not recorded (launched before the window, or by a call that "
        "the collector does not trace): kept, placed by its start",
        counts.unlaunched, DurationNs(counts.unlaunched_ns));
  }
}

bool IsKineto(std::string_view head, bool compressed) {
  if (head.substr(0, 3) == "\xef\xbb\xbf") head.remove_prefix(3);
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return compressed;
  return head[first] == '{' || head[first] == '[' || IsTar(head);
}

Result<TraceSources> OpenKineto(const std::string& path, const TraceOptions& options) {
  auto text = std::make_shared<SharedText>(path, InputOptions(options));
  std::string head(4096, '\0');
  std::size_t filled = 0;
  while (filled < head.size()) {
    const Result<std::size_t> got =
        text->ReadAt(filled, head.data() + filled, head.size() - filled);
    if (!got.has_value()) return tl::unexpected<Status>(got.error());
    if (*got == 0) break;
    filled += *got;
  }
  head.resize(filled);
  if (head.empty()) {
    return Fail(StatusCode::kDataLoss, path + ": byte 0, line 1: the text of the file is empty");
  }
  TraceSources sources;
  if (!IsTar(head)) {
    sources.push_back(std::make_unique<KinetoSource>(TextPart(std::move(text)), "", options));
    return sources;
  }
  const Result<std::vector<TarMember>> members = ListTar(text);
  if (!members.has_value()) return tl::unexpected<Status>(members.error());
  for (const TarMember& member : *members) {
    sources.push_back(std::make_unique<KinetoSource>(TextPart(text, member.begin, member.size),
                                                     member.name, options));
  }
  if (sources.empty()) return InvalidArgument(path + ": the archive has no files");
  return sources;
}

}  // namespace flopledger
