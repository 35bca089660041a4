#include "fake_engine.h"

#include <time.h>

#include <algorithm>
#include <cstring>

namespace fakecupti {
namespace {

// What another tool's callbacks do: one buffer of its own, over and over.
alignas(8) std::uint8_t other_memory[1 << 16];

void OtherRequest(std::uint8_t** memory, std::size_t* size) {
  std::memset(other_memory, 0, sizeof(other_memory));
  *memory = other_memory;
  *size = sizeof(other_memory);
}
void OtherComplete(std::uint8_t*, std::size_t, std::size_t) {}

}  // namespace

Engine& Engine::Get() {
  static auto* const engine = new Engine;  // never freed: threads of the client may outlive main
  return *engine;
}

// Takes no memory once it has seen a name: clients are tested for allocations through it.
CUptiResult Engine::Enter(std::string_view name, int kind) {
  ++all_calls_;
  std::lock_guard lock(mutex_);
  auto calls = calls_.find(name);
  if (calls == calls_.end()) calls = calls_.emplace(name, 0).first;
  ++calls->second;
  if (!any_failure_.load(std::memory_order_relaxed)) return CUPTI_SUCCESS;
  for (const std::string& key :
       {std::string(name) + ":" + std::to_string(kind), std::string(name)}) {
    auto found = failures_.find(key);
    if (found == failures_.end() || found->second.times == 0) continue;
    if (found->second.times > 0) --found->second.times;
    return static_cast<CUptiResult>(found->second.code);
  }
  return CUPTI_SUCCESS;
}

CUptiResult Engine::Register(Request request, Complete complete, bool v2) {
  std::lock_guard lock(mutex_);
  if (Mixed(v2)) return CUPTI_ERROR_NOT_COMPATIBLE;
  if (!request || !complete) return CUPTI_ERROR_INVALID_PARAMETER;
  family_ = v2 ? 2 : 1;
  request_ = std::move(request);
  complete_ = std::move(complete);
  return CUPTI_SUCCESS;
}

CUptiResult Engine::Enable(int kind, bool on, bool v2) {
  std::lock_guard lock(mutex_);
  if (Mixed(v2)) return CUPTI_ERROR_NOT_COMPATIBLE;
  if (on) {
    kinds_.insert(kind);
  } else {
    kinds_.erase(kind);
  }
  return CUPTI_SUCCESS;
}

CUptiResult Engine::EnableApi(int runtime, std::uint32_t callback_id, bool on, bool v2) {
  std::lock_guard lock(mutex_);
  if (Mixed(v2)) return CUPTI_ERROR_NOT_COMPATIBLE;
  if (on) {
    apis_.emplace(runtime, callback_id);
  } else {
    apis_.erase({runtime, callback_id});
  }
  return CUPTI_SUCCESS;
}

CUptiResult Engine::Flush(std::uint32_t flags) {
  std::lock_guard lock(mutex_);
  const bool forced = (flags & CUPTI_ACTIVITY_FLAG_FLUSH_FORCED) != 0;
  if (forced) {
    for (auto& buffer : withheld_) ready_.push_back(*buffer);
    withheld_.clear();
    if (current_) current_->unfinished.clear();  // handed out as they are, once
  }
  if (current_ && current_->unfinished.empty()) CompleteCurrent();
  Deliver();
  return CUPTI_SUCCESS;
}

CUptiResult Engine::Dropped(std::size_t* count, bool v2) {
  if (Mixed(v2)) return CUPTI_ERROR_NOT_COMPATIBLE;
  *count = dropped.exchange(0);
  return CUPTI_SUCCESS;
}

CUptiResult Engine::Subscribe(CUpti_SubscriberHandle* handle, bool v2) {
  std::lock_guard lock(mutex_);
  if (!v2 && (subscribed_ || subscribed_by_other)) {
    return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  }
  subscribed_ = true;
  *handle = reinterpret_cast<CUpti_SubscriberHandle>(this);
  return CUPTI_SUCCESS;
}

CUptiResult Engine::Unsubscribe(CUpti_SubscriberHandle handle) {
  std::lock_guard lock(mutex_);
  if (handle != reinterpret_cast<CUpti_SubscriberHandle>(this)) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  subscribed_ = false;
  return CUPTI_SUCCESS;
}

CUptiResult Engine::SetAttribute(CUpti_ActivityAttribute attribute, const void* value) {
  std::lock_guard lock(mutex_);
  if (attribute == CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER) {
    zeroed_ = *static_cast<const std::uint8_t*>(value) != 0;
  }
  return CUPTI_SUCCESS;
}

CUptiResult Engine::Finalize() {
  TakeOver(true);
  return CUPTI_SUCCESS;
}

std::uint64_t Engine::Timestamp() const {
  std::uint64_t now = clock_ns.load();
  if (now == 0) {
    timespec time{};
    clock_gettime(CLOCK_REALTIME, &time);
    now = static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
  }
  return now + clock_jump_ns.load();
}

// Kind 0: whether or not it is enabled.
void Engine::Append(int kind, const void* record, std::size_t size) {
  std::lock_guard lock(mutex_);
  if (kind != 0 && !kinds_.contains(kind)) return;
  if (std::uint8_t* place = Reserve(size)) std::memcpy(place, record, size);
}

void Engine::AppendKernel(const fakecupti_kernel& kernel) {
  // Written as the newest struct and cut to the size of the one in use: a prefix of each other.
  CUpti_ActivityKernel10 record{};
  record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  record.start = kernel.start;
  record.end = kernel.end;
  record.deviceId = kernel.device;
  record.contextId = kernel.context;
  record.streamId = kernel.stream;
  record.gridX = kernel.grid[0];
  record.gridY = kernel.grid[1];
  record.gridZ = kernel.grid[2];
  record.blockX = kernel.block[0];
  record.blockY = kernel.block[1];
  record.blockZ = kernel.block[2];
  record.staticSharedMemory = kernel.static_shared_bytes;
  record.dynamicSharedMemory = kernel.dynamic_shared_bytes;
  record.correlationId = kernel.correlation;
  record.name = kernel.name;
  record.graphNodeId = kernel.graph_node;
  record.graphId = kernel.graph;
  record.isDeviceLaunched = kernel.launched_by_device;

  std::lock_guard lock(mutex_);
  if (!kinds_.contains(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)) return;
  const std::size_t size = KernelRecordSize(kernel_record);
  std::uint8_t* place = Reserve(size);
  if (place == nullptr) return;
  std::memcpy(place, &record, size);
  if (kernel.end == 0 && kernel.start != 0) {
    current_->unfinished.emplace_back(
        kernel.correlation, place - current_->memory + offsetof(CUpti_ActivityKernel10, end));
  }
}

std::uint8_t* Engine::Reserve(std::size_t size) {
  const std::size_t limit = records_per_buffer;
  if (current_ &&
      (current_->size - current_->used < size || (limit != 0 && current_->records >= limit))) {
    CompleteCurrent();
    Deliver();
  }
  if (!current_ && !RequestBuffer(size)) {
    ++dropped;
    ++dropped_total;
    return nullptr;
  }
  std::uint8_t* place = current_->memory + current_->used;
  current_->used += size;
  ++current_->records;
  return place;
}

bool Engine::RequestBuffer(std::size_t record_size) {
  if (!request_) return false;
  Buffer buffer;
  ++requests;
  request_(&buffer.memory, &buffer.size);
  if (buffer.memory == nullptr || buffer.size == 0) {
    ++refused;
    if (version < 27) ++violations;  // the real one crashes
    return false;
  }
  CheckBuffer(buffer.memory, buffer.size);
  ++outstanding;
  if (buffer.size < record_size) {
    Return(buffer);
    return false;
  }
  current_ = std::make_unique<Buffer>(std::move(buffer));
  return true;
}

void Engine::CheckBuffer(const std::uint8_t* memory, std::size_t size) {
  if (reinterpret_cast<std::uintptr_t>(memory) % 8 != 0) ++violations;
  if (!held_memory_.insert(const_cast<std::uint8_t*>(memory)).second) ++violations;
  const bool clean = memory[0] == 0 && std::memcmp(memory, memory + 1, size - 1) == 0;
  if (zeroed_ && !clean) ++violations;
}

void Engine::CompleteCurrent() {
  if (!current_->unfinished.empty()) {
    withheld_.push_back(std::move(current_));
    return;
  }
  ready_.push_back(std::move(*current_));
  current_.reset();
}

void Engine::Deliver() {
  if (hold_ || ready_.empty()) return;
  if (use_thread_) {
    wake_.notify_one();
    return;
  }
  std::deque<Buffer> buffers = std::move(ready_);
  ready_.clear();
  if (shuffle_seed != 0) {
    std::mt19937 random(shuffle_seed);
    std::shuffle(buffers.begin(), buffers.end(), random);
    shuffle_seed = random();
  }
  for (const Buffer& buffer : buffers) {
    if (keep > 0) {
      --keep;
      kept_.push_back(buffer);
      continue;
    }
    Return(buffer);
  }
}

void Engine::Return(const Buffer& buffer) {
  held_memory_.erase(buffer.memory);
  --outstanding;
  complete_(buffer.memory, buffer.size, buffer.used);
}

void Engine::DeliveryLoop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    wake_.wait(lock, [this] { return stop_thread_ || (!ready_.empty() && !hold_); });
    if (ready_.empty() || hold_) return;
    const Buffer buffer = ready_.front();
    ready_.pop_front();
    if (keep > 0) {
      --keep;
      kept_.push_back(buffer);
      continue;
    }
    held_memory_.erase(buffer.memory);
    --outstanding;
    delivering_ = true;
    auto complete = complete_;
    lock.unlock();  // the library's own thread: beside requests, flushes and other completions
    complete(buffer.memory, buffer.size, buffer.used);
    lock.lock();
    delivering_ = false;
    delivered_.notify_all();
  }
}

void Engine::Reset() {
  UseThread(false);
  std::lock_guard lock(mutex_);
  failures_.clear();
  any_failure_ = false;
  calls_.clear();
  all_calls_ = 0;
  request_ = nullptr;
  complete_ = nullptr;
  family_ = 0;
  subscribed_ = zeroed_ = hold_ = false;
  kinds_.clear();
  apis_.clear();
  current_.reset();
  withheld_.clear();
  ready_.clear();
  held_memory_.clear();
  kept_.clear();
  version = 130001;
  kernel_record = 10;
  clock_ns = 0;
  clock_jump_ns = 0;
  next_correlation = 1;
  records_per_buffer = 0;
  shuffle_seed = 0;
  keep = 0;
  subscribed_by_other = false;
  requests = refused = violations = dropped_total = 0;
  outstanding = 0;
  dropped = 0;
}

void Engine::Fail(const std::string& function, int code, int times) {
  std::lock_guard lock(mutex_);
  failures_[function] = {.code = code, .times = times};
  any_failure_ = true;
}

void Engine::Finish(std::uint32_t correlation, std::uint64_t end) {
  std::lock_guard lock(mutex_);
  auto finish = [&](Buffer& buffer) {
    for (auto& [id, offset] : buffer.unfinished) {
      if (id == correlation) std::memcpy(buffer.memory + offset, &end, sizeof(end));
    }
    std::erase_if(buffer.unfinished, [&](const auto& entry) { return entry.first == correlation; });
  };
  if (current_) finish(*current_);
  for (auto& buffer : withheld_) finish(*buffer);
  for (auto& buffer : withheld_) {
    if (buffer->unfinished.empty()) ready_.push_back(*buffer);
  }
  std::erase_if(withheld_, [](const auto& buffer) { return buffer->unfinished.empty(); });
  Deliver();
}

void Engine::Hold(bool on) {
  std::lock_guard lock(mutex_);
  hold_ = on;
  Deliver();
}

void Engine::UseThread(bool on) {
  std::unique_lock lock(mutex_);
  if (on == use_thread_) return;
  use_thread_ = on;
  stop_thread_ = !on;
  if (on) {
    thread_ = std::thread([this] { DeliveryLoop(); });
    return;
  }
  wake_.notify_all();
  std::thread thread = std::move(thread_);
  lock.unlock();
  thread.join();
  lock.lock();
  Deliver();
}

void Engine::WaitDelivered() {
  std::unique_lock lock(mutex_);
  delivered_.wait(lock,
                  [this] { return !use_thread_ || ((ready_.empty() || hold_) && !delivering_); });
}

// Another tool ends the library's session (`finalize`), or puts its own callbacks in our place.
void Engine::TakeOver(bool finalize) {
  std::lock_guard lock(mutex_);
  // Buffers of ours are gone with the session: the tool that did it does not know them.
  current_.reset();
  withheld_.clear();
  ready_.clear();
  kinds_.clear();
  apis_.clear();
  family_ = 0;
  request_ = nullptr;
  complete_ = nullptr;
  if (!finalize) {
    request_ = OtherRequest;
    complete_ = OtherComplete;
    family_ = 1;
    kinds_.insert(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  }
}

void Engine::ReturnKept() {
  std::lock_guard lock(mutex_);
  for (const Buffer& buffer : kept_) {
    std::memset(buffer.memory, 0xAB, 8);  // still the library's to write to
    Return(buffer);
  }
  kept_.clear();
}

void Engine::BlockFlush(bool on) {
  std::lock_guard lock(mutex_);
  block_flush_ = on;
  flush_allowed_.notify_all();
}

void Engine::WaitFlushAllowed() {
  std::unique_lock lock(mutex_);
  flush_allowed_.wait(lock, [this] { return !block_flush_; });
}

bool Engine::KindEnabled(int kind) {
  std::lock_guard lock(mutex_);
  return kinds_.contains(kind);
}

std::uint64_t Engine::Calls(const char* function) {
  if (function == nullptr) return all_calls_;
  std::lock_guard lock(mutex_);
  auto found = calls_.find(function);
  return found == calls_.end() ? 0 : found->second;
}

}  // namespace fakecupti
