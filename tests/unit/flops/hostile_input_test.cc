// Broken configurations and formulas by the thousand: an error or a model, never a crash.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "flopledger/explain.h"
#include "flopledger/model_flops.h"

namespace flopledger {
namespace {

constexpr int kRounds = 20'000;

/// Flips, drops, doubles and cuts; a fixed seed.
class Mutator {
 public:
  std::string Next(const std::string& seed) {
    std::string text = seed;
    for (int i = Draw(1, 4); i > 0 && !text.empty(); --i) {
      const std::size_t at = Draw(0, text.size() - 1);
      switch (Draw(0, 5)) {
        case 0:
          text[at] = static_cast<char>(Draw(0, 255));
          break;
        case 1:
          text.erase(at, Draw(1, 8));
          break;
        case 2:
          text.insert(at, text.substr(at, Draw(1, 20)));
          break;
        case 3:
          text.insert(at, kTokens[Draw(0, std::size(kTokens) - 1)]);
          break;
        case 4:
          text.resize(at);
          break;
        default:
          text.insert(at, std::string(Draw(1, 80), "[({-9"[Draw(0, 4)]));
      }
    }
    return text;
  }

 private:
  static constexpr const char* kTokens[] = {"null", "-1",    "1e999", "99999999999999999999",
                                            "NaN",  "\"4\"", "true",  "[]",
                                            "{}",   "0",     "1.5",   "^64",
                                            "/0",   "**",    "\0x"};
  std::size_t Draw(std::size_t low, std::size_t high) {
    return std::uniform_int_distribution<std::size_t>(low, high)(random_);
  }
  std::mt19937 random_{7};
};

TEST(HostileInput, Configurations) {
  const std::string seeds[] = {
      R"({"model_type":"llama","num_hidden_layers":2,"hidden_size":8,"num_attention_heads":4,)"
      R"("num_key_value_heads":2,"intermediate_size":12,"vocab_size":16})",
      R"({"model_type":"gpt_oss","num_hidden_layers":4,"hidden_size":8,"num_attention_heads":4,)"
      R"("head_dim":4,"intermediate_size":12,"vocab_size":16,"num_local_experts":4,)"
      R"("num_experts_per_tok":2,"sliding_window":4,"layer_types":["full_attention",)"
      R"("sliding_attention","full_attention","sliding_attention"]})",
      R"({"model_type":"vit","architectures":["ViTModel"],"image_size":16,"patch_size":4,)"
      R"("num_hidden_layers":2,"hidden_size":8,"num_attention_heads":2,"intermediate_size":12})"};
  const Workload step{.sequences = {{.length = 128, .count = 2}}, .samples = 1};
  Mutator mutator;
  int read = 0;
  for (int i = 0; i < kRounds; ++i) {
    auto model = ModelFlops::FromHfConfig(mutator.Next(seeds[i % 3]));
    if (!model.has_value()) {
      EXPECT_FALSE(model.error().message().empty());
      continue;
    }
    ++read;
    auto explanation = Explain(*model, step);
    if (explanation.has_value()) {
      EXPECT_GE(explanation->work.forward.count(), 0);
    }
  }
  EXPECT_GT(read, 0);
}

TEST(HostileInput, Formulas) {
  const std::string seeds[] = {"6*N*T + 12*L*H*Q*S*T", "72*T*L*h^2*(1 + S/(6*h) + V/(12*L*h))",
                               "min(1.5e9, -2**3)*B"};
  const FormulaVariables variables = {{"N", 124}, {"L", 12}, {"H", 12}, {"Q", 64},
                                      {"V", -3},  {"h", 0},  {"e", 1}};
  const Workload step{.sequences = {{.length = 4096, .count = 3}}, .samples = 2};
  Mutator mutator;
  for (int i = 0; i < kRounds; ++i) {
    auto model = ModelFlops::FromFormula(mutator.Next(seeds[i % 3]), variables);
    if (!model.has_value()) continue;
    auto work = model->EvaluateTotal(step);
    if (work.has_value()) {
      EXPECT_GE(work->forward.count(), 0);
    }
  }
}

TEST(HostileInput, HugeAndDeep) {
  EXPECT_FALSE(ModelFlops::FromHfConfig(std::string(17 << 20, ' ')).has_value());
  EXPECT_FALSE(ModelFlops::FromHfConfig("{\"a\":" + std::string(1 << 20, '{')).has_value());
  EXPECT_FALSE(ModelFlops::FromFormula(std::string(1 << 20, '('), {}).has_value());
  auto model = ModelFlops::FromHfConfig(
      R"({"model_type":"gemma2","num_hidden_layers":1000000000,"hidden_size":8,"head_dim":4,)"
      R"("num_attention_heads":4,"intermediate_size":12,"vocab_size":16,"sliding_window":4})");
  ASSERT_FALSE(model.has_value());
  EXPECT_NE(model.error().message().find("num_hidden_layers"), std::string::npos);
}

}  // namespace
}  // namespace flopledger
