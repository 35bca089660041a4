// How a program that knows nothing of us comes to have a session: NVTX opens this library at its
// first call, and the environment says whether to keep books.

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/sync.h"
#include "collect/nvtx/nvtx_injection.h"
#include "collect/nvtx/nvtx_variable.h"
#include "flopledger/export.h"
#include "flopledger/nvtx.h"
#include "session/environment.h"
#include "session/log.h"

namespace flopledger {
namespace {

/// The session that nobody holds. Never freed; closed at exit.
struct Unheld {
  Mutex mutex;
  std::unique_ptr<Session> session FLOPLEDGER_GUARDED_BY(mutex);
};

Unheld& UnheldSession() {
  static auto* const unheld = new Unheld;
  return *unheld;
}

std::atomic<bool> looked_at_environment{false};
std::atomic<bool> has_unheld{false};

void Complain(const std::string& text) {
  auto log = Log::Create("warning", RunIdentity{});
  if (log) (*log)->Warn(text);
}

void CloseAtExit() { CloseSessionFromEnvironment(); }

}  // namespace

void StartFromEnvironment() noexcept {
  if (looked_at_environment.exchange(true)) return;
  try {
    std::vector<std::string_view> environment;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
      environment.emplace_back(*entry);
    }
    Result<std::optional<SessionOptions>> options = OptionsFromEnvironment(environment);
    if (!options) {
      Complain("no session from the environment: " + options.error().message());
      return;
    }
    if (!*options) return;
    Result<std::unique_ptr<Session>> session = Session::Create(**std::move(options));
    if (!session) {
      Complain("no session from the environment: " + session.error().message());
      return;
    }
    Unheld& unheld = UnheldSession();
    {
      MutexLock lock(unheld.mutex);
      unheld.session = *std::move(session);
    }
    has_unheld.store(true);
    std::atexit(&CloseAtExit);
  } catch (...) {
    // No memory for a session that nobody asked this program about.
  }
}

void CloseSessionFromEnvironment() noexcept {
  if (!has_unheld.exchange(false)) return;
  Unheld& unheld = UnheldSession();
  std::unique_ptr<Session> session;
  {
    MutexLock lock(unheld.mutex);
    session = std::move(unheld.session);
  }
  if (session) session->Close();
}

bool ClaimNvtx() noexcept {
  try {
    return CurrentNvtxState().built && ClaimNvtxSlot().holder == NvtxSlot::Holder::kOurs;
  } catch (...) {
    return false;
  }
}

std::string NvtxInjectionPath() {
  return CurrentNvtxState().built ? NvtxLibraryPath() : std::string();
}

}  // namespace flopledger

/// The entry that NVTX calls, once for each copy of itself in the process. 0 refuses.
extern "C" FLOPLEDGER_EXPORT int InitializeInjectionNvtx2(
    const void* (*get_export_table)(std::uint32_t)) noexcept {
  if (!flopledger::AttachNvtxClient(get_export_table)) return 0;
  flopledger::StartFromEnvironment();
  return 1;
}
