#pragma once

#include <cupti.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "fake_cupti_script.h"

namespace fakecupti {

/// Buffers of activity records as the library keeps them: filled one at a time, completed when
/// full or flushed, withheld while a kernel in them is unfinished.
///
/// Callbacks run under the engine's lock unless the delivery thread runs them: a client that calls
/// the library out of a callback, or flushes under a lock of its own that its callbacks take,
/// hangs.
class Engine {
 public:
  static Engine& Get();

  // What the client's calls come to. `name` counts the call and finds a scripted failure.
  CUptiResult Enter(std::string_view name, int kind = 0);
  using Request = std::function<void(std::uint8_t** memory, std::size_t* size)>;
  using Complete = std::function<void(std::uint8_t* memory, std::size_t size, std::size_t used)>;
  CUptiResult Register(Request request, Complete complete, bool v2);
  CUptiResult Enable(int kind, bool on, bool v2);
  CUptiResult EnableApi(int runtime, std::uint32_t callback_id, bool on, bool v2);
  CUptiResult Flush(std::uint32_t flags);
  CUptiResult Dropped(std::size_t* count, bool v2);
  CUptiResult Subscribe(CUpti_SubscriberHandle* handle, bool v2);
  CUptiResult Unsubscribe(CUpti_SubscriberHandle handle);
  CUptiResult SetAttribute(CUpti_ActivityAttribute attribute, const void* value);
  CUptiResult Push(CUpti_ExternalCorrelationKind kind, std::uint64_t id, bool v2);
  CUptiResult Pop(CUpti_ExternalCorrelationKind kind, std::uint64_t* last, bool v2);
  CUptiResult Finalize();
  std::uint64_t Timestamp() const;

  std::uint32_t ApiCall(int runtime, std::uint32_t callback_id);
  void Append(int kind, const void* record, std::size_t size);
  void AppendKernel(const fakecupti_kernel& kernel);

  // The script's side.
  void Reset();
  void Fail(const std::string& function, int code, int times);
  void Finish(std::uint32_t correlation, std::uint64_t end);
  void Hold(bool on);
  void UseThread(bool on);
  void WaitDelivered();
  void TakeOver(bool finalize);
  void ReturnKept();
  void BlockFlush(bool on);
  void WaitFlushAllowed();
  bool KindEnabled(int kind);
  std::uint64_t Calls(const char* function);
  int Depth(CUpti_ExternalCorrelationKind kind);

  std::atomic<std::uint32_t> version{130001};
  std::atomic<int> kernel_record{10};
  std::atomic<std::uint64_t> clock_ns{0};
  std::atomic<std::int64_t> clock_jump_ns{0};
  std::atomic<std::uint32_t> next_correlation{1};
  std::atomic<std::size_t> records_per_buffer{0};
  std::atomic<std::uint32_t> shuffle_seed{0};
  std::atomic<int> keep{0};
  std::atomic<bool> subscribed_by_other{false};
  std::atomic<std::uint64_t> requests{0}, refused{0}, violations{0}, dropped_total{0};
  std::atomic<std::int64_t> outstanding{0};
  std::atomic<std::size_t> dropped{0};

 private:
  struct Buffer {
    std::uint8_t* memory = nullptr;
    std::size_t size = 0;
    std::size_t used = 0;
    std::size_t records = 0;
    std::vector<std::pair<std::uint32_t, std::size_t>> unfinished;  // correlation, offset of end
  };
  struct Failure {
    int code = 0;
    int times = 0;
  };

  bool Mixed(bool v2) const { return family_ != 0 && family_ != (v2 ? 2 : 1); }
  std::uint8_t* Reserve(std::size_t size);  // in the current buffer, or nullptr: dropped
  bool RequestBuffer(std::size_t record_size);
  void CompleteCurrent();
  void Deliver();
  void Return(const Buffer& buffer);
  void DeliveryLoop();
  void CheckBuffer(const std::uint8_t* memory, std::size_t size);

  std::mutex mutex_;
  std::condition_variable delivered_;
  std::map<std::string, Failure, std::less<>> failures_;
  std::atomic<bool> any_failure_{false};
  std::map<std::string, std::uint64_t, std::less<>> calls_;
  std::atomic<std::uint64_t> all_calls_{0};
  Request request_;
  Complete complete_;
  int family_ = 0;  // 1 or 2 once callbacks are registered
  bool subscribed_ = false;
  bool zeroed_ = false;
  std::set<int> kinds_;
  std::set<std::pair<int, std::uint32_t>> apis_;
  std::unique_ptr<Buffer> current_;
  std::vector<std::unique_ptr<Buffer>> withheld_;  // full, with an unfinished kernel
  std::deque<Buffer> ready_;
  std::set<std::uint8_t*> held_memory_;
  std::vector<Buffer> kept_;
  bool block_flush_ = false;
  std::condition_variable flush_allowed_;
  bool hold_ = false;
  bool use_thread_ = false;
  bool stop_thread_ = false;
  bool delivering_ = false;
  std::condition_variable wake_;
  std::thread thread_;
};

/// Size of a kernel record of a struct version, 4 to 10.
std::size_t KernelRecordSize(int struct_version);
/// Size of a record by its kind; 0: unknown here.
std::size_t RecordSize(int kind, int kernel_struct_version);
/// Runs the commands of FAKECUPTI_SCRIPT.
void RunScript(const char* text);

}  // namespace fakecupti
