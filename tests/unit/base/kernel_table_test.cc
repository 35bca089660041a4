#include "base/kernel_table.h"

#include <gtest/gtest.h>

#include <string>

namespace flopledger {
namespace {

OpClass ByFirstLetter(std::string_view name) {
  return name.substr(0, 1) == "m" ? OpClass::kMatmul : OpClass::kUnknown;
}

TEST(KernelTable, OneNumberForOneSignature) {
  KernelTable table(16, ByFirstLetter);
  const KernelSignature gemm{.name = "mm", .grid = {8, 1, 1}, .block = {128, 1, 1}};
  KernelSignature larger = gemm;
  larger.grid = {16, 1, 1};
  const KernelId id = table.Intern(gemm);
  EXPECT_NE(id, kOverflowKernel);
  EXPECT_EQ(table.Intern(gemm), id);
  EXPECT_NE(table.Intern(larger), id);
  EXPECT_EQ(table.size(), 2u);
  EXPECT_EQ(table.ClassOf(id), OpClass::kMatmul);
  ASSERT_NE(table.Find(id), nullptr);
  EXPECT_EQ(*table.Find(id), gemm);
}

TEST(KernelTable, AFullTableRefusesAndCounts) {
  KernelTable table(3, ByFirstLetter);
  const KernelId first = table.Intern({.name = "a"});
  table.Intern({.name = "b"});
  EXPECT_EQ(table.Intern({.name = "c"}), kOverflowKernel);
  EXPECT_EQ(table.Intern({.name = "a"}), first);
  EXPECT_EQ(table.refused(), 1);
  EXPECT_EQ(table.Find(kOverflowKernel), nullptr);
  EXPECT_EQ(table.ClassOf(99), OpClass::kUnknown);
}

}  // namespace
}  // namespace flopledger
