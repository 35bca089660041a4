#ifndef FLOPLEDGER_HOST_OPS_H_
#define FLOPLEDGER_HOST_OPS_H_

/* The door for framework observers: a table of C functions, so that an observer which is compiled
 * against another C++ ABI (a PyTorch extension on the user's machine) can feed a session.
 *
 *     uint32_t id = ops->intern(ops->context, "aten::mm", arguments, 2);      once per signature
 *     ops->write(ops->context, &record);                                      once per op
 *
 * An op that launches work on a device also says when it begins and ends, so that its kernels are
 * known to be its own:
 *
 *     if (FLOPLEDGER_HOST_OPS_HAS(ops, push_op)) ops->push_op(ops->context, id, phase);
 *     ... the op launches ...
 *     ops->pop_op(ops->context);                                              on the same thread
 *
 * Thread: any. `write` is one lock-free write into the calling thread's own ring; `intern` locks.
 * Ownership: the table lives until the process ends, also after the session has closed; calls that
 * come later do nothing. Fails: never; what cannot be taken is counted as lost. */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes when a layout does; what is added at the end of the table changes its `size` alone. */
#define FLOPLEDGER_HOST_OPS_VERSION 1
/* Size of the table without what was added later: the least that an observer needs. */
#define FLOPLEDGER_HOST_OPS_FIRST_SIZE offsetof(flopledger_host_ops, push_op)
/* Is a function there that was added later, in a table that may be older than this header? */
#define FLOPLEDGER_HOST_OPS_HAS(ops, function)                                         \
  ((ops)->size >= offsetof(flopledger_host_ops, function) + sizeof((ops)->function) && \
   (ops)->function != NULL)

/* Numbers of flopledger::DType and flopledger::OpArgument::Kind. */
typedef struct flopledger_op_argument {
  uint8_t kind;
  uint8_t dtype;
  uint16_t reserved;
  uint32_t integer_count;
  const int64_t* integers;
  double real;
} flopledger_op_argument;

/* Numbers of flopledger::Phase; times are CLOCK_MONOTONIC nanoseconds. */
typedef struct flopledger_op_record {
  int64_t start_ns;
  int64_t end_ns;
  int64_t self_ns;
  uint32_t signature;
  uint8_t phase;
  uint8_t reserved[3];
} flopledger_op_record;

typedef struct flopledger_host_ops {
  uint32_t version; /* FLOPLEDGER_HOST_OPS_VERSION */
  uint32_t size;    /* sizeof(flopledger_host_ops) */
  void* context;
  uint32_t (*intern)(void* context, const char* name, const flopledger_op_argument* arguments,
                     uint32_t argument_count);
  void (*write)(void* context, const flopledger_op_record* record);
  /* An op that an exception ended: its FLOPs did not happen. */
  void (*aborted)(void* context, int64_t end_ns);
  /* Null unless a device's kernels may be recorded. What the calling thread launches between the
   * two is work of the innermost op. Only for ops that have a counting rule, and with tensors on
   * a device: each pair costs two calls into the device's library. */
  void (*push_op)(void* context, uint32_t signature, uint8_t phase);
  void (*pop_op)(void* context);
} flopledger_host_ops;

#ifdef __cplusplus
}
#endif
#endif
