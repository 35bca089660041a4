// A flopledger_host_ops table that keeps what an observer writes, for tests in Python. Times the
// real ring's work as little as possible: a write is one copy into memory that is already there.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <vector>

#include "flopledger/host_ops.h"

namespace {

struct Argument {
  flopledger_op_argument head;
  std::vector<std::int64_t> integers;
};

struct Signature {
  std::string name;
  std::vector<Argument> arguments;
};

struct Recorder {
  flopledger_host_ops table{};
  std::mutex mutex;
  std::vector<Signature> signatures{1};  // number 0 is "the table is full"
  std::vector<flopledger_op_record> records;
  std::atomic<std::uint64_t> written{0};
  std::atomic<std::uint64_t> aborted{0};
  std::atomic<std::uint64_t> interned{0};
  std::atomic<std::uint64_t> pushed{0};
  std::atomic<std::uint64_t> popped{0};
};

bool Same(const Signature& signature, const char* name, const flopledger_op_argument* arguments,
          std::uint32_t count) {
  if (signature.name != name || signature.arguments.size() != count) return false;
  for (std::uint32_t i = 0; i < count; ++i) {
    const Argument& known = signature.arguments[i];
    if (known.head.kind != arguments[i].kind || known.head.dtype != arguments[i].dtype ||
        known.head.real != arguments[i].real ||
        known.integers.size() != arguments[i].integer_count ||
        !std::equal(known.integers.begin(), known.integers.end(), arguments[i].integers)) {
      return false;
    }
  }
  return true;
}

std::uint32_t Intern(void* context, const char* name, const flopledger_op_argument* arguments,
                     std::uint32_t count) {
  auto* recorder = static_cast<Recorder*>(context);
  recorder->interned.fetch_add(1);
  const std::lock_guard<std::mutex> lock(recorder->mutex);
  for (std::size_t i = 1; i < recorder->signatures.size(); ++i) {
    if (Same(recorder->signatures[i], name, arguments, count)) return static_cast<uint32_t>(i);
  }
  Signature signature{name, {}};
  for (std::uint32_t i = 0; i < count; ++i) {
    const flopledger_op_argument& argument = arguments[i];
    signature.arguments.push_back(
        {argument, {argument.integers, argument.integers + argument.integer_count}});
  }
  recorder->signatures.push_back(std::move(signature));
  return static_cast<std::uint32_t>(recorder->signatures.size() - 1);
}

void Write(void* context, const flopledger_op_record* record) {
  auto* recorder = static_cast<Recorder*>(context);
  const std::uint64_t index = recorder->written.fetch_add(1);
  if (index < recorder->records.size()) recorder->records[index] = *record;
}

void PushOp(void* context, std::uint32_t, std::uint8_t) {
  static_cast<Recorder*>(context)->pushed.fetch_add(1);
}

void PopOp(void* context) { static_cast<Recorder*>(context)->popped.fetch_add(1); }

void Aborted(void* context, std::int64_t) { static_cast<Recorder*>(context)->aborted.fetch_add(1); }

}  // namespace

extern "C" {

Recorder* recorder_create(std::uint64_t capacity) {
  auto* recorder = new Recorder;
  recorder->records.resize(capacity);
  recorder->table = {FLOPLEDGER_HOST_OPS_VERSION,
                     sizeof(flopledger_host_ops),
                     recorder,
                     Intern,
                     Write,
                     Aborted,
                     PushOp,
                     PopOp};
  return recorder;
}
const flopledger_host_ops* recorder_table(Recorder* recorder) { return &recorder->table; }
std::uint64_t recorder_written(Recorder* recorder) { return recorder->written; }
std::uint64_t recorder_aborted(Recorder* recorder) { return recorder->aborted; }
std::uint64_t recorder_pushed(Recorder* recorder) { return recorder->pushed; }
std::uint64_t recorder_popped(Recorder* recorder) { return recorder->popped; }
/// A table as older sessions made it: without what was added later.
void recorder_make_old(Recorder* recorder) {
  recorder->table.size = FLOPLEDGER_HOST_OPS_FIRST_SIZE;
}
std::uint64_t recorder_interned(Recorder* recorder) { return recorder->interned; }
std::uint64_t recorder_signature_count(Recorder* recorder) { return recorder->signatures.size(); }
const flopledger_op_record* recorder_records(Recorder* recorder) {
  return recorder->records.data();
}
void recorder_clear(Recorder* recorder) {
  recorder->written = 0;
  recorder->aborted = 0;
  recorder->interned = 0;
}
const char* recorder_name(Recorder* recorder, std::uint64_t signature) {
  return recorder->signatures[signature].name.c_str();
}
std::uint64_t recorder_argument_count(Recorder* recorder, std::uint64_t signature) {
  return recorder->signatures[signature].arguments.size();
}
/// The argument with its integers, which live as long as the recorder.
void recorder_argument(Recorder* recorder, std::uint64_t signature, std::uint64_t index,
                       flopledger_op_argument* out) {
  const Argument& argument = recorder->signatures[signature].arguments[index];
  *out = argument.head;
  out->integers = argument.integers.data();
}

}  // extern "C"
