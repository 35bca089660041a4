// Hostile formula texts: an error with a column, or a number; never a crash, in bounded time.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "flopledger/model_flops.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const flopledger::FormulaVariables variables = {{"N", 124'000'000}, {"L", 12}, {"H", 12},
                                                  {"Q", 64},          {"V", -3}, {"h", 0}};
  auto model = flopledger::ModelFlops::FromFormula(text, variables);
  if (!model.has_value()) {
    if (model.error().message().rfind("formula", 0) != 0 &&
        model.error().message().rfind("variable", 0) != 0) {
      std::abort();
    }
    return 0;
  }
  const flopledger::Workload step{
      .sequences = {{.length = 4096, .count = 3}, {.length = 0, .count = 1}}, .samples = 2};
  auto work = model->Evaluate(step);
  if (work.has_value() && (work->forward.count() < 0 || work->backward.count() < 0)) std::abort();
  return 0;
}
