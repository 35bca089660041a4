#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <tuple>
#include <vector>

#include "flopledger/records.h"

/// Random training runs on devices, with their truth worked out beside the records.
namespace flopledger::fakes {

/// Launches and time by step, kernel, op, phase.
using KernelTruth = std::map<std::tuple<KernelId, std::optional<SignatureId>, Phase>,
                             std::pair<std::int64_t, std::int64_t>>;

struct DeviceRunOptions {
  int steps = 100;
  int devices = 2;
  int streams = 3;   ///< of each device, that work in every step; one more works now and then
  int threads = 3;   ///< that launch
  int kernels = 20;  ///< about so many a step
  std::uint64_t seed = 1;
};

/// A run: what happened, and when a source can know of it.
struct DeviceRun {
  struct Arrival {
    std::int64_t at_ns = 0;  ///< from here on a drain may deliver it
    std::size_t index = 0;
  };
  RecordBatch all;               ///< everything, in no particular order
  std::vector<Arrival> kernels;  ///< sorted by `at_ns`; in order on each stream
  std::vector<Arrival> fences;
  std::int64_t end_ns = 0;

  // The truth.
  std::vector<int> step_of;  ///< of `all.kernels`; -1: before the run or behind its end
  std::vector<KernelTruth> sums;
  std::vector<std::int64_t> boundary_ns;  ///< end of each step's interval
  std::vector<bool> device_bound;
};

DeviceRun MakeDeviceRun(const DeviceRunOptions& options);

}  // namespace flopledger::fakes
