// A training program that has both: a session of its own, and NVTX ranges. Prints what became of
// it.
//
//     nvtx_session_program MODE JSONL

#include <nvtx3/nvToolsExt.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "flopledger/session.h"
#include "nvtx_program.h"

namespace {

using flopledger::Session;

std::unique_ptr<Session> Start(const std::string& jsonl) {
  flopledger::SessionOptions options;
  options.model = *flopledger::ModelFlops::FromFormula("6 * 1000 * T", {});
  options.peaks = {{.device_model = "test",
                    .dtype = flopledger::DType::kFloat32,
                    .rate = flopledger::FlopsPerSecond(1e12),
                    .source = "test"}};
  options.sequence_length = 8;
  options.warmup_steps = 0;
  options.log_every_steps = 0;
  options.host_ops = false;
  options.http.enabled = false;
  options.jsonl_path = jsonl;
  auto session = Session::Create(std::move(options));
  if (!session) {
    std::fprintf(stderr, "%s\n", session.error().message().c_str());
    std::exit(70);
  }
  return *std::move(session);
}

void NvtxSteps(int count) {
  for (int i = 0; i < count; ++i) {
    module_a_push("step");
    module_b_tokens(8);
    module_a_pop();
  }
}

void ApiSteps(Session& session, int count) {
  for (int i = 0; i < count; ++i) {
    auto step = session.Step();
    step.Tokens({.useful = 8});
  }
}

std::string Reason(const Session& session) {
  for (const flopledger::Capability& capability : session.State().capabilities) {
    if (capability.name == "nvtx") return capability.reason;
  }
  return "none";
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  const std::string jsonl = argc > 2 ? argv[2] : "";
  if (mode == "ranges-first") NvtxSteps(2);  // NVTX opens the library, nobody listens yet
  std::unique_ptr<Session> session = Start(jsonl);
  NvtxSteps(5);
  if (mode == "both") {
    for (int i = 0; i < 5; ++i) {
      module_a_push("step");
      ApiSteps(*session, 1);
      module_a_pop();
    }
  } else if (mode == "api-after") {
    ApiSteps(*session, 5);
  }
  session->Close();
  const char* variable = std::getenv("NVTX_INJECTION64_PATH");
  std::printf("reason %s\nvariable %s\n", Reason(*session).c_str(), variable ? variable : "unset");
  return 0;
}
