#include <gtest/gtest.h>

#include "flopledger/model_flops.h"

namespace flopledger {
namespace {

TEST(HfConfigTest, ReadsGpt2) {
  auto model = ModelFlops::FromHfConfig(R"({"model_type": "gpt2", "n_layer": 12, "n_embd": 768,
      "n_head": 12, "n_inner": null, "n_positions": 1024, "vocab_size": 50257})");
  ASSERT_TRUE(model.has_value()) << model.error().message();
  EXPECT_EQ(model->Describe(), "transformer L=12 h=768 heads=12/12 ffn=3072 V=50257");
  EXPECT_EQ(ToString(model->Size().parameters), "124439808");  // the published GPT-2 count
}

TEST(HfConfigTest, ReadsLlama) {
  auto model = ModelFlops::FromHfConfig(R"({"model_type": "llama", "num_hidden_layers": 32,
      "hidden_size": 4096, "num_attention_heads": 32, "num_key_value_heads": 8,
      "intermediate_size": 14336, "vocab_size": 128256, "tie_word_embeddings": false})");
  ASSERT_TRUE(model.has_value()) << model.error().message();
  EXPECT_EQ(ToString(model->Size().parameters), "8030261248");  // the published Llama-3-8B count
}

TEST(HfConfigTest, NamesWhatIsMissingAndWhatIsWrong) {
  auto model = ModelFlops::FromHfConfig(R"({"model_type": "llama", "num_hidden_layers": "32",
      "hidden_size": 4096, "num_attention_heads": 32})");
  ASSERT_FALSE(model.has_value());
  EXPECT_EQ(model.error().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(model.error().message(),
            "config.json: missing intermediate_size, vocab_size; num_hidden_layers is \"32\" "
            "(accepted: an integer)");
}

TEST(HfConfigTest, ListsTheKnownFamilies) {
  auto model = ModelFlops::FromHfConfig(R"({"model_type": "rwkv9"})");
  ASSERT_FALSE(model.has_value());
  EXPECT_EQ(model.error().code(), StatusCode::kUnsupported);
  EXPECT_NE(model.error().message().find("gpt2"), std::string::npos);
}

TEST(HfConfigTest, GivesThePositionOfWhatIsNotJson) {
  EXPECT_EQ(ModelFlops::FromHfConfig(R"({"a": nope})").error().message(),
            "config.json is not JSON at byte 8");
  const std::string deep = std::string(100'000, '[');
  EXPECT_EQ(ModelFlops::FromHfConfig(deep).error().message(),
            "config.json is nested deeper than 64 levels at byte 64");
  for (const char* text : {"", "[]", "1e999999", "{\"model_type\": 1}", "{\"model_type\": null}"}) {
    EXPECT_FALSE(ModelFlops::FromHfConfig(text).has_value()) << text;
  }
}

TEST(HfConfigTest, HugeNumbersAreRefusedByName) {
  for (const char* value : {"1099511627776", "-9223372036854775808", "18446744073709551615",
                            "123456789012345678901234567890", "1e300"}) {
    auto model = ModelFlops::FromHfConfig(
        R"({"model_type": "qwen3", "num_hidden_layers": 2, "hidden_size": 8, "head_dim": )" +
        std::string(value) +
        R"(, "num_attention_heads": 2, "intermediate_size": 8, "vocab_size": 9})");
    ASSERT_FALSE(model.has_value()) << value;
    EXPECT_NE(model.error().message().find("head_dim"), std::string::npos)
        << model.error().message();
  }
}

}  // namespace
}  // namespace flopledger
