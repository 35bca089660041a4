#pragma once

#include "flopledger/records.h"

namespace flopledger {

/// An origin of records: an observer in the process, a device's activity buffers, a trace file.
///
/// Thread: `Drain` from one thread; the source may be fed from any number of others.
/// Fails: never; what a source cannot hold it counts as a `LossRecord`.
class RecordSource {
 public:
  virtual ~RecordSource() = default;
  /// Appends everything that has arrived since the last call, ops before markers.
  virtual void Drain(RecordBatch& batch) = 0;
  /// No record is taken any more; what was taken can still be drained.
  virtual void Stop() = 0;
};

}  // namespace flopledger
