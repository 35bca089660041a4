#include "session/identity.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <ctime>

namespace flopledger {
namespace {

struct Launcher {
  const char* source;
  const char* rank;
  const char* local_rank;
  const char* world_size;
};

constexpr std::array kLaunchers = {
    Launcher{"FLOPLEDGER_RANK", "FLOPLEDGER_RANK", "FLOPLEDGER_LOCAL_RANK",
             "FLOPLEDGER_WORLD_SIZE"},
    Launcher{"torchrun", "RANK", "LOCAL_RANK", "WORLD_SIZE"},
    Launcher{"slurm", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NTASKS"},
    Launcher{"open_mpi", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
             "OMPI_COMM_WORLD_SIZE"},
};

Result<int> ReadInteger(const EnvironmentLookup& environment, const char* name, int otherwise) {
  const std::optional<std::string> text = environment(name);
  if (!text) return otherwise;
  int value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value < 0) {
    return InvalidArgument(
        fmt::format("{} is '{}'; accepted: an integer of 0 or more", name, *text));
  }
  return value;
}

Result<RunIdentity> ReadLauncher(RunIdentity identity, const EnvironmentLookup& environment) {
  identity.rank_source = "default";
  for (const Launcher& launcher : kLaunchers) {
    if (!environment(launcher.rank)) continue;
    const Result<int> rank = ReadInteger(environment, launcher.rank, 0);
    if (!rank) return tl::unexpected(rank.error());
    const Result<int> local = ReadInteger(environment, launcher.local_rank, *rank);
    if (!local) return tl::unexpected(local.error());
    const Result<int> world = ReadInteger(environment, launcher.world_size, *rank + 1);
    if (!world) return tl::unexpected(world.error());
    identity.rank = *rank;
    identity.local_rank = *local;
    identity.world_size = *world;
    identity.rank_source = launcher.source;
    break;
  }
  return identity;
}

std::string MakeRunId(const EnvironmentLookup& environment, double unix_seconds, int process_id) {
  for (const char* name : {"FLOPLEDGER_RUN_ID", "TORCHELASTIC_RUN_ID", "SLURM_JOB_ID"}) {
    const std::optional<std::string> text = environment(name);
    if (text && *text != "none") return *text;
  }
  const auto seconds = static_cast<std::time_t>(unix_seconds);
  return fmt::format("run-{:%Y%m%d-%H%M%S}-{}", fmt::gmtime(seconds), process_id);
}

}  // namespace

std::optional<std::string> ReadEnvironment(const char* name) {
  const char* text = std::getenv(name);
  if (text == nullptr || *text == '\0') return std::nullopt;
  return std::string(text);
}

Result<RunIdentity> CompleteIdentity(RunIdentity given, const EnvironmentLookup& environment,
                                     double unix_seconds, int process_id) {
  if (given.rank_source.empty()) {
    Result<RunIdentity> read = ReadLauncher(std::move(given), environment);
    if (!read) return read;
    given = *std::move(read);
  }
  if (given.world_size < 1) {
    return InvalidArgument(fmt::format("world_size is {}; accepted: 1 or more", given.world_size));
  }
  if (given.rank < 0 || given.rank >= given.world_size) {
    return InvalidArgument(fmt::format("rank is {} (from {}); accepted: 0 to {} (world_size is {})",
                                       given.rank, given.rank_source, given.world_size - 1,
                                       given.world_size));
  }
  if (given.local_rank < 0) {
    return InvalidArgument(fmt::format("local_rank is {}; accepted: 0 or more", given.local_rank));
  }
  if (given.run_id.empty()) given.run_id = MakeRunId(environment, unix_seconds, process_id);
  return given;
}

}  // namespace flopledger
