#include "session/process_hooks.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "base/sync.h"

// The handler of a signal may do next to nothing: it sets a flag that the workers look at, and
// starts a timer whose only act is to send the signal again. The handler is gone after its first
// call, so the second signal, ours or anybody's, ends the process.

namespace flopledger {
namespace {

struct Listeners {
  Mutex mutex;
  std::vector<std::weak_ptr<ProcessListener>> all FLOPLEDGER_GUARDED_BY(mutex);
};

Listeners& AllListeners() {
  static auto* const listeners = new Listeners;  // outlives every thread
  return *listeners;
}

std::atomic<int> hooks{0};
std::atomic<bool> pending{false};
std::atomic<bool> timer_ready{false};
timer_t last_resort;

constexpr time_t kLastResortSeconds = 2;

void OnTerminate(int) {
  pending.store(true, std::memory_order_relaxed);
  if (timer_ready.load(std::memory_order_relaxed)) {
    itimerspec when{};
    when.it_value.tv_sec = kLastResortSeconds;
    timer_settime(last_resort, 0, &when, nullptr);
  }
}

void RestoreDefault() noexcept {
  struct sigaction now{};
  if (sigaction(SIGTERM, nullptr, &now) != 0 || now.sa_handler != &OnTerminate) return;
  struct sigaction standard{};
  standard.sa_handler = SIG_DFL;
  sigaction(SIGTERM, &standard, nullptr);
}

// One takes the lock, another gives it back: more than the analysis can follow.
FLOPLEDGER_NO_THREAD_SAFETY_ANALYSIS void BeforeFork() { AllListeners().mutex.lock(); }
FLOPLEDGER_NO_THREAD_SAFETY_ANALYSIS void AfterForkInParent() { AllListeners().mutex.unlock(); }
FLOPLEDGER_NO_THREAD_SAFETY_ANALYSIS void AfterForkInChild() {
  Listeners& listeners = AllListeners();
  for (const auto& weak : listeners.all) {
    if (const auto listener = weak.lock()) listener->BecomeInert();
  }
  listeners.all.clear();
  listeners.mutex.unlock();
  hooks.store(0, std::memory_order_relaxed);
  timer_ready.store(false, std::memory_order_relaxed);  // timers are not inherited
  RestoreDefault();
}

}  // namespace

void ListenToForks(const std::weak_ptr<ProcessListener>& listener) {
  static const int registered = pthread_atfork(&BeforeFork, &AfterForkInParent, &AfterForkInChild);
  static_cast<void>(registered);
  Listeners& listeners = AllListeners();
  MutexLock lock(listeners.mutex);
  std::erase_if(listeners.all, [](const auto& weak) { return weak.expired(); });
  listeners.all.push_back(listener);
}

std::unique_ptr<TerminationHook> TerminationHook::Install() {
  struct sigaction now{};
  if (sigaction(SIGTERM, nullptr, &now) != 0) return nullptr;
  const bool ours = (now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == &OnTerminate;
  const bool standard = (now.sa_flags & SA_SIGINFO) == 0 && now.sa_handler == SIG_DFL;
  if (!ours && !standard) return nullptr;
  if (!ours) {
    sigevent event{};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGTERM;
    if (!timer_ready.load() && timer_create(CLOCK_MONOTONIC, &event, &last_resort) == 0) {
      timer_ready.store(true);
    }
    struct sigaction action{};
    action.sa_handler = &OnTerminate;
    action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGTERM, &action, nullptr) != 0) return nullptr;
  }
  hooks.fetch_add(1);
  return std::unique_ptr<TerminationHook>(new TerminationHook);
}

TerminationHook::~TerminationHook() {
  if (hooks.fetch_sub(1) == 1) RestoreDefault();
}

bool TerminationHook::Pending() noexcept { return pending.load(std::memory_order_relaxed); }

void TerminationHook::EndProcess() noexcept {
  RestoreDefault();
  kill(getpid(), SIGTERM);
}

}  // namespace flopledger
