#ifndef FLOPLEDGER_HOST_OPS_H_
#define FLOPLEDGER_HOST_OPS_H_

/* The door for framework observers: a table of C functions, so that an observer which is compiled
 * against another C++ ABI (a PyTorch extension on the user's machine) can feed a session.
 *
 *     uint32_t id = ops->intern(ops->context, "aten::mm", arguments, 2);      once per signature
 *     ops->write(ops->context, &record);                                      once per op
 *
 * Thread: any. `write` is one lock-free write into the calling thread's own ring; `intern` locks.
 * Ownership: the table lives until the process ends, also after the session has closed; calls that
 * come later do nothing. Fails: never; what cannot be taken is counted as lost. */

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FLOPLEDGER_HOST_OPS_VERSION 1

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
} flopledger_host_ops;

#ifdef __cplusplus
}
#endif
#endif
