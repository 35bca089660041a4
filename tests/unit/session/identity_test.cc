#include "session/identity.h"

#include <gtest/gtest.h>

#include <map>

namespace flopledger {
namespace {

EnvironmentLookup Environment(std::map<std::string, std::string> variables) {
  return [variables = std::move(variables)](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

RunIdentity Complete(std::map<std::string, std::string> variables, RunIdentity given = {}) {
  auto result = CompleteIdentity(std::move(given), Environment(std::move(variables)), 0, 42);
  EXPECT_TRUE(result.has_value()) << (result ? "" : result.error().message());
  return result.value_or(RunIdentity{});
}

TEST(IdentityTest, OneProcessWithoutALauncher) {
  const RunIdentity identity = Complete({});
  EXPECT_EQ(identity.rank, 0);
  EXPECT_EQ(identity.world_size, 1);
  EXPECT_EQ(identity.rank_source, "default");
  EXPECT_EQ(identity.run_id, "run-19700101-000000-42");
}

TEST(IdentityTest, TheOrderOfTrust) {
  std::map<std::string, std::string> all = {{"FLOPLEDGER_RANK", "1"},
                                            {"FLOPLEDGER_WORLD_SIZE", "9"},
                                            {"RANK", "2"},
                                            {"LOCAL_RANK", "0"},
                                            {"WORLD_SIZE", "8"},
                                            {"SLURM_PROCID", "3"},
                                            {"SLURM_NTASKS", "7"},
                                            {"OMPI_COMM_WORLD_RANK", "4"},
                                            {"OMPI_COMM_WORLD_SIZE", "6"}};
  RunIdentity given;
  given.rank = 5;
  given.world_size = 10;
  given.rank_source = "arguments";
  EXPECT_EQ(Complete(all, given).rank, 5);
  EXPECT_EQ(Complete(all).rank, 1);
  all.erase("FLOPLEDGER_RANK");
  EXPECT_EQ(Complete(all).rank, 2);
  EXPECT_EQ(Complete(all).local_rank, 0);
  EXPECT_EQ(Complete(all).rank_source, "torchrun");
  all.erase("RANK");
  EXPECT_EQ(Complete(all).rank, 3);
  all.erase("SLURM_PROCID");
  EXPECT_EQ(Complete(all).rank, 4);
  EXPECT_EQ(Complete(all).world_size, 6);
}

TEST(IdentityTest, RanksOfOneRunShareTheLaunchersName) {
  EXPECT_EQ(Complete({{"TORCHELASTIC_RUN_ID", "job7"}}).run_id, "job7");
  EXPECT_EQ(Complete({{"TORCHELASTIC_RUN_ID", "none"}, {"SLURM_JOB_ID", "12"}}).run_id, "12");
  EXPECT_EQ(Complete({{"FLOPLEDGER_RUN_ID", "mine"}, {"SLURM_JOB_ID", "12"}}).run_id, "mine");
}

TEST(IdentityTest, WrongValuesAreNamed) {
  auto text = CompleteIdentity({}, Environment({{"RANK", "two"}}), 0, 1);
  ASSERT_FALSE(text.has_value());
  EXPECT_EQ(text.error().message(), "RANK is 'two'; accepted: an integer of 0 or more");
  auto range = CompleteIdentity({}, Environment({{"RANK", "8"}, {"WORLD_SIZE", "8"}}), 0, 1);
  ASSERT_FALSE(range.has_value());
  EXPECT_EQ(range.error().message(),
            "rank is 8 (from torchrun); accepted: 0 to 7 (world_size is 8)");
}

}  // namespace
}  // namespace flopledger
