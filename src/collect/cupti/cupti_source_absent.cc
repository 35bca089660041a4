// The source of a build without CUPTI headers: it says so, and counts nothing.

#include <utility>

#include "collect/cupti/cupti_options.h"
#include "collect/cupti/cupti_source.h"

namespace flopledger {

class CuptiSource::Impl {
 public:
  KernelTable kernels{2, nullptr};
};

CuptiSource::CuptiSource(Impl* impl) : impl_(impl) {}
CuptiSource::~CuptiSource() { delete impl_; }

Result<std::unique_ptr<CuptiSource>> CuptiSource::Create(const CuptiOptions& options, const Clock*,
                                                         KernelTable::Classifier) {
  if (auto checked = CheckCuptiOptions(options); !checked) {
    return tl::unexpected<Status>(checked.error());
  }
  return std::unique_ptr<CuptiSource>(new CuptiSource(new Impl));
}

void CuptiSource::Drain(RecordBatch&) {}
void CuptiSource::Stop() {}
void CuptiSource::Fence(std::int64_t) noexcept {}
void CuptiSource::PushOp(SignatureId, Phase) noexcept {}
void CuptiSource::PopOp() noexcept {}
void CuptiSource::BecomeInert() noexcept {}

DeviceSourceState CuptiSource::state() const {
  return {.kind = DeviceSourceState::Kind::kUnavailable,
          .reason = "not_built",
          .text =
              "device records: this build has no CUPTI collector; build it with CUPTI_ROOT set "
              "to a CUDA toolkit or to the folder of its wheels"};
}
const KernelTable& CuptiSource::kernels() const { return impl_->kernels; }
std::vector<DeviceDescription> CuptiSource::devices() const { return {}; }
CuptiCounts CuptiSource::counts() const { return {}; }

bool CuptiIsBuilt() { return false; }

}  // namespace flopledger
