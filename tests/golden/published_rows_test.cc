// Tables that nobody has seen yet: other rows, and broken ones.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/published_report.h"

namespace flopledger::cli {
namespace {

using ::testing::HasSubstr;

constexpr const char* kHeader =
    "source,row_id,params,layers,hidden,heads,head_dim_qk,seq,tokens_per_s,n_dev,peak_tflops,"
    "extra_inputs,metric,printed,tolerance,formula_id,recomputed,residual,verdict,note\n";

RowOutcome JudgeOne(const std::string& line) {
  auto rows = ReadPublishedTable(kHeader + line);
  EXPECT_TRUE(rows.has_value()) << rows.error().message();
  if (!rows.has_value() || rows->size() != 1) return {};
  return JudgeRow(rows->front());
}

TEST(PublishedRows, EvaluatesARowThatIsInNoTable) {
  // By hand: 6 x 1e9 x 1e4 / (2 x 1e14) = 30 %.
  const RowOutcome outcome = JudgeOne(
      "x,r,1e9,,,,,,10000,2,100,,MFU_pct,30.0,0.05,PALM_6N,30,0,reproduces,\"a, \"\"b\"\"\"\r\n");
  EXPECT_TRUE(outcome.behaves) << outcome.fault;
  EXPECT_DOUBLE_EQ(*outcome.value, 30.0);
}

TEST(PublishedRows, AFalseClaimDoesNotBehave) {
  EXPECT_THAT(JudgeOne("x,r,1e9,,,,,,10000,2,100,,MFU_pct,31,0.05,PALM_6N,,,reproduces,").fault,
              HasSubstr("printed 31 +- 0.05, the formula gives 30"));
  EXPECT_THAT(JudgeOne("x,r,1e9,,,,,,10000,2,100,,MFU_pct,30,0.05,PALM_6N,,,differs,").fault,
              HasSubstr("said to differ"));
  EXPECT_THAT(JudgeOne("x,r,1e9,,,,,,10000,2,100,,MFU_pct,30,0.05,PALM_6N,31,,reproduces,").fault,
              HasSubstr("the table says 31"));
  EXPECT_THAT(JudgeOne("x,r,1e9,,,,,,10000,2,100,,MFU_pct,31,0.05,PALM_6N,30,-3,differs,").fault,
              HasSubstr("differs by -1, the table says -3"));
  EXPECT_THAT(JudgeOne("x,r,1e9,,,,,,10000,2,100,,MFU_pct,30,0.05,PALM_6N,,,perhaps,").fault,
              HasSubstr("verdict is 'perhaps'"));
}

TEST(PublishedRows, SaysWhyARowCannotBeEvaluated) {
  const std::vector<std::pair<const char*, const char*>> cases = {
      {"x,r,,,,,,,10000,2,100,,MFU_pct,30,0.05,PALM_6N,,,reproduces,", "missing params"},
      {"x,r,1e9,,,,,,,2,100,,MFU_pct,30,0.05,PALM_6N,,,reproduces,", "missing tokens_per_s"},
      {"x,r,1e9,12,,,,,1,2,100,,MFU_pct,30,1,PALM_6N_12LHQT,,,reproduces,",
       "missing heads, head_dim_qk"},
      {"x,r,many,,,,,,1,2,100,,MFU_pct,30,1,PALM_6N,,,reproduces,", "params is 'many'"},
      {"x,r,1.5,,,,,,1,2,100,,MFU_pct,30,1,PALM_6N,,,reproduces,", "params is '1.5'"},
      {"x,r,nan,,,,,,1,2,100,,MFU_pct,30,1,PALM_6N,,,reproduces,", "params is 'nan'"},
      {"x,r,-5,,,,,,1,2,100,,MFU_pct,30,1,PALM_6N,,,reproduces,", "params is '-5'"},
      {"x,r,1e9,,,,,,1,0,100,,MFU_pct,30,1,PALM_6N,,,reproduces,", "n_dev is '0'"},
      {"x,r,1e9,,,,,,1,2,0,,MFU_pct,30,1,PALM_6N,,,reproduces,", "peak"},
      {"x,r,1e9,,,,,,1,2,100,,MFU_pct,x,1,PALM_6N,,,reproduces,", "printed is 'x'"},
      {"x,r,1e9,,,,,,1,2,100,,MFU_pct,30,1,PALM_7N,,,reproduces,", "did you mean 'PALM_6N'"},
      {"x,r,1e9,,,,,,1,2,100,,MFU,30,1,PALM_6N,,,reproduces,", "metric 'MFU' does not fit"},
      {"x,r,1e9,,,,,,1,2,100,MFU_pct,30,1,PALM_6N,,,reproduces,", "the row has 19 fields"},
      {"x,r,9e18,9e18,9e18,9e18,9e18,9e15,1,2,100,,MFU_pct,30,1,PALM_6N_12LHQT,,,reproduces,",
       "128 bits"},
  };
  for (const auto& [line, why] : cases) {
    const RowOutcome outcome = JudgeOne(line);
    EXPECT_FALSE(outcome.behaves) << line;
    EXPECT_THAT(outcome.fault, HasSubstr(why)) << line;
  }
}

TEST(PublishedRows, RefusesWhatIsNoTable) {
  EXPECT_FALSE(ReadPublishedTable("").has_value());
  EXPECT_THAT(ReadPublishedTable("row_id,metric\n1,2\n").error().message(),
              HasSubstr("lacks the columns printed, tolerance, formula_id, verdict"));
  EXPECT_THAT(ReadPublishedTable(std::string(kHeader) + "x,\"open\n").error().message(),
              HasSubstr("line 2: a quoted field has no closing quote"));
  EXPECT_THAT(ReadPublishedTable(std::string(kHeader) + "x,a\"b\n").error().message(),
              HasSubstr("line 2: a quote inside"));
  EXPECT_THAT(ReadPublishedTable("\xEF\xBB\xBF" + std::string(kHeader)).value().size(), 0u);
}

}  // namespace
}  // namespace flopledger::cli
