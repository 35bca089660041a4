// The entry points of fake_cupti_script.h, and the commands of FAKECUPTI_SCRIPT.

#include <cstdlib>
#include <cstring>
#include <sstream>

#include "fake_engine.h"

using fakecupti::Engine;

#define FAKECUPTI_EXPORT __attribute__((visibility("default")))

extern "C" {

FAKECUPTI_EXPORT void fakecupti_reset() { Engine::Get().Reset(); }
FAKECUPTI_EXPORT void fakecupti_set_version(std::uint32_t version) {
  Engine::Get().version = version;
}
FAKECUPTI_EXPORT void fakecupti_set_kernel_record(int version) {
  Engine::Get().kernel_record = version;
}
FAKECUPTI_EXPORT void fakecupti_fail(const char* function, int code, int times) {
  Engine::Get().Fail(function, code, times);
}
FAKECUPTI_EXPORT void fakecupti_set_clock(std::uint64_t now_ns) { Engine::Get().clock_ns = now_ns; }
FAKECUPTI_EXPORT void fakecupti_step_clock(std::int64_t jump_ns) {
  Engine::Get().clock_jump_ns += jump_ns;
}

FAKECUPTI_EXPORT std::uint32_t fakecupti_api_call(int runtime, std::uint32_t callback_id) {
  return Engine::Get().ApiCall(runtime, callback_id);
}
FAKECUPTI_EXPORT std::uint32_t fakecupti_launch() {
  return Engine::Get().ApiCall(0, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel);
}
FAKECUPTI_EXPORT std::uint32_t fakecupti_graph_launch() {
  return Engine::Get().ApiCall(0, CUPTI_DRIVER_TRACE_CBID_cuGraphLaunch);
}
FAKECUPTI_EXPORT void fakecupti_set_next_correlation(std::uint32_t id) {
  Engine::Get().next_correlation = id;
}

FAKECUPTI_EXPORT void fakecupti_add_kernel(const fakecupti_kernel* kernel) {
  Engine::Get().AppendKernel(*kernel);
}
FAKECUPTI_EXPORT void fakecupti_finish(std::uint32_t correlation, std::uint64_t end) {
  Engine::Get().Finish(correlation, end);
}

FAKECUPTI_EXPORT void fakecupti_add_memcpy(std::uint64_t start, std::uint64_t end,
                                           std::uint32_t device, std::uint32_t stream,
                                           std::uint32_t correlation, std::uint8_t copy_kind,
                                           int peer) {
  if (peer != 0) {
    CUpti_ActivityMemcpyPtoP4 record{};
    record.kind = CUPTI_ACTIVITY_KIND_MEMCPY2;
    record.copyKind = copy_kind;
    record.start = start;
    record.end = end;
    record.deviceId = device;
    record.streamId = stream;
    record.correlationId = correlation;
    Engine::Get().Append(record.kind, &record, sizeof(record));
    return;
  }
  CUpti_ActivityMemcpy6 record{};
  record.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  record.copyKind = copy_kind;
  record.start = start;
  record.end = end;
  record.deviceId = device;
  record.streamId = stream;
  record.correlationId = correlation;
  Engine::Get().Append(record.kind, &record, sizeof(record));
}

FAKECUPTI_EXPORT void fakecupti_add_memset(std::uint64_t start, std::uint64_t end,
                                           std::uint32_t device, std::uint32_t stream,
                                           std::uint32_t correlation) {
  CUpti_ActivityMemset4 record{};
  record.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  record.start = start;
  record.end = end;
  record.deviceId = device;
  record.streamId = stream;
  record.correlationId = correlation;
  Engine::Get().Append(record.kind, &record, sizeof(record));
}

FAKECUPTI_EXPORT void fakecupti_add_overhead(int kind, std::uint64_t start, std::uint64_t end) {
  CUpti_ActivityOverhead3 record{};
  record.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
  record.overheadKind = static_cast<CUpti_ActivityOverheadKind>(kind);
  record.start = start;
  record.end = end;
  Engine::Get().Append(record.kind, &record, sizeof(record));
}

FAKECUPTI_EXPORT void fakecupti_add_external(int kind, std::uint64_t id,
                                             std::uint32_t correlation) {
  CUpti_ActivityExternalCorrelation record{};
  record.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
  record.externalKind = static_cast<CUpti_ExternalCorrelationKind>(kind);
  record.externalId = id;
  record.correlationId = correlation;
  Engine::Get().Append(record.kind, &record, sizeof(record));
}

FAKECUPTI_EXPORT void fakecupti_add_marker() {
  CUpti_ActivityMarker2 record{};
  record.kind = CUPTI_ACTIVITY_KIND_MARKER;
  Engine::Get().Append(0, &record, sizeof(record));
}

FAKECUPTI_EXPORT void fakecupti_add_raw(const void* bytes, std::size_t size) {
  Engine::Get().Append(0, bytes, size);
}

FAKECUPTI_EXPORT void fakecupti_drop(std::size_t records) {
  Engine::Get().dropped += records;
  Engine::Get().dropped_total += records;
}

FAKECUPTI_EXPORT void fakecupti_set_records_per_buffer(std::size_t count) {
  Engine::Get().records_per_buffer = count;
}
FAKECUPTI_EXPORT void fakecupti_hold(int on) { Engine::Get().Hold(on != 0); }
FAKECUPTI_EXPORT void fakecupti_shuffle(std::uint32_t seed) { Engine::Get().shuffle_seed = seed; }
FAKECUPTI_EXPORT void fakecupti_use_thread(int on) { Engine::Get().UseThread(on != 0); }
FAKECUPTI_EXPORT void fakecupti_wait_delivered() { Engine::Get().WaitDelivered(); }
FAKECUPTI_EXPORT void fakecupti_keep_buffers(int count) { Engine::Get().keep = count; }

FAKECUPTI_EXPORT void fakecupti_finalize_by_other() { Engine::Get().TakeOver(true); }
FAKECUPTI_EXPORT void fakecupti_register_by_other() { Engine::Get().TakeOver(false); }
FAKECUPTI_EXPORT void fakecupti_return_kept() { Engine::Get().ReturnKept(); }
FAKECUPTI_EXPORT void fakecupti_flush_forced() {
  Engine::Get().Flush(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
}
FAKECUPTI_EXPORT void fakecupti_block_flush(int on) { Engine::Get().BlockFlush(on != 0); }
FAKECUPTI_EXPORT void fakecupti_subscribe_by_other(int on) {
  Engine::Get().subscribed_by_other = on != 0;
}

FAKECUPTI_EXPORT std::uint64_t fakecupti_calls(const char* function) {
  return Engine::Get().Calls(function);
}
FAKECUPTI_EXPORT std::uint64_t fakecupti_requests() { return Engine::Get().requests; }
FAKECUPTI_EXPORT std::uint64_t fakecupti_requests_refused() { return Engine::Get().refused; }
FAKECUPTI_EXPORT std::int64_t fakecupti_outstanding() { return Engine::Get().outstanding; }
FAKECUPTI_EXPORT std::uint64_t fakecupti_dropped_total() { return Engine::Get().dropped_total; }
FAKECUPTI_EXPORT std::uint64_t fakecupti_violations() { return Engine::Get().violations; }
FAKECUPTI_EXPORT int fakecupti_kind_enabled(int kind) {
  return Engine::Get().KindEnabled(kind) ? 1 : 0;
}
FAKECUPTI_EXPORT int fakecupti_depth(int kind) {
  return Engine::Get().Depth(static_cast<CUpti_ExternalCorrelationKind>(kind));
}

}  // extern "C"

namespace fakecupti {
namespace {

// One after another on one stream, 1 us each from now, every one of its own launch.
void RunKernels(std::uint64_t count) {
  std::uint64_t time = Engine::Get().Timestamp();
  for (std::uint64_t i = 0; i < count; ++i) {
    const fakecupti_kernel kernel{.name = "fake_kernel",
                                  .start = time,
                                  .end = time + 1000,
                                  .stream = 7,
                                  .correlation = fakecupti_launch(),
                                  .grid = {1, 1, 1},
                                  .block = {128, 1, 1}};
    Engine::Get().AppendKernel(kernel);
    time += 1000;
  }
}

void RunCommand(const std::string& command) {
  std::istringstream words(command);
  std::string verb, function;
  std::uint64_t number = 0;
  int code = 0, times = 0;
  words >> verb;
  if (verb == "fail") {
    words >> function >> code >> times;
    Engine::Get().Fail(function, code, times);
    return;
  }
  words >> number;
  if (verb == "version") {
    Engine::Get().version = static_cast<std::uint32_t>(number);
  } else if (verb == "kernels") {
    RunKernels(number);
  } else if (verb == "drop") {
    fakecupti_drop(number);
  } else if (verb == "subscribed") {
    Engine::Get().subscribed_by_other = number != 0;
  }
}

__attribute__((constructor)) void OnLoad() {
  if (const char* script = std::getenv("FAKECUPTI_SCRIPT")) RunScript(script);
}

}  // namespace

void RunScript(const char* text) {
  std::istringstream commands(text);
  std::string command;
  while (std::getline(commands, command, ';')) RunCommand(command);
}

}  // namespace fakecupti

extern "C" FAKECUPTI_EXPORT void fakecupti_run(const char* script) { fakecupti::RunScript(script); }
