#pragma once

#include <cupti.h>

#include <cstddef>
#include <cstdint>

// What is read of an activity record: the prefix that all struct versions of a kind share. The
// loaded library may be of another CUDA release than the headers, so its structs are not used; they
// only prove, below, that the prefixes are where they are said to be.

namespace flopledger {

#pragma pack(push, 1)

/// Of CUpti_ActivityKernel4 (CUDA 9.0) to 10 (CUDA 13.0).
struct KernelView {
  std::uint32_t kind;
  std::uint8_t skipped_head[12];
  std::uint64_t start;
  std::uint64_t end;
  std::uint64_t completed;
  std::uint32_t device;
  std::uint32_t context;
  std::uint32_t stream;
  std::uint32_t grid[3];
  std::uint32_t block[3];
  std::uint32_t static_shared_bytes;
  std::uint32_t dynamic_shared_bytes;
  std::uint32_t local_per_thread;
  std::uint32_t local_total;
  std::uint32_t correlation;
  std::int64_t grid_id;
  const char* name;
};

/// Of the MEMCPY and MEMSET records, whose heads differ in bytes that only a copy has.
struct CopyView {
  std::uint32_t kind;
  std::uint8_t copy_kind;
  std::uint8_t skipped_head[3];
  std::uint64_t bytes;
  std::uint64_t start;
  std::uint64_t end;
  std::uint32_t device;
  std::uint32_t context;
  std::uint32_t stream;
  std::uint32_t correlation;
};

/// Of the MEMCPY2 records (copies between devices).
struct PeerCopyView {
  CopyView copy;  // its correlation is the source device here
  std::uint32_t skipped[3];
  std::uint32_t correlation;
};

struct OverheadView {
  std::uint32_t kind;
  std::uint32_t overhead_kind;
  std::uint8_t skipped_object[16];
  std::uint64_t start;
  std::uint64_t end;
};

struct ExternalView {
  std::uint32_t kind;
  std::uint32_t external_kind;
  std::uint64_t external_id;
  std::uint32_t correlation;
  std::uint32_t reserved;
};

#pragma pack(pop)

/// Where Kernel5 and later keep the node of the graph that launched the kernel, and the first
/// version of the API that has it (CUDA 11.0).
inline constexpr std::size_t kGraphNodeOffset = 144;
inline constexpr std::uint32_t kGraphNodeVersion = 13;

#define FLOPLEDGER_SAME_PLACE(View, field, Struct, member) \
  static_assert(offsetof(View, field) == offsetof(Struct, member), #Struct "::" #member)
#define FLOPLEDGER_KERNEL_PREFIX(Struct)                                              \
  FLOPLEDGER_SAME_PLACE(KernelView, start, Struct, start);                            \
  FLOPLEDGER_SAME_PLACE(KernelView, end, Struct, end);                                \
  FLOPLEDGER_SAME_PLACE(KernelView, device, Struct, deviceId);                        \
  FLOPLEDGER_SAME_PLACE(KernelView, context, Struct, contextId);                      \
  FLOPLEDGER_SAME_PLACE(KernelView, stream, Struct, streamId);                        \
  FLOPLEDGER_SAME_PLACE(KernelView, grid, Struct, gridX);                             \
  FLOPLEDGER_SAME_PLACE(KernelView, block, Struct, blockX);                           \
  FLOPLEDGER_SAME_PLACE(KernelView, static_shared_bytes, Struct, staticSharedMemory); \
  FLOPLEDGER_SAME_PLACE(KernelView, correlation, Struct, correlationId);              \
  FLOPLEDGER_SAME_PLACE(KernelView, name, Struct, name);                              \
  static_assert(sizeof(KernelView) <= sizeof(Struct), #Struct)
#define FLOPLEDGER_COPY_PREFIX(Struct)                       \
  FLOPLEDGER_SAME_PLACE(CopyView, start, Struct, start);     \
  FLOPLEDGER_SAME_PLACE(CopyView, end, Struct, end);         \
  FLOPLEDGER_SAME_PLACE(CopyView, device, Struct, deviceId); \
  FLOPLEDGER_SAME_PLACE(CopyView, stream, Struct, streamId); \
  static_assert(sizeof(CopyView) <= sizeof(Struct), #Struct)

FLOPLEDGER_KERNEL_PREFIX(CUpti_ActivityKernel4);
FLOPLEDGER_KERNEL_PREFIX(CUpti_ActivityKernel5);
FLOPLEDGER_KERNEL_PREFIX(CUpti_ActivityKernel6);
FLOPLEDGER_KERNEL_PREFIX(CUpti_ActivityKernel7);
FLOPLEDGER_KERNEL_PREFIX(CUpti_ActivityKernel8);
static_assert(offsetof(CUpti_ActivityKernel5, graphNodeId) == kGraphNodeOffset);
static_assert(offsetof(CUpti_ActivityKernel8, graphNodeId) == kGraphNodeOffset);
FLOPLEDGER_COPY_PREFIX(CUpti_ActivityMemcpy5);
FLOPLEDGER_SAME_PLACE(CopyView, copy_kind, CUpti_ActivityMemcpy5, copyKind);
FLOPLEDGER_SAME_PLACE(CopyView, correlation, CUpti_ActivityMemcpy5, correlationId);
FLOPLEDGER_COPY_PREFIX(CUpti_ActivityMemset4);
FLOPLEDGER_SAME_PLACE(CopyView, correlation, CUpti_ActivityMemset4, correlationId);
FLOPLEDGER_COPY_PREFIX(CUpti_ActivityMemcpyPtoP4);
FLOPLEDGER_SAME_PLACE(PeerCopyView, correlation, CUpti_ActivityMemcpyPtoP4, correlationId);
FLOPLEDGER_SAME_PLACE(OverheadView, start, CUpti_ActivityOverhead, start);
FLOPLEDGER_SAME_PLACE(OverheadView, overhead_kind, CUpti_ActivityOverhead, overheadKind);
FLOPLEDGER_SAME_PLACE(ExternalView, external_id, CUpti_ActivityExternalCorrelation, externalId);
FLOPLEDGER_SAME_PLACE(ExternalView, correlation, CUpti_ActivityExternalCorrelation, correlationId);
#if CUPTI_API_VERSION >= 19
FLOPLEDGER_KERNEL_PREFIX(CUpti_ActivityKernel9);
#endif
#if CUPTI_API_VERSION >= 130000
FLOPLEDGER_KERNEL_PREFIX(CUpti_ActivityKernel10);
static_assert(offsetof(CUpti_ActivityKernel10, graphNodeId) == kGraphNodeOffset);
FLOPLEDGER_COPY_PREFIX(CUpti_ActivityMemcpy6);
FLOPLEDGER_SAME_PLACE(CopyView, correlation, CUpti_ActivityMemcpy6, correlationId);
FLOPLEDGER_SAME_PLACE(OverheadView, start, CUpti_ActivityOverhead3, start);
#endif

#undef FLOPLEDGER_COPY_PREFIX
#undef FLOPLEDGER_KERNEL_PREFIX
#undef FLOPLEDGER_SAME_PLACE

}  // namespace flopledger
