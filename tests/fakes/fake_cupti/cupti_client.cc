// A process that collects as a training process would, and says how it went. One binary for the
// double and for the real library.
//
//     cupti_client [--map LIBRARY]... [--driver NAME] [--library PATH] [--map-later LIBRARY]
//                  [--run SCRIPT]

#include <dlfcn.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <set>
#include <string>

#include "collect/cupti/cupti_source.h"

namespace {

using namespace flopledger;

constexpr std::int64_t kSecond = 1'000'000'000;

// The session's clock is real but for what a test skips.
class SkippingClock final : public Clock {
 public:
  std::int64_t MonotonicNs() const noexcept override { return SystemClock::Now() + skipped_; }
  double UnixSeconds() const noexcept override { return SystemClock().UnixSeconds(); }
  void Skip(std::int64_t ns) { skipped_ += ns; }

 private:
  std::int64_t skipped_ = 0;
};

void Map(const char* path) {
  if (dlopen(path, RTLD_LAZY | RTLD_LOCAL) == nullptr) std::printf("unmapped=%s\n", dlerror());
}

std::size_t MappedLibraries() {
  std::set<std::string> paths;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t at = line.find('/');
    if (line.find("libcupti.so") != std::string::npos) paths.insert(line.substr(at));
  }
  return paths.size();
}

void PrintState(const char* when, const CuptiSource& source) {
  constexpr const char* kKinds[] = {"unavailable", "waiting", "counting", "disabled"};
  const DeviceSourceState state = source.state();
  std::printf("%s=%s %s\n%s_text=%s\n", when, kKinds[static_cast<int>(state.kind)],
              state.reason.c_str(), when, state.text.c_str());
}

void RunOnTheDouble(const char* script) {
  void* library = dlopen("libcupti.so.13", RTLD_LAZY | RTLD_NOLOAD);
  auto* run = library == nullptr
                  ? nullptr
                  : reinterpret_cast<void (*)(const char*)>(dlsym(library, "fakecupti_run"));
  if (run != nullptr) run(script);
}

}  // namespace

int main(int count, char** arguments) {
  CuptiOptions options;
  options.flush_interval_ms = 0;
  const char* map_later = nullptr;
  const char* script = nullptr;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string name = arguments[i];
    const char* value = arguments[i + 1];
    if (name == "--map") Map(value);
    if (name == "--driver") options.driver_library = value;
    if (name == "--library") options.library = value;
    if (name == "--map-later") map_later = value;
    if (name == "--run") script = value;
  }
  SkippingClock clock;
  auto created = CuptiSource::Create(options, &clock, nullptr);
  if (!created) {
    std::printf("refused=%s\n", created.error().message().c_str());
    return 2;
  }
  CuptiSource& source = **created;
  PrintState("start", source);
  RecordBatch batch;
  if (map_later != nullptr) {
    Map(map_later);
    clock.Skip(2 * kSecond);
    source.Drain(batch);
    PrintState("later", source);
  }
  source.PushOp(1, Phase::kForward);
  if (script != nullptr) RunOnTheDouble(script);
  source.PopOp();
  source.Fence(clock.MonotonicNs());
  source.Drain(batch);
  source.Stop();
  source.Drain(batch);
  PrintState("end", source);
  std::int64_t lost = 0;
  for (const LossRecord& loss : batch.losses) lost += loss.count;
  std::int64_t busy_ns = 0;
  for (const KernelRecord& kernel : batch.kernels) busy_ns += kernel.end_ns - kernel.start_ns;
  std::printf("kernels=%zu\nbusy_ns=%lld\nfences=%zu\nlost=%lld\nmapped=%zu\n",
              batch.kernels.size(), static_cast<long long>(busy_ns), batch.fences.size(),
              static_cast<long long>(lost), MappedLibraries());
  return 0;
}
