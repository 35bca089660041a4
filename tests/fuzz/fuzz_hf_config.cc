// Hostile configurations: an error that names the field or the byte, or a model that evaluates.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "flopledger/explain.h"
#include "flopledger/model_flops.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  auto model = flopledger::ModelFlops::FromHfConfig(text);
  if (!model.has_value()) {
    if (model.error().message().empty()) std::abort();
    return 0;
  }
  const flopledger::Workload step{.sequences = {{.length = 4096, .count = 2, .source_length = 7}},
                                  .samples = 1};
  auto work = model->Evaluate(step);
  auto total = model->EvaluateTotal(step);
  if (work.has_value() != total.has_value()) std::abort();
  if (work.has_value() && (work->forward != total->forward || work->backward != total->backward ||
                           work->forward.count() < 0)) {
    std::abort();
  }
  (void)flopledger::Explain(*model, step);
  return 0;
}
