#include "ledger/flop_resolver.h"

#include <gtest/gtest.h>

namespace flopledger {
namespace {

OpCost Cost(CoverageKind coverage, std::int64_t flops) {
  OpCost cost;
  cost.coverage = coverage;
  cost.executed = Flops::FromInteger(flops);
  return cost;
}

TEST(FlopResolverTest, TheFirstEvidenceThatKnowsWins) {
  SignatureTable table(8, {});
  const SignatureId both = table.Intern({.name = "both", .arguments = {}});
  const SignatureId second = table.Intern({.name = "second", .arguments = {}});
  const SignatureId neither = table.Intern({.name = "neither", .arguments = {}});
  int asked = 0;
  FlopResolver resolver({{FlopSource::kCounter,
                          [&](const OpSignature& s) {
                            ++asked;
                            return s.name == "both" ? Cost(CoverageKind::kCounted, 10)
                                                    : Cost(CoverageKind::kUnknown, 0);
                          }},
                         {FlopSource::kOpShapes, [](const OpSignature& s) {
                            return s.name == "neither" ? Cost(CoverageKind::kUnknown, 0)
                                                       : Cost(CoverageKind::kCounted, 20);
                          }}});
  std::vector<OpSum> sums(3);
  sums[0].signature = both;
  sums[1].signature = second;
  sums[2].signature = neither;
  const std::vector<ResolvedOp> ops = resolver.Resolve(sums, table);
  ASSERT_EQ(ops.size(), 3u);
  EXPECT_EQ(ops[0].source, FlopSource::kCounter);
  EXPECT_EQ(ops[0].cost.executed.ToString(), "10");
  EXPECT_EQ(ops[1].source, FlopSource::kOpShapes);
  EXPECT_EQ(ops[1].cost.executed.ToString(), "20");
  EXPECT_EQ(ops[2].cost.coverage, CoverageKind::kUnknown);
  EXPECT_EQ(ops[2].name, "neither");
  resolver.Resolve(sums, table);
  EXPECT_EQ(asked, 3) << "a signature is counted once";
}

TEST(FlopResolverTest, WhatTheFullTableRefusedIsAGapWithThatReason) {
  SignatureTable table(2, {});
  FlopResolver resolver({{FlopSource::kOpShapes, CountOp}});
  const std::vector<ResolvedOp> ops = resolver.Resolve({OpSum{}}, table);
  ASSERT_EQ(ops.size(), 1u);
  EXPECT_EQ(ops[0].cost.coverage, CoverageKind::kUnknown);
  EXPECT_EQ(ops[0].cost.reason, GapReason::kSignatureTableFull);
}

}  // namespace
}  // namespace flopledger
