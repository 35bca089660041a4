#include "base/signature_table.h"

#include <gtest/gtest.h>

namespace flopledger {
namespace {

OpSignature Matmul(std::int64_t m, std::int64_t k, std::int64_t n) {
  return {.name = "aten::mm",
          .arguments = {
              {.kind = OpArgument::Kind::kTensor, .dtype = DType::kFloat32, .integers = {m, k}},
              {.kind = OpArgument::Kind::kTensor, .dtype = DType::kFloat32, .integers = {k, n}}}};
}

TEST(SignatureTableTest, OneNumberPerSignatureAndTheClassOfItsRule) {
  SignatureTable table(16, [](const OpSignature&) { return OpClass::kMatmul; });
  const SignatureId first = table.Intern(Matmul(1, 2, 3));
  EXPECT_EQ(table.Intern(Matmul(1, 2, 3)), first);
  EXPECT_NE(table.Intern(Matmul(3, 2, 1)), first);
  EXPECT_EQ(table.ClassOf(first), OpClass::kMatmul);
  ASSERT_NE(table.Find(first), nullptr);
  EXPECT_EQ(ToString(*table.Find(first)), "aten::mm [fp32 1x2] [fp32 2x3]");
  EXPECT_EQ(table.size(), 2u);
}

TEST(SignatureTableTest, AFullTableRefusesAndCounts) {
  SignatureTable table(3, {});
  EXPECT_NE(table.Intern(Matmul(1, 1, 1)), kOverflowSignature);
  EXPECT_NE(table.Intern(Matmul(2, 1, 1)), kOverflowSignature);
  EXPECT_EQ(table.Intern(Matmul(3, 1, 1)), kOverflowSignature);
  EXPECT_EQ(table.Intern(Matmul(4, 1, 1)), kOverflowSignature);
  EXPECT_EQ(table.refused(), 2);
  EXPECT_EQ(table.Find(kOverflowSignature), nullptr);
  EXPECT_EQ(table.ClassOf(kOverflowSignature), OpClass::kUnknown);
  EXPECT_EQ(table.ClassOf(99), OpClass::kUnknown);
}

}  // namespace
}  // namespace flopledger
