// A training program that knows nothing of flopledger: it has NVTX ranges, in three copies of NVTX.
//
//     nvtx_program MODE STEPS

#include "nvtx_program.h"

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <nvtx3/nvtx3.hpp>
#include <string>
#include <thread>

namespace {

struct TrainingDomain {
  static constexpr const char* name{"flopledger"};
};

void Work() { std::this_thread::sleep_for(std::chrono::milliseconds(1)); }

/// The step in the program's copy, the phase in one module's, the tokens in the other's.
void StepInThreeCopies(std::int64_t number) {
  const nvtx3::scoped_range_in<TrainingDomain> step{"step", nvtx3::payload{number}};
  module_a_push("data");
  Work();
  module_a_pop();
  module_b_push("forward");
  module_b_tokens(128);
  module_b_pop();
}

void NamedStep(int number) {
  const nvtx3::scoped_range step{"train step " + std::to_string(number)};
  const nvtx3::scoped_range layer{"layer"};
  Work();
}

int Forked(int steps) {
  for (int i = 0; i < steps; ++i) StepInThreeCopies(i);
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    for (int i = 0; i < steps; ++i) StepInThreeCopies(1000 + i);
    std::exit(0);  // with every handler that the parent has registered
  }
  int status = 0;
  waitpid(child, &status, 0);
  for (int i = 0; i < steps; ++i) StepInThreeCopies(steps + i);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const int steps = argc > 2 ? std::atoi(argv[2]) : 0;
  if (mode == "copies") {
    for (int i = 0; i < steps; ++i) StepInThreeCopies(40 + i);
  } else if (mode == "names") {
    for (int i = 1; i <= steps; ++i) NamedStep(i);
  } else if (mode == "fork") {
    return Forked(steps);
  } else {
    std::fprintf(stderr, "mode is '%s'; accepted: copies, names, fork\n", mode.c_str());
    return 2;
  }
  return 0;
}
