// Every row of the table of published figures, through the public API. The causes of the rows that
// differ are those that the table's description names.
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "cli/published_report.h"

namespace flopledger::cli {
namespace {

constexpr const char* kTable = FLOPLEDGER_SHARED_DIR "/reference/golden.csv";

std::vector<RowOutcome> JudgeAll() {
  std::ifstream file(kTable, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  auto rows = ReadPublishedTable(content.str());
  std::vector<RowOutcome> outcomes;
  if (rows.has_value()) {
    for (const PublishedRow& row : *rows) outcomes.push_back(JudgeRow(row));
  }
  return outcomes;
}

#define FLOPLEDGER_NEEDS_TABLE()                         \
  if (!std::ifstream(kTable).good()) {                   \
    GTEST_SKIP() << "the table is not here: " << kTable; \
  }

TEST(PublishedGolden, EveryRowBehaves) {
  FLOPLEDGER_NEEDS_TABLE();
  const std::vector<RowOutcome> outcomes = JudgeAll();
  EXPECT_EQ(outcomes.size(), 450u);
  int reproduced = 0;
  for (const RowOutcome& outcome : outcomes) {
    EXPECT_TRUE(outcome.behaves) << outcome.row_id << ": " << outcome.fault;
    if (outcome.verdict == "reproduces") ++reproduced;
  }
  EXPECT_EQ(reproduced, 424);
}

TEST(PublishedGolden, EveryDifferenceHasTheCauseThatIsKnown) {
  FLOPLEDGER_NEEDS_TABLE();
  const std::map<std::string, std::string> causes = {
      {"palm-hfu-full", "replayed_forward=0.75"},
      {"gpt3-mfu", "peak_tflops 118.68 (given 125)"},
      {"days-1T-3072", "params 1.0095e+12 (given 1e+12)"},
      {"kor-175B-appC-base", "gain_pct 0.9 (given 0.7)"},
      {"mt-Llama270B-v6e-causal", "attention_mask=full"},
      {"mt-Llama3.18B-v6e-causal", "attention_mask=full"},
      {"mt-Llama3.170B-v6e-causal", "attention_mask=full"},
      {"mt-Mixtral8x22B-v6e-causal", "attention_mask=full"},
      {"mt-Mixtral8x7B-v5p-causal", "attention_mask=full"},
      {"mt-Llama3.1405B-v6e-causal", "inputs disagree: needs tokens_per_s"},
      {"mt-Llama3.1405B-v6e-full", "inputs disagree: needs tokens_per_s"},
      {"mt-Llama270B-v5p-causal", "inputs disagree: needs tokens_per_s"},
      {"mt-Llama270B-v5p-full", "inputs disagree: needs tokens_per_s"},
      {"l3-405b-n16384-s8192", "inputs disagree: needs rate_tflops 405.49 (given 400)"},
      {"ds-MPFT-causal-mtp1", "multi_token_prediction=out"},
      {"ds-MPFT-full-mtp1", "multi_token_prediction=out"},
      {"mb-26.06-LLAMA3.1_405B-GB300-nvfp4-1413-llama31_405b", "tokens_per_s 1416.4 (given 1413)"},
      {"mb-26.04.01-LLAMA3_70B-H100-fp8-1664-llama3_70b", "tokens_per_s 1627.3 (given 1664)"},
      {"mb-26.04-GPT OSS 120B-GB300-bf16-19275-gptoss_glu3_swa",
       "local_attention=out,ffn_gate=out"},
      {"tiny-6Nall-full", "linear_work=matmuls"},
      {"tiny-matmul-causal", "attention_mask=full"},
      {"alst-32K-1gpu", "inputs disagree: needs step_time_s"},
      {"alst-32K-32gpu", "inputs disagree: needs step_time_s"},
      {"alst-3.7M-8gpu", "inputs disagree: needs step_time_s"},
      {"alst-15M-32gpu", "inputs disagree: needs step_time_s"},
  };
  std::size_t differing = 0;
  for (const RowOutcome& outcome : JudgeAll()) {
    if (outcome.verdict != "differs") continue;
    ++differing;
    const auto cause = causes.find(outcome.row_id);
    ASSERT_NE(cause, causes.end()) << outcome.row_id;
    EXPECT_NE(outcome.explanation.find(cause->second), std::string::npos)
        << outcome.row_id << ": " << outcome.explanation;
    EXPECT_TRUE(outcome.behaves) << outcome.fault;
  }
  EXPECT_EQ(differing, causes.size());
}

// `flopledger published TABLE --markdown` makes the tables of the page.
TEST(PublishedGolden, ThePageIsWhatTheProgramPrints) {
  FLOPLEDGER_NEEDS_TABLE();
  std::ifstream file(FLOPLEDGER_SOURCE_DIR "/docs/published.md", std::ios::binary);
  std::ostringstream page;
  page << file.rdbuf();
  EXPECT_NE(page.str().find(WriteMarkdown(JudgeAll())), std::string::npos)
      << "docs/published.md is not what 'flopledger published --markdown' prints";
}

// A formula text and the named convention of the same id are one thing, said twice.
TEST(PublishedGolden, FormulaTextsAgreeWithTheNamedConventions) {
  FLOPLEDGER_NEEDS_TABLE();
  std::ifstream file(kTable, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  auto rows = ReadPublishedTable(content.str());
  ASSERT_TRUE(rows.has_value()) << rows.error().message();
  int compared = 0;
  for (const PublishedRow& row : *rows) {
    Result<EvaluatedRow> evaluated = EvaluateRow(row);
    ASSERT_TRUE(evaluated.has_value()) << evaluated.error().message();
    if (!evaluated->formula.has_value() || !evaluated->formula->shape.has_value()) continue;
    if (evaluated->formula->model.Describe() == evaluated->formula->shape->Describe()) continue;
    Result<double> by_shape =
        EvaluateUnder(row, *evaluated->formula->shape, evaluated->formula->shape_convention);
    ASSERT_TRUE(by_shape.has_value()) << by_shape.error().message();
    EXPECT_NEAR(*by_shape / evaluated->value, 1, 1e-12) << row.Text("row_id");
    ++compared;
  }
  EXPECT_GE(compared, 20);
}

}  // namespace
}  // namespace flopledger::cli
