// Trains a linear map by gradient descent and keeps its books, without Python.
//
//     session 20 "50 GFLOP/s"      20 steps, against a peak that you give
//     session 20                   without one: MFU is refused, and says why
#include <flopledger/session.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

namespace {

constexpr std::int64_t kRows = 256;  // of a batch
constexpr std::int64_t kInputs = 128;
constexpr std::int64_t kOutputs = 64;

using Matrix = std::vector<float>;

// out += a (n x k) times b (k x m)
void AddProduct(const Matrix& a, const Matrix& b, std::int64_t n, std::int64_t k, std::int64_t m,
                Matrix& out) {
  for (std::int64_t row = 0; row < n; ++row) {
    for (std::int64_t inner = 0; inner < k; ++inner) {
      const float factor = a[row * k + inner];
      for (std::int64_t column = 0; column < m; ++column) {
        out[row * m + column] += factor * b[inner * m + column];
      }
    }
  }
}

Matrix Transposed(const Matrix& a, std::int64_t rows, std::int64_t columns) {
  Matrix out(a.size());
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      out[column * rows + row] = a[row * columns + column];
    }
  }
  return out;
}

// One step of gradient descent on the squared error; returns the error before it.
double Train(const Matrix& input, const Matrix& target, Matrix& weights) {
  Matrix error(kRows * kOutputs, 0.0F);
  AddProduct(input, weights, kRows, kInputs, kOutputs, error);
  double loss = 0;
  for (std::size_t i = 0; i < error.size(); ++i) {
    error[i] -= target[i];
    loss += static_cast<double>(error[i]) * error[i];
  }
  Matrix gradient(kInputs * kOutputs, 0.0F);
  AddProduct(Transposed(input, kRows, kInputs), error, kInputs, kRows, kOutputs, gradient);
  for (std::size_t i = 0; i < weights.size(); ++i) {
    weights[i] -= 0.5F / static_cast<float>(kRows) * gradient[i];
  }
  return loss / static_cast<double>(error.size());
}

int Run(int steps, std::vector<flopledger::PeakRate> peaks) {
  auto created = flopledger::Session::Create(
      {.peaks = std::move(peaks), .host_ops = false, .http = {.base_port = 0}});
  if (!created) {
    std::fprintf(stderr, "%s\n", created.error().message().c_str());
    return 2;
  }
  flopledger::Session& session = **created;
  std::printf("metrics: %s/metrics\n", session.Address().c_str());

  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  Matrix input(kRows * kInputs);
  Matrix truth(kInputs * kOutputs);
  for (float& value : input) value = normal(random);
  for (float& value : truth) value = normal(random);
  Matrix target(kRows * kOutputs, 0.0F);
  AddProduct(input, truth, kRows, kInputs, kOutputs, target);
  Matrix weights(kInputs * kOutputs, 0.0F);

  // Two products of the same size: the output, and the gradient of the weights.
  const auto product = flopledger::Flops::FromInteger(2 * kRows * kInputs * kOutputs);
  for (int i = 0; i < steps; ++i) {
    const auto step = session.Step(i);
    const double loss = Train(input, target, weights);
    session.DeclareWork(product, product, kRows);
    session.SetValue("loss", loss);
  }
  session.Close();  // logs the summary; what follows is for a logger of your own
  for (const auto& [name, value] : session.LastValues()) {
    std::printf("%-40s %.10g\n", name.c_str(), value);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const int steps = argc > 1 ? std::atoi(argv[1]) : 20;
  if (steps < 1 || argc > 3) {
    std::fprintf(stderr, "usage: session [STEPS [PEAK]], for example: session 20 \"50 GFLOP/s\"\n");
    return 2;
  }
  std::vector<flopledger::PeakRate> peaks;
  if (argc > 2) {
    const auto rate = flopledger::ParsePeakRate(argv[2]);
    if (!rate) {
      std::fprintf(stderr, "%s\n", rate.error().message().c_str());
      return 2;
    }
    peaks.push_back({.device_model = "this CPU",
                     .dtype = flopledger::DType::kFloat32,
                     .rate = *rate,
                     .source = "given on the command line"});
  }
  return Run(steps, std::move(peaks));
}
