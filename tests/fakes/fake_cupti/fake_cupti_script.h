#pragma once

#include <cstddef>
#include <cstdint>

/// What a test tells the double of libcupti (and of libcuda) to do. The double is a shared library
/// with the name, the symbols and the version node of the real one; these entry points are extra.
///
///     fakecupti_reset();
///     const uint32_t launch = fakecupti_launch();           // on the launching thread
///     fakecupti_kernel kernel{.name = "gemm", .start = 100, .end = 200, .correlation = launch};
///     fakecupti_add_kernel(&kernel);                        // any thread, any order, any time
///     ... source->Drain(batch) ...                          // flushes and decodes
///
/// Times are on the library's clock (`cuptiGetTimestamp`): CLOCK_REALTIME, or what
/// `fakecupti_set_clock` said. Records of kinds that nobody enabled are ignored, as in the real
/// one. A separate client process takes what holds from the start from the variable
/// FAKECUPTI_SCRIPT, commands with semicolons between (`version 26; fail cuptiActivityEnable 39 -1;
/// subscribed 1`), and may call `fakecupti_run` with more (`kernels 1000; drop 5`).
extern "C" {

struct fakecupti_kernel {
  const char* name;  ///< kept by pointer, as the library does
  uint64_t start;
  uint64_t end;  ///< 0 with a start: unfinished; see fakecupti_finish
  uint32_t device;
  uint32_t context;
  uint32_t stream;
  uint32_t correlation;
  int32_t grid[3];
  int32_t block[3];
  int32_t static_shared_bytes;
  int32_t dynamic_shared_bytes;
  uint64_t graph_node;  ///< not 0: a node of a graph
  uint32_t graph;
  uint8_t launched_by_device;
};

/// Everything as after loading; buffers in the double's hands are forgotten, not returned.
void fakecupti_reset(void);

// ---- what the library is
void fakecupti_set_version(uint32_t api_version);      ///< default 130001
void fakecupti_set_kernel_record(int struct_version);  ///< 4 to 10 (default)
/// The next `times` calls (-1: all) of a function answer `code`. A kind after a colon narrows it:
/// `cuptiActivityEnable:10`.
void fakecupti_fail(const char* function, int code, int times);
void fakecupti_set_clock(uint64_t now_ns);  ///< 0: CLOCK_REALTIME again
void fakecupti_step_clock(int64_t jump_ns);

// ---- what the process does
uint32_t fakecupti_launch(void);        ///< a traced cuLaunchKernel; its correlation id
uint32_t fakecupti_graph_launch(void);  ///< a traced cuGraphLaunch
/// A traced call of the driver (`runtime` 0) or runtime by its callback id.
uint32_t fakecupti_api_call(int runtime, uint32_t callback_id);
void fakecupti_set_next_correlation(uint32_t id);

// ---- what the device reports
void fakecupti_add_kernel(const struct fakecupti_kernel* kernel);
void fakecupti_finish(uint32_t correlation, uint64_t end);
/// `copy_kind` as CUpti_ActivityMemcpyKind; `peer` not 0: a MEMCPY2 record.
void fakecupti_add_memcpy(uint64_t start, uint64_t end, uint32_t device, uint32_t stream,
                          uint32_t correlation, uint8_t copy_kind, int peer);
void fakecupti_add_memset(uint64_t start, uint64_t end, uint32_t device, uint32_t stream,
                          uint32_t correlation);
void fakecupti_add_overhead(int overhead_kind, uint64_t start, uint64_t end);
void fakecupti_add_external(int external_kind, uint64_t id, uint32_t correlation);
void fakecupti_add_marker(void);  ///< a record that a collector of kernels has no use for
/// Bytes as they are, kind included; the kind's size is not looked at.
void fakecupti_add_raw(const void* bytes, size_t size);
void fakecupti_drop(size_t records);  ///< lost inside; the next query reports them

// ---- how buffers travel
void fakecupti_set_records_per_buffer(size_t count);  ///< 0: until full
void fakecupti_hold(int on);                          ///< complete no buffer until released
void fakecupti_shuffle(uint32_t seed);   ///< deliver held buffers in a random order; 0: in order
void fakecupti_use_thread(int on);       ///< deliver from a thread of the library
void fakecupti_wait_delivered(void);     ///< until that thread has nothing left
void fakecupti_keep_buffers(int count);  ///< do not return this many of the next buffers
void fakecupti_return_kept(void);        ///< write to them and return them after all

// ---- what others do
void fakecupti_finalize_by_other(void);
void fakecupti_register_by_other(void);  ///< another tool's activity callbacks replace ours
void fakecupti_subscribe_by_other(int on);
void fakecupti_flush_forced(void);   ///< hands out unfinished kernels, with end 0
void fakecupti_block_flush(int on);  ///< cuptiActivityFlushAll waits until this is off again

// ---- what was seen
/// Nullptr: of all functions, also readable in a forked child.
uint64_t fakecupti_calls(const char* function);
uint64_t fakecupti_requests(void);
uint64_t fakecupti_requests_refused(void);
int64_t fakecupti_outstanding(void);  ///< buffers in the double's hands
uint64_t fakecupti_dropped_total(void);
/// Breaches of the contract: NULL below API version 27, a buffer handed out twice, not aligned,
/// or not zeroed though the client said that it zeroes.
uint64_t fakecupti_violations(void);
int fakecupti_kind_enabled(int kind);
int fakecupti_depth(int external_kind);  ///< pushed ids of the calling thread

void fakecupti_run(const char* script);

// ---- the double of libcuda
void fakecuda_set_devices(int count);
}
