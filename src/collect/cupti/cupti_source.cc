#include "collect/cupti/cupti_source.h"

#include <utility>

#include "collect/cupti/cupti_collector.h"
#include "collect/cupti/cupti_options.h"

namespace flopledger {

class CuptiSource::Impl {
 public:
  Impl(const CuptiOptions& options, const Clock* clock, KernelTable::Classifier classify)
      : collector(options, clock, std::move(classify)) {}
  CuptiCollector collector;
};

namespace {

// What the library or a thread still holds stays for as long as the process, in reach of leak
// checkers.
void KeepForEver(void* impl) {
  static auto* const kept = new std::vector<void*>;
  static Mutex mutex;
  MutexLock lock(mutex);
  kept->push_back(impl);
}

}  // namespace

CuptiSource::CuptiSource(Impl* impl) : impl_(impl) {}

CuptiSource::~CuptiSource() {
  if (impl_->collector.Release()) {
    delete impl_;
  } else {
    KeepForEver(impl_);
  }
}

Result<std::unique_ptr<CuptiSource>> CuptiSource::Create(const CuptiOptions& options,
                                                         const Clock* clock,
                                                         KernelTable::Classifier classify) {
  if (auto checked = CheckCuptiOptions(options); !checked) {
    return tl::unexpected<Status>(checked.error());
  }
  auto source =
      std::unique_ptr<CuptiSource>(new CuptiSource(new Impl(options, clock, std::move(classify))));
  source->impl_->collector.Start();
  return source;
}

void CuptiSource::Drain(RecordBatch& batch) { impl_->collector.Drain(batch); }
void CuptiSource::Stop() { impl_->collector.Stop(); }
void CuptiSource::Fence(std::int64_t boundary_ns) noexcept { impl_->collector.Fence(boundary_ns); }
void CuptiSource::PushOp(SignatureId op, Phase phase) noexcept {
  impl_->collector.PushOp(op, phase);
}
void CuptiSource::PopOp() noexcept { impl_->collector.PopOp(); }
void CuptiSource::BecomeInert() noexcept { impl_->collector.BecomeInert(); }
DeviceSourceState CuptiSource::state() const { return impl_->collector.state(); }
const KernelTable& CuptiSource::kernels() const { return impl_->collector.kernels(); }
std::vector<DeviceDescription> CuptiSource::devices() const { return impl_->collector.devices(); }
CuptiCounts CuptiSource::counts() const { return impl_->collector.counts(); }

bool CuptiIsBuilt() { return true; }

}  // namespace flopledger
