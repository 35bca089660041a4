#include "cli/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

namespace flopledger::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

/// A machine as files: what the driver and the kernel would say.
class DoctorTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "doctor-XXXXXX").string();
    root_ = mkdtemp(pattern.data());
    options_.proc = root_ / "proc";
    options_.dev = root_ / "dev";
    options_.log_folder = root_;
    options_.python = "no-such-python";
    options_.port = 0;
    options_.variable = [this](const char* name) {
      const auto at = variables_.find(name);
      return at == variables_.end() ? nullptr : at->second.c_str();
    };
    fs::create_directories(root_ / "dev");
    Write("proc/self/status", "Name:\tx\nCapEff:\t0000000000000000\n");
  }
  void TearDown() override { fs::remove_all(root_); }

  void Write(const std::string& name, const std::string& text) {
    fs::create_directories((root_ / name).parent_path());
    std::ofstream(root_ / name) << text;
  }

  DoctorCheck Check(const std::string& name) {
    for (const DoctorCheck& check : RunDoctor(options_)) {
      if (check.name == name) return check;
    }
    ADD_FAILURE() << "no check is named " << name;
    return {};
  }

  fs::path root_;
  DoctorOptions options_;
  std::map<std::string, std::string> variables_;
};

TEST_F(DoctorTest, ChecksAreThoseThatCanBeRequired) {
  std::vector<std::string> names;
  for (const DoctorCheck& check : RunDoctor(options_)) {
    names.push_back(check.name);
    EXPECT_FALSE(check.found.empty()) << check.name;
    EXPECT_EQ(check.fix.empty(), check.ok) << check.name;
  }
  EXPECT_EQ(names, DoctorCheckNames());
}

TEST_F(DoctorTest, CountersForAdministratorsAloneAreRefused) {
  Write("proc/driver/nvidia/params", "Other: 1\nRmProfilingAdminOnly: 1\n");
  const DoctorCheck check = Check("counters");
  EXPECT_FALSE(check.ok);
  EXPECT_THAT(check.found, HasSubstr("RmProfilingAdminOnly is 1"));
  EXPECT_THAT(check.fix, HasSubstr("NVreg_RestrictProfilingToAdminUsers=0"));
}

TEST_F(DoctorTest, AnAdministratorMayReadThem) {
  Write("proc/driver/nvidia/params", "RmProfilingAdminOnly: 1\n");
  Write("proc/self/status", "CapEff:\t0000000000200000\n");  // bit 21, CAP_SYS_ADMIN
  EXPECT_TRUE(Check("counters").ok);
  Write("proc/self/status", "CapEff:\t0000004000000000\n");  // bit 38, CAP_PERFMON
  EXPECT_TRUE(Check("counters").ok);
  Write("proc/self/status", "CapEff:\t0000003fffdfffff\n");  // all but the two
  EXPECT_FALSE(Check("counters").ok);
}

TEST_F(DoctorTest, AnOpenDriverLetsEverybodyReadThem) {
  Write("proc/driver/nvidia/params", "RmProfilingAdminOnly: 0\n");
  EXPECT_TRUE(Check("counters").ok);
}

TEST_F(DoctorTest, WithoutADriverNothingIsSaidOfCounters) {
  const DoctorCheck check = Check("counters");
  EXPECT_FALSE(check.ok);
  EXPECT_THAT(check.found, HasSubstr("no driver is loaded"));
}

TEST_F(DoctorTest, SeesWhoMayHoldTheCounters) {
  EXPECT_TRUE(Check("counter_lock").ok);
  Write("proc/77/comm", "python\n");
  Write("proc/78/comm", "nv-hostengine\n");
  const DoctorCheck check = Check("counter_lock");
  EXPECT_FALSE(check.ok);
  EXPECT_THAT(check.found, HasSubstr("nv-hostengine (process 78)"));
  EXPECT_THAT(check.fix, HasSubstr("dcgmi profile --pause"));
}

TEST_F(DoctorTest, CountsDeviceFilesOfGpusAlone) {
  Write("dev/nvidiactl", "");
  Write("dev/nvidia-uvm", "");
  EXPECT_THAT(Check("gpu").found, HasSubstr("no " + options_.dev + "/nvidia0"));
  Write("dev/nvidia0", "");
  Write("dev/nvidia12", "");
  EXPECT_EQ(Check("gpu").found, "2 devices");
}

TEST_F(DoctorTest, NamesAnotherToolsInjection) {
  EXPECT_TRUE(Check("nvtx").ok);
  variables_["NVTX_INJECTION64_PATH"] = "/opt/other/libTool.so";
  EXPECT_THAT(Check("nvtx").found, HasSubstr("another tool: /opt/other/libTool.so"));
  variables_["NVTX_INJECTION64_PATH"] = "/x/y/libflopledger.so.0.1";
  EXPECT_TRUE(Check("nvtx").ok);
}

TEST_F(DoctorTest, FindsLibcuptiBesideTheToolkit) {
  EXPECT_THAT(Check("cupti").found, Not(HasSubstr(root_.string())));
  variables_["CUDA_HOME"] = root_ / "cuda";
  Write("cuda/extras/CUPTI/lib64/libcupti.so.12", "not a library");
  EXPECT_THAT(Check("cupti").found,
              StartsWith((root_ / "cuda/extras/CUPTI/lib64/libcupti.so.12").string()));
}

TEST(DoctorRungs, AreReachedByWhatIsThere) {
  const auto checks = [](std::initializer_list<const char*> names) {
    std::vector<DoctorCheck> list;
    for (const char* name : names)
      list.push_back({.name = name, .ok = true, .found = "", .fix = ""});
    return list;
  };
  EXPECT_THAT(ReachedRungs({}), testing::SizeIs(1));
  EXPECT_THAT(ReachedRungs(checks({"driver", "cupti"})), Not(Contains(StartsWith("2:"))));
  EXPECT_THAT(ReachedRungs(checks({"driver", "gpu", "cupti"})), Contains(StartsWith("2:")));
  EXPECT_THAT(ReachedRungs(checks({"driver", "gpu", "cupti", "counters"})),
              Not(Contains(StartsWith("5:"))));
  EXPECT_THAT(ReachedRungs(checks({"driver", "gpu", "cupti", "counters", "counter_lock"})),
              Contains(StartsWith("5:")));
}

TEST(DoctorPython, ThatHangsOrFailsIsNotBelieved) {
  EXPECT_EQ(AskPython("no-such-python"), std::nullopt);
  EXPECT_EQ(AskPython("/bin/false"), std::nullopt);
  EXPECT_EQ(AskPython("/bin/echo"), std::nullopt);
}

}  // namespace
}  // namespace flopledger::cli
