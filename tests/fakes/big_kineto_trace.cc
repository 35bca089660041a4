#include "fakes/big_kineto_trace.h"

#include <array>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <string>

namespace flopledger::fakes {
namespace {

constexpr std::int64_t kLayersAStep = 2000;
constexpr std::int64_t kLayerNs = 50'000;
constexpr std::int64_t kKernelNs = 30'250;
constexpr std::int64_t kRows = 64;
constexpr std::int64_t kInputs = 128;
constexpr std::int64_t kOutputs = 256;
constexpr int kKernelNames = 40;

class Text {
 public:
  explicit Text(std::FILE* file) : file_(file) {}

  template <typename... Values>
  void Event(const char* format, Values... values) {
    std::array<char, 2048> line{};
    const int length = std::snprintf(line.data(), line.size(), format, values...);
    const char* const separator = events_ == 0 ? "  " : ",\n  ";
    good_ = good_ && std::fputs(separator, file_) >= 0 &&
            std::fwrite(line.data(), 1, static_cast<std::size_t>(length), file_) ==
                static_cast<std::size_t>(length);
    written_ += static_cast<std::uint64_t>(length) + 4;
    ++events_;
  }

  std::uint64_t written() const { return written_; }
  std::int64_t events() const { return events_; }
  bool good() const { return good_; }

 private:
  std::FILE* const file_;
  std::uint64_t written_ = 0;
  std::int64_t events_ = 0;
  bool good_ = true;
};

/// Nanoseconds as the microseconds that Kineto prints.
std::string Us(std::int64_t ns) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%" PRId64 ".%03d", ns / 1000,
                static_cast<int>(ns % 1000));
  return text.data();
}

constexpr const char* kFrame =
    R"({"ph": "X", "cat": "python_function", "name": "torch/nn/modules/module.py(1553): )"
    R"(_wrapped_call_impl", "pid": 4711, "tid": 4711, "ts": %s, "dur": 44.100, "args": )"
    R"({"Python parent id": 1, "Python id": 2, "Ev Idx": %lld}})";
constexpr const char* kLinear =
    R"({"ph": "X", "cat": "cpu_op", "name": "aten::linear", "pid": 4711, "tid": 4711, "ts": %s, )"
    R"("dur": 40.000, "args": {"External id": 3, "Sequence number": 12, "Fwd thread id": 0, )"
    R"("Record function id": 0, "Concrete Inputs": ["", "", ""], "Input type": )"
    R"(["c10::BFloat16", "c10::BFloat16", "c10::BFloat16"], "Input Strides": )"
    R"([[128, 1], [128, 1], [1]], "Input Dims": [[64, 128], [256, 128], [256]], "Ev Idx": %lld}})";
constexpr const char* kAddmm =
    R"({"ph": "X", "cat": "cpu_op", "name": "aten::addmm", "pid": 4711, "tid": 4711, "ts": %s, )"
    R"("dur": 30.000, "args": {"External id": 3, "Record function id": 0, "Concrete Inputs": )"
    R"(["", "", "", "1", "1"], "Input type": ["c10::BFloat16", "c10::BFloat16", )"
    R"("c10::BFloat16", "Scalar", "Scalar"], "Input Strides": [[1], [128, 1], [1, 128], [], []], )"
    R"("Input Dims": [[256], [64, 128], [128, 256], [], []], "Ev Idx": %lld}})";
constexpr const char* kLaunch =
    R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 4711, "tid": 4711, )"
    R"("ts": %s, "dur": 4.250, "args": {"cbid": 211, "correlation": %lld}})";
constexpr const char* kArrow =
    R"({"ph": "%s", "id": %lld, "pid": 0, "tid": 7, "ts": %s, "cat": "ac2g", "name": "ac2g"})";
constexpr const char* kKernel =
    R"({"ph": "X", "cat": "kernel", "name": "void cutlass::Kernel2<cutlass_80_tensorop_bf16_)"
    R"(s16816gemm_relu_bf16_%02d_64x64_32x6_tn_align8>(cutlass_80_tensorop_bf16_s16816gemm::)"
    R"(Params) ", "pid": 0, "tid": 7, "ts": %s, "dur": 30.250, "args": {"External id": 3, )"
    R"("queued": 0, "device": 0, "context": 1, "stream": 7, "correlation": %lld, )"
    R"("registers per thread": 162, "shared memory": 49152, "blocks per SM": 0.037037, )"
    R"("warps per SM": 0.148148, "grid": [4, 1, 1], "block": [128, 1, 1], )"
    R"("est. achieved occupancy %%": 0}})";
constexpr const char* kStep =
    R"({"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#%lld", "pid": 4711, )"
    R"("tid": 4711, "ts": %s, "dur": %s, "args": {}})";

void WriteLayer(Text& text, std::int64_t at, std::int64_t number) {
  const auto id = static_cast<long long>(number);
  text.Event(kFrame, Us(at).c_str(), 4 * id);
  text.Event(kLinear, Us(at + 1'000).c_str(), 4 * id + 1);
  text.Event(kAddmm, Us(at + 2'000).c_str(), 4 * id + 2);
  text.Event(kLaunch, Us(at + 5'000).c_str(), id);
  text.Event(kArrow, "s", id, Us(at + 5'000).c_str());
  text.Event(kArrow, "f", id, Us(at + 10'000).c_str());
  text.Event(kKernel, static_cast<int>(id % kKernelNames), Us(at + 10'000).c_str(), id);
}

}  // namespace

bool WriteBigTrace(const std::string& path, std::uint64_t bytes, BigTraceTruth* truth) {
  const auto close = [](std::FILE* file) { return std::fclose(file); };
  const std::unique_ptr<std::FILE, decltype(close)> file(std::fopen(path.c_str(), "wb"), close);
  if (!file) return false;
  std::fputs("{\"schemaVersion\": 1, \"traceEvents\": [\n", file.get());
  Text text(file.get());
  std::int64_t at = 1'000'000;
  std::int64_t layer = 0;
  while (text.good() && text.written() < bytes) {
    text.Event(kStep, static_cast<long long>(truth->steps++), Us(at).c_str(),
               Us(kLayersAStep * kLayerNs).c_str());
    for (std::int64_t i = 0; i < kLayersAStep; ++i, at += kLayerNs) WriteLayer(text, at, ++layer);
  }
  std::fputs("\n]}\n", file.get());
  truth->events = text.events();
  truth->kernels = layer;
  truth->busy_ns = layer * kKernelNs;
  truth->flops = layer * 2 * kRows * kInputs * kOutputs;
  return text.good() && std::fflush(file.get()) == 0;
}

}  // namespace flopledger::fakes
