// The observer of PyTorch ops: a record-function callback that hands every op, with the shapes of
// those that can be counted, to a session through the C table of flopledger/host_ops.h.
//
// Compiled on the user's machine against the torch that is installed there, hence alone: torch's
// headers and the C table only. NDEBUG is part of its contract: without it RecordFunction::inputs()
// checks a member that a release build of torch never sets.

#ifndef NDEBUG
#error "compile with -DNDEBUG: torch's own build has it, and the layouts must agree"
#endif

#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/record_function.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <pthread.h>
#include <time.h>
#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <string_view>
#include <vector>

#if __has_include(<torch/headeronly/version.h>)  // not before torch 2.8, as the four-bit type
#include <torch/headeronly/version.h>
#endif

#include "flopledger/host_ops.h"
#include "op_key.h"

namespace flopledger::observer {
namespace {

// Numbers of flopledger::OpArgument::Kind, flopledger::DType and flopledger::Phase.
enum Kind : std::uint8_t { kNone, kTensor, kInteger, kIntegerList, kBoolean, kReal, kText };
enum Type : std::uint8_t { kFp64, kFp32, kTf32, kFp16, kBf16, kFp8, kFp4, kInt8, kOther };
enum Phase : std::uint8_t { kForward = 0, kBackward = 1, kRecompute = 2 };

constexpr std::size_t kMostIntegers = 16;  // of one argument; longer lists are no shapes

constexpr std::array kCountedOps = {
#include "counted_ops.inc"
};

std::atomic<const flopledger_host_ops*> g_ops{nullptr};
std::atomic<std::uint32_t> g_session{0};  // changes with every install: numbers belong to a session
std::atomic<bool> g_installed{false};
at::CallbackHandle g_callback = 0;

/// An op that is running on this thread.
struct Frame {
  const at::RecordFunction* function;
  std::int64_t start_ns;
  std::int64_t children_ns;
  int exceptions;  ///< in flight when it began
  int graph_task;
  std::uint32_t signature;
  Phase phase;
  bool counted;           ///< by a rule, from its arguments
  bool contains_counted;  ///< then it is a caller and the one inside is the kernel
  bool contains_aborted;
  bool pushed;  ///< what it launches is known to be its own
};

struct ThreadState {
  std::uint32_t session = 0;
  std::uint32_t composite = 0;
  NameTable names;
  SignatureCache signatures;
  KeyBuffer key;
  std::vector<Frame> frames;
};

// A plain pointer and a plain flag stay readable while a thread ends, when torch may still run ops.
thread_local ThreadState* t_state = nullptr;
thread_local bool t_ended = false;

struct ThreadStateOwner {
  ThreadState state;
  ~ThreadStateOwner() {
    t_state = nullptr;
    t_ended = true;
  }
};

ThreadState* StateOfThread() {
  if (t_state != nullptr || t_ended) return t_state;
  static thread_local ThreadStateOwner owner;
  owner.state.frames.reserve(64);
  t_state = &owner.state;
  return t_state;
}

std::int64_t NowNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

Type TypeOf(c10::ScalarType type) {
  switch (type) {
    case c10::ScalarType::Double:
      return kFp64;
    case c10::ScalarType::Float:
      return kFp32;
    case c10::ScalarType::Half:
      return kFp16;
    case c10::ScalarType::BFloat16:
      return kBf16;
    case c10::ScalarType::Float8_e5m2:
    case c10::ScalarType::Float8_e4m3fn:
    case c10::ScalarType::Float8_e5m2fnuz:
    case c10::ScalarType::Float8_e4m3fnuz:
      return kFp8;
#ifdef TORCH_VERSION_MAJOR
    case c10::ScalarType::Float4_e2m1fn_x2:
      return kFp4;
#endif
    case c10::ScalarType::Char:
      return kInt8;
    default:
      return kOther;
  }
}

// Tensors that stand for others: the op is dispatched again on what they wrap, and counted there.
// Tensors without data are shapes only: nothing runs. (The wrappers of torch.func.grad have the
// shape of what they wrap, and the op on that is not seen again.)
bool StandsForAnother(const c10::TensorImpl& tensor) {
  using c10::DispatchKey;
  const c10::DispatchKeySet keys = tensor.key_set();
  return keys.has(DispatchKey::Python) || keys.has(DispatchKey::Functionalize) ||
         keys.has(DispatchKey::FuncTorchBatched) ||
         keys.has_backend(c10::BackendComponent::MetaBit);
}

bool HasPlainShape(const c10::TensorImpl& tensor) {
  using c10::DispatchKey;
  const c10::DispatchKeySet keys = tensor.key_set();
  return !tensor.has_symbolic_sizes_strides() &&
         !keys.has_any(c10::DispatchKeySet(
             {DispatchKey::Sparse, DispatchKey::SparseCsr, DispatchKey::NestedTensor}));
}

/// Writes one argument; false if the op stands for another. `*on_gpu` becomes true for a tensor
/// whose ops are launched on a device of NVIDIA (or AMD, where torch calls it the same).
bool PushTensor(const at::Tensor& tensor, KeyBuffer* key, bool* on_gpu) {
  if (!tensor.defined()) {
    key->PushArgument(kNone, kOther, 0);
    return true;
  }
  const c10::TensorImpl& impl = *tensor.unsafeGetTensorImpl();
  if (StandsForAnother(impl)) return false;
  *on_gpu |= impl.key_set().has_backend(c10::BackendComponent::CUDABit);
  if (!HasPlainShape(impl) || impl.dim() > static_cast<std::int64_t>(kMostIntegers)) {
    key->PushArgument(kNone, kOther, 0);
    return true;
  }
  const c10::IntArrayRef sizes = impl.sizes();
  key->PushArgument(kTensor, TypeOf(c10::typeMetaToScalarType(impl.dtype())), sizes.size());
  for (std::int64_t size : sizes) key->Push(size);
  return true;
}

template <typename List>
void PushList(const List& list, KeyBuffer* key) {
  if (list.size() > kMostIntegers) {
    key->PushArgument(kNone, kOther, 0);
    return;
  }
  key->PushArgument(kIntegerList, kOther, list.size());
  for (std::size_t i = 0; i < list.size(); ++i) key->Push(static_cast<std::int64_t>(list.get(i)));
}

// Real numbers by kind only: no rule needs one, and a learning rate would make a new signature
// with every step.
bool PushArgument(const c10::IValue& value, KeyBuffer* key, bool* on_gpu) {
  if (value.isTensor()) return PushTensor(value.toTensor(), key, on_gpu);
  if (value.isBool()) {
    key->PushArgument(kBoolean, kOther, 1);
    key->Push(value.toBool() ? 1 : 0);
  } else if (value.isInt()) {
    key->PushArgument(kInteger, kOther, 1);
    key->Push(value.toInt());
  } else if (value.isIntList()) {
    PushList(value.toIntList(), key);
  } else if (value.isBoolList()) {
    PushList(value.toBoolList(), key);
  } else {
    key->PushArgument(value.isDouble() ? kReal : value.isString() ? kText : kNone, kOther, 0);
  }
  return true;
}

std::uint32_t InternName(const flopledger_host_ops& ops, const char* name) {
  return ops.intern(ops.context, name, nullptr, 0);
}

/// The slow half: the first time that this thread meets a signature.
std::uint32_t InternKey(const flopledger_host_ops& ops, const NameEntry& name,
                        const std::vector<std::int64_t>& words) {
  std::vector<flopledger_op_argument> arguments;
  for (std::size_t i = 1; i < words.size();) {
    const std::size_t count = KeyBuffer::CountOf(words[i]);
    flopledger_op_argument argument{};
    argument.kind = KeyBuffer::KindOf(words[i]);
    argument.dtype = KeyBuffer::TypeOf(words[i]);
    argument.integer_count = static_cast<std::uint32_t>(count);
    argument.integers = count == 0 ? nullptr : &words[i + 1];
    arguments.push_back(argument);
    i += 1 + count;
  }
  return ops.intern(ops.context, name.name.c_str(), arguments.data(),
                    static_cast<std::uint32_t>(arguments.size()));
}

NameEntry* InsertName(const char* name, std::size_t length, std::uint64_t hash,
                      ThreadState* state) {
  const std::string_view text(name, length);
  NameEntry entry;
  entry.name = std::string(text);
  entry.hash = hash;
  entry.ignored = text.substr(0, 18) == "autograd::engine::";
  entry.counted = std::find(kCountedOps.begin(), kCountedOps.end(), text) != kCountedOps.end();
  if (NameEntry* inserted = state->names.Insert(entry)) return inserted;
  state->signatures.Clear();  // its keys hold indices of names that are gone
  return state->names.Insert(std::move(entry));
}

NameEntry* NameOf(const char* name, ThreadState* state) {
  const std::size_t length = std::strlen(name);
  const std::uint64_t hash = NameTable::HashOf(name, length);
  if (NameEntry* entry = state->names.Find(name, length, hash)) return entry;
  return InsertName(name, length, hash, state);
}

/// Number of the signature of this call. `*counted` becomes false if the op only stands for
/// another.
std::uint32_t SignatureOf(const flopledger_host_ops& ops, const at::RecordFunction& function,
                          NameEntry* name, ThreadState* state, bool* counted, bool* on_gpu) {
  if (!name->counted) {
    if (name->signature == 0) name->signature = InternName(ops, name->name.c_str());
    return name->signature;
  }
  // A dispatch mode in Python gets the op first. It may answer from a cache (selective
  // checkpointing) or call the op again, which then comes here without it.
  if (c10::impl::TorchDispatchModeTLS::any_modes_set()) {
    *counted = false;
    return state->composite;
  }
  state->key.Reset(name->index);
  for (const c10::IValue& input : function.inputs()) {
    if (!PushArgument(input, &state->key, on_gpu)) {
      *counted = false;
      return state->composite;
    }
  }
  const std::uint64_t hash = state->key.Hash();
  if (const std::uint32_t* known = state->signatures.Find(state->key.words(), hash)) return *known;
  const std::uint32_t signature = InternKey(ops, *name, state->key.words());
  state->signatures.Insert(state->key.words(), hash, signature);
  return signature;
}

// Inside of the engine, forward work is a replay; it is told by grad mode, which backward turns
// off. An autograd.Function turns it off for its forward, too: what runs inside of a replayed
// function is replayed.
Phase PhaseNow(int graph_task, const ThreadState& state) {
  if (graph_task == -1) return kForward;
  if (c10::GradMode::is_enabled()) return kRecompute;
  if (!state.frames.empty() && state.frames.back().graph_task == graph_task &&
      state.frames.back().phase == kRecompute) {
    return kRecompute;
  }
  return kBackward;
}

void StartSession(const flopledger_host_ops& ops, std::uint32_t session, ThreadState* state) {
  state->names.Clear();
  state->signatures.Clear();
  state->frames.clear();
  state->composite = InternName(ops, "flopledger::composite");
  state->session = session;
}

void Begin(const at::RecordFunction& function) {
  const flopledger_host_ops* ops = g_ops.load(std::memory_order_acquire);
  if (ops == nullptr) return;
  ThreadState* state = StateOfThread();
  if (state == nullptr) return;
  const std::uint32_t session = g_session.load(std::memory_order_relaxed);
  if (state->session != session) StartSession(*ops, session, state);
  NameEntry* name = NameOf(function.name(), state);
  if (name == nullptr || name->ignored) return;

  Frame frame{};
  frame.function = &function;
  frame.exceptions = std::uncaught_exceptions();
  frame.graph_task = torch::autograd::get_current_graph_task_id();
  frame.phase = PhaseNow(frame.graph_task, *state);
  frame.counted = name->counted;
  bool on_gpu = false;
  frame.signature = SignatureOf(*ops, function, name, state, &frame.counted, &on_gpu);
  frame.pushed = on_gpu && frame.counted && FLOPLEDGER_HOST_OPS_HAS(ops, push_op);
  frame.start_ns = NowNs();
  state->frames.push_back(frame);
  // Last of all: nothing may fail between a push and the frame that remembers it.
  if (frame.pushed) ops->push_op(ops->context, frame.signature, frame.phase);
}

void Pop(const flopledger_host_ops* ops, const Frame& frame) {
  if (frame.pushed && ops != nullptr) ops->pop_op(ops->context);
}

/// The frame of this function, on top of the stack. Frames above it never saw their end (observing
/// was off for a while) and are dropped.
bool Unwind(const flopledger_host_ops* ops, const at::RecordFunction& function,
            std::vector<Frame>* frames) {
  for (std::size_t i = frames->size(); i > 0; --i) {
    if ((*frames)[i - 1].function != &function) continue;
    for (; frames->size() > i; frames->pop_back()) Pop(ops, frames->back());
    return true;
  }
  return false;
}

void Write(const flopledger_host_ops& ops, const Frame& frame, std::int64_t end_ns,
           std::uint32_t composite) {
  const bool caller = frame.counted && frame.contains_counted;
  const std::int64_t wall_ns = end_ns - frame.start_ns;
  flopledger_op_record record{};
  record.start_ns = frame.start_ns;
  record.end_ns = end_ns;
  record.self_ns = std::max<std::int64_t>(0, wall_ns - frame.children_ns);
  record.signature = caller ? composite : frame.signature;
  record.phase = frame.phase;
  ops.write(ops.context, &record);
}

void End(const at::RecordFunction& function) {
  ThreadState* state = t_state;
  if (state == nullptr || state->frames.empty()) return;
  const std::int64_t end_ns = NowNs();
  const flopledger_host_ops* ops = g_ops.load(std::memory_order_acquire);
  if (state->session != g_session.load(std::memory_order_relaxed)) ops = nullptr;
  if (!Unwind(ops, function, &state->frames)) return;
  const Frame frame = state->frames.back();
  Pop(ops, frame);
  state->frames.pop_back();
  const bool aborted = std::uncaught_exceptions() > frame.exceptions;
  if (!state->frames.empty()) {
    Frame& parent = state->frames.back();
    parent.children_ns += end_ns - frame.start_ns;
    parent.contains_counted |= frame.counted || frame.contains_counted;
    parent.contains_aborted |= aborted;
  }
  if (ops == nullptr) return;
  if (!aborted) {
    Write(*ops, frame, end_ns, state->composite);
  } else if (!frame.contains_aborted) {
    ops->aborted(ops->context, end_ns);  // once for an exception, not for every caller it passes
  }
}

std::unique_ptr<at::ObserverContext> OnStart(const at::RecordFunction& function) {
  try {
    Begin(function);
  } catch (...) {  // NOLINT(bugprone-empty-catch): the op goes unseen, the training goes on
  }
  return nullptr;
}

void OnEnd(const at::RecordFunction& function, at::ObserverContext*) {
  try {
    End(function);
  } catch (...) {  // NOLINT(bugprone-empty-catch): as above
  }
}

void StopInForkedChild() { g_ops.store(nullptr, std::memory_order_release); }

}  // namespace
}  // namespace flopledger::observer

#define FLOPLEDGER_OBSERVER_EXPORT extern "C" __attribute__((visibility("default")))

/// What this file promises to its loader.
FLOPLEDGER_OBSERVER_EXPORT std::uint32_t flopledger_observer_abi_version() { return 1; }

/// 0 done; 1 already installed; 2 the table is of another version; 3 a function is missing; 4 torch
/// refused the callback.
FLOPLEDGER_OBSERVER_EXPORT int flopledger_observer_install(const flopledger_host_ops* ops) {
  using namespace flopledger::observer;  // NOLINT(google-build-using-namespace)
  if (ops == nullptr || ops->version != FLOPLEDGER_HOST_OPS_VERSION ||
      ops->size < FLOPLEDGER_HOST_OPS_FIRST_SIZE) {
    return 2;
  }
  if (ops->intern == nullptr || ops->write == nullptr || ops->aborted == nullptr) return 3;
  if (g_installed.exchange(true)) return 1;
  static const int fork_handler = pthread_atfork(nullptr, nullptr, StopInForkedChild);
  (void)fork_handler;
  g_session.fetch_add(1);
  g_ops.store(ops, std::memory_order_release);
  try {
    g_callback = at::addGlobalCallback(at::RecordFunctionCallback(OnStart, OnEnd)
                                           .needsInputs(true)
                                           .scopes({at::RecordScope::FUNCTION}));
  } catch (...) {
    g_ops.store(nullptr, std::memory_order_release);
    g_installed.store(false);
    return 4;
  }
  return 0;
}

/// Ops that are running go unseen. The table may not be freed: another thread may be inside of it.
FLOPLEDGER_OBSERVER_EXPORT void flopledger_observer_remove() {
  using namespace flopledger::observer;  // NOLINT(google-build-using-namespace)
  if (!g_installed.exchange(false)) return;
  g_ops.store(nullptr, std::memory_order_release);
  try {
    at::removeCallback(g_callback);
  } catch (...) {  // NOLINT(bugprone-empty-catch): without a table the callback does nothing
  }
}
