#include "collect/nvtx/nvtx_names.h"

#include <pthread.h>

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/sync.h"

// A handle of a string is a pointer to it, or, past the limit, what it means in a number whose
// lowest bit is set. Python's client registers every message it sees: a program that puts the step
// number into the name would otherwise fill the memory.

namespace flopledger {
namespace {

constexpr std::size_t kMostDomains = 1024;
constexpr std::size_t kMostStrings = 16384;
constexpr std::size_t kMostText = 256;  // of a kept string; longer ones are told by their beginning

const void* HandleOf(NvtxMeaning meaning) noexcept {
  return reinterpret_cast<const void*>(meaning.Packed() << 1 | 1);
}

/// The beginning of a text, for the key; wide characters outside of ASCII become one that no
/// pattern has.
template <typename Char>
std::string Narrow(const Char* text) {
  std::string narrow;
  for (std::size_t i = 0; text[i] != 0 && i < kMostText; ++i) {
    const auto code = static_cast<std::uint32_t>(text[i]);
    narrow += sizeof(Char) == 1 || code < 128 ? static_cast<char>(text[i]) : '\x01';
  }
  return narrow;
}

}  // namespace

struct NvtxNames::String {
  NvtxDomain* domain;
  std::atomic<std::uint64_t> meaning{0};
};

struct NvtxNames::Store {
  Mutex mutex;
  std::vector<std::unique_ptr<NvtxDomain>> domains FLOPLEDGER_GUARDED_BY(mutex);
  std::map<std::pair<const NvtxDomain*, std::string>, std::unique_ptr<String>> strings
      FLOPLEDGER_GUARDED_BY(mutex);
  const NvtxRuleBook* book FLOPLEDGER_GUARDED_BY(mutex) = nullptr;
  NvtxDomain others{.name = {}, .index = NvtxDomain::kUntracked};
};

namespace {

NvtxDomain default_domain{.name = {}, .index = 0};
Mutex* names_mutex = nullptr;

// A child that is forked while another thread registers a name must still be able to do so.
FLOPLEDGER_NO_THREAD_SAFETY_ANALYSIS void LockNames() { names_mutex->lock(); }
FLOPLEDGER_NO_THREAD_SAFETY_ANALYSIS void UnlockNames() { names_mutex->unlock(); }

}  // namespace

NvtxNames::NvtxNames() : store_(new Store) {
  names_mutex = &store_->mutex;
  pthread_atfork(&LockNames, &UnlockNames, &UnlockNames);
}

NvtxNames& NvtxNames::Global() noexcept {
  static auto* const names = new NvtxNames;
  return *names;
}

NvtxDomain& NvtxNames::DefaultDomain() noexcept { return default_domain; }

NvtxDomain* NvtxNames::Domain(std::string_view name) noexcept {
  try {
    MutexLock lock(store_->mutex);
    for (const auto& domain : store_->domains) {
      if (domain->name == name) return domain.get();
    }
    const std::size_t index = store_->domains.size() + 1;  // 0 is the default one's
    if (index >= kMostDomains) return &store_->others;
    auto domain = std::make_unique<NvtxDomain>();
    domain->name = std::string(name);
    domain->index =
        index < NvtxDomain::kTracked ? static_cast<std::uint32_t>(index) : NvtxDomain::kUntracked;
    if (store_->book != nullptr && !name.empty()) domain->rules = store_->book->Find(name);
    store_->domains.push_back(std::move(domain));
    return store_->domains.back().get();
  } catch (...) {
    return &store_->others;
  }
}

template <typename Char>
const void* NvtxNames::Register(NvtxDomain* domain, const Char* text) noexcept {
  if (text == nullptr) return nullptr;
  const NvtxRules* rules = domain->rules.load(std::memory_order_acquire);
  const NvtxMeaning meaning = rules == nullptr ? NvtxMeaning() : rules->Match(text);
  try {
    std::pair<const NvtxDomain*, std::string> key(domain, Narrow(text));
    MutexLock lock(store_->mutex);
    const auto found = store_->strings.find(key);
    if (found != store_->strings.end()) return found->second.get();
    if (store_->strings.size() >= kMostStrings) return HandleOf(meaning);
    auto string = std::make_unique<String>();
    string->domain = domain;
    // Again, since the rules may have changed before the lock was taken.
    rules = domain->rules.load(std::memory_order_acquire);
    if (rules != nullptr) string->meaning = rules->Match(key.second.c_str()).Packed();
    return store_->strings.emplace(std::move(key), std::move(string)).first->second.get();
  } catch (...) {
    return HandleOf(meaning);
  }
}

template const void* NvtxNames::Register(NvtxDomain* domain, const char* text) noexcept;
template const void* NvtxNames::Register(NvtxDomain* domain, const wchar_t* text) noexcept;

NvtxMeaning NvtxNames::MeaningOf(const void* handle) noexcept {
  if (handle == nullptr) return {};
  const auto bits = reinterpret_cast<std::uintptr_t>(handle);
  if ((bits & 1) != 0) return NvtxMeaning::Unpacked(bits >> 1);
  return NvtxMeaning::Unpacked(
      static_cast<const String*>(handle)->meaning.load(std::memory_order_relaxed));
}

void NvtxNames::Apply(const NvtxRuleBook* book) noexcept {
  const auto rules_of = [book](const NvtxDomain& domain) {
    return book == nullptr ? nullptr : book->Find(domain.name);
  };
  MutexLock lock(store_->mutex);
  store_->book = book;
  default_domain.rules.store(rules_of(default_domain), std::memory_order_release);
  for (const auto& domain : store_->domains) {
    domain->rules.store(domain->name.empty() ? nullptr : rules_of(*domain),
                        std::memory_order_release);
  }
  for (const auto& [key, string] : store_->strings) {
    const NvtxRules* rules = string->domain->rules.load(std::memory_order_relaxed);
    string->meaning.store(rules == nullptr ? 0 : rules->Match(key.second.c_str()).Packed(),
                          std::memory_order_relaxed);
  }
}

}  // namespace flopledger
