#include "flopledger/peak_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "flopledger/ratios.h"

namespace flopledger {
namespace {

using ::testing::HasSubstr;

/// Percent of one device's peak.
double Percent(double achieved, double peak) { return 100 * achieved / peak; }

double RateOf(const DeviceIdentity& device, const PeakMode& mode = {}) {
  Result<PeakAnswer> answer = LookUpPeak(device, mode);
  EXPECT_TRUE(answer.has_value()) << answer.error().message();
  return answer.has_value() ? answer->peak.rate.value() : 0;
}

std::string Sku(const DeviceIdentity& device) {
  Result<PeakAnswer> answer = LookUpPeak(device, {});
  return answer.has_value() ? std::string(answer->sku->sku) : answer.error().message();
}

TEST(PeakCases, C01TheDeviceThatRanDecides) {
  auto answer = LookUpPeak({.name = "NVIDIA H100 80GB HBM3"}, {.dtype = DType::kBfloat16});
  ASSERT_TRUE(answer.has_value()) << answer.error().message();
  EXPECT_NEAR(Percent(324.48e12, answer->peak.rate.value()), 32.796, 0.002);
  EXPECT_EQ(answer->peak.dtype, DType::kBfloat16);
  EXPECT_FALSE(answer->peak.sparse);
  EXPECT_FALSE(answer->peak.source.empty());
}

TEST(PeakCases, C02SparseOnlyWhereItIsDeclared) {
  // The case's own catalogue rounds to 989.5 and 1979.
  EXPECT_NEAR(Percent(420e12, RateOf({.name = "H200 SXM"})), 42.446, 0.005);
  auto sparse = LookUpPeak({.name = "H200 SXM"}, {.dtype = DType::kBfloat16, .sparse = true});
  ASSERT_TRUE(sparse.has_value());
  EXPECT_TRUE(sparse->peak.sparse);
  EXPECT_NEAR(Percent(420e12, sparse->peak.rate.value()), 21.223, 0.002);
}

TEST(PeakCases, C03FormFactorDecides) {
  const std::map<std::string, double> catalogue = {{"H100 SXM5", 989.4e12},
                                                   {"H100 PCIe", 756.5e12},
                                                   {"H200 SXM", 989.4e12},
                                                   {"H200 NVL", 835.5e12}};
  const std::vector<std::pair<const char*, double>> expected = {{"NVIDIA H100 80GB HBM3", 30.321},
                                                                {"NVIDIA H100 PCIe", 39.656},
                                                                {"NVIDIA H200 NVL", 35.907},
                                                                {"NVIDIA H200 PCIe", 35.907}};
  for (const auto& [name, percent] : expected) {
    const auto peak = catalogue.find(Sku({.name = name}));
    ASSERT_NE(peak, catalogue.end()) << name << ": " << Sku({.name = name});
    EXPECT_NEAR(Percent(300e12, peak->second), percent, 0.002) << name;
  }
}

TEST(PeakCases, C04DtypeDecides) {
  const DeviceIdentity device{.name = "H100 SXM"};
  EXPECT_NEAR(Percent(395.76e12, RateOf(device, {.dtype = DType::kBfloat16})), 40.000, 0.002);
  EXPECT_NEAR(Percent(395.76e12, RateOf(device, {.dtype = DType::kTf32})), 80.000, 0.002);
  EXPECT_NEAR(Percent(395.76e12, RateOf(device, {.dtype = DType::kFloat32})), 591.570, 0.002);
}

TEST(PeakCases, C06UnlikeDevicesAreSummed) {
  const std::array devices = {
      DeviceGroup{.count = 4, .peak = FlopsPerSecond(RateOf({.name = "H100 SXM"}))},
      DeviceGroup{.count = 4, .peak = FlopsPerSecond(RateOf({.name = "A100-SXM4-80GB"}))}};
  auto mfu =
      Utilization(Flops::FromInteger(3'904'200'000'000'000), DurationNs(1'500'000'000), devices);
  ASSERT_TRUE(mfu.has_value());
  EXPECT_NEAR(100 * *mfu, 50.000, 0.002);
}

TEST(PeakTableTest, AFamilyNameIsAmbiguousAndNamesItsParts) {
  auto answer = LookUpPeak({.name = "NVIDIA H100"}, {});
  ASSERT_FALSE(answer.has_value());
  EXPECT_EQ(answer.error().code(), StatusCode::kInvalidArgument);
  for (const char* part : {"H100 SXM5", "H100 PCIe", "H100 NVL"}) {
    EXPECT_THAT(answer.error().message(), HasSubstr(part));
  }
  EXPECT_FALSE(LookUpPeak({.name = "80GB"}, {}).has_value());
  EXPECT_FALSE(LookUpPeak({.name = "PCIe"}, {}).has_value());
}

TEST(PeakTableTest, SubstringsDecideNothing) {
  EXPECT_EQ(Sku({.name = "NVIDIA A10"}), "A10");
  EXPECT_EQ(Sku({.name = "NVIDIA A10G"}), "A10G");
  EXPECT_EQ(Sku({.name = "NVIDIA L40S"}), "L40S");
  EXPECT_EQ(Sku({.name = "NVIDIA L40"}), "L40");
  EXPECT_EQ(Sku({.name = "NVIDIA L4"}), "L4");
  EXPECT_EQ(Sku({.name = "NVIDIA H20"}), "H20");
  EXPECT_EQ(Sku({.name = "NVIDIA H200"}), "H200 SXM");
  EXPECT_DOUBLE_EQ(RateOf({.name = "NVIDIA A10G"}), 70e12);
}

TEST(PeakTableTest, UnknownDevicesAreRefused) {
  for (const char* name : {"NVIDIA GeForce RTX 4080", "AMD Instinct MI300X", "", "gpu", "H1000",
                           "NVIDIA H100 96GB HBM2e"}) {
    auto answer = LookUpPeak({.name = name}, {});
    EXPECT_FALSE(answer.has_value()) << name;
  }
  EXPECT_EQ(LookUpPeak({.name = "MI300X"}, {}).error().code(), StatusCode::kNotFound);
}

TEST(PeakTableTest, IdsDecideBeforeNames) {
  EXPECT_EQ(Sku({.name = "NVIDIA H100", .pci_device_id = 0x2331}), "H100 PCIe");
  EXPECT_EQ(Sku({.sm_count = 114, .form_factor = "PCIe"}), "H100 PCIe");
  EXPECT_THAT(Sku({.sm_count = 132, .form_factor = "SXM5"}), HasSubstr("ambiguous"));
  EXPECT_EQ(Sku({.name = "NVIDIA H100", .sm_count = 132, .form_factor = "SXM5"}), "H100 SXM5");
  EXPECT_THAT(Sku({.pci_device_id = 0x2330, .sm_count = 114}), HasSubstr("reports 114 SMs"));
}

TEST(PeakTableTest, ASliceHasItsShare) {
  auto answer = LookUpPeak({.name = "A100-SXM4-40GB", .slice_sm_count = 42}, {});
  ASSERT_TRUE(answer.has_value());
  EXPECT_NEAR(answer->peak.rate.value(), 312e12 * 42 / 108, 1);
  EXPECT_FALSE(LookUpPeak({.name = "A100-SXM4-40GB", .slice_sm_count = 109}, {}).has_value());
}

TEST(PeakTableTest, ModesThatAPartLacksAreRefused) {
  EXPECT_THAT(LookUpPeak({.name = "Tesla T4"}, {.dtype = DType::kBfloat16}).error().message(),
              HasSubstr("T4 (PCIe) has no bf16, dense"));
  EXPECT_FALSE(LookUpPeak({.name = "NVIDIA B300"}, {.dtype = DType::kInt8}).has_value());
  EXPECT_DOUBLE_EQ(RateOf({.name = "GeForce RTX 4090"}, {.dtype = DType::kFloat16}), 165.2e12);
  EXPECT_DOUBLE_EQ(
      RateOf({.name = "GeForce RTX 4090"}, {.dtype = DType::kFloat16, .fp16_accumulate = true}),
      330.3e12);
}

TEST(PeakTableTest, ContestedEntriesSaySo) {
  auto answer = LookUpPeak({.name = "NVIDIA L40S"}, {});
  ASSERT_TRUE(answer.has_value());
  EXPECT_THAT(answer->peak.source, HasSubstr("contested"));
  EXPECT_THAT(answer->reasoning, ::testing::Contains(HasSubstr("contested")));
}

TEST(PeakTableTest, AUsersPeakNeedsASource) {
  EXPECT_FALSE(MakeUserPeak("my board", DType::kBfloat16, "500 TFLOP/s", " ").has_value());
  auto peak = MakeUserPeak("my board", DType::kBfloat16, "500 TFLOP/s", "measured in May");
  ASSERT_TRUE(peak.has_value());
  EXPECT_EQ(peak->evidence, PeakEvidence::kUser);
}

// SM count x clock x operations per SM and clock gives the printed rate of each part, as the
// table's own column of it says (at most 1.3 % off).
TEST(PeakTableTest, EqualsTheGatheredFacts) {
  std::ifstream file(FLOPLEDGER_SHARED_DIR "/reference/peaks.csv");
  if (!file.good()) GTEST_SKIP() << "the gathered facts are not here";
  std::string line;
  std::getline(file, line);
  std::size_t index = 0;
  const auto skus = ListPeaks();
  while (std::getline(file, line)) {
    ASSERT_LT(index, skus.size());
    std::vector<std::string> cells;
    std::istringstream text(line);
    for (std::string cell; std::getline(text, cell, ',');) cells.push_back(cell);
    const PeakSku& sku = *skus[index++];
    const auto number = [&cells](std::size_t i) {
      return cells[i].empty() ? 0.0 : std::stod(cells[i]);
    };
    EXPECT_EQ(sku.sm_count, static_cast<int>(number(4))) << sku.sku;
    EXPECT_DOUBLE_EQ(sku.fp32.dense_tflops, number(11)) << sku.sku;
    EXPECT_DOUBLE_EQ(sku.tf32.dense_tflops, number(12)) << sku.sku;
    EXPECT_DOUBLE_EQ(sku.fp16.dense_tflops, number(14)) << sku.sku;
    EXPECT_DOUBLE_EQ(sku.bf16.dense_tflops, number(17)) << sku.sku;
    EXPECT_DOUBLE_EQ(sku.bf16.sparse_tflops, number(18)) << sku.sku;
    EXPECT_DOUBLE_EQ(sku.fp8.dense_tflops, number(19)) << sku.sku;
    EXPECT_DOUBLE_EQ(sku.fp4.dense_tflops, number(23)) << sku.sku;
    EXPECT_DOUBLE_EQ(sku.fp4.sparse_tflops, number(24)) << sku.sku;
    const double by_clock = sku.sm_count * sku.tensor_clock_mhz * number(8) / 1e6;
    if (by_clock > 0) {
      EXPECT_NEAR(by_clock / sku.fp16.dense_tflops, 1, 0.013) << sku.sku;
    }
  }
  EXPECT_EQ(index, skus.size());
}

}  // namespace
}  // namespace flopledger
