// How a process comes to its libcupti: with the double and with the real library, one client.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>

namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

struct Outcome {
  int status = -1;
  std::map<std::string, std::string> values;
  std::string operator[](const std::string& key) const {
    const auto found = values.find(key);
    return found == values.end() ? "(absent)" : found->second;
  }
};

class CuptiProcessTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(::testing::TempDir()) / ("flopledger_cupti_" + std::to_string(::getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  /// Runs the client in a clean environment plus `environment`, for at most 20 s.
  static Outcome Client(const std::string& arguments, const std::string& environment = "") {
    const std::string command = "env -u CUDA_HOME -u CUDA_PATH -u LD_LIBRARY_PATH " + environment +
                                " timeout 20 '" FLOPLEDGER_TEST_CUPTI_CLIENT "' " + arguments +
                                " 2>&1";
    Outcome outcome;
    FILE* pipe = popen(command.c_str(), "r");
    if (pipe == nullptr) return outcome;
    char line[4096];
    while (std::fgets(line, sizeof(line), pipe) != nullptr) {
      std::string text = line;
      while (!text.empty() && text.back() == '\n') text.pop_back();
      const std::size_t equal = text.find('=');
      if (equal != std::string::npos) {
        outcome.values[text.substr(0, equal)] = text.substr(equal + 1);
      } else {
        outcome.values["other"] += text + "\n";
      }
    }
    outcome.status = pclose(pipe);
    return outcome;
  }

  static std::string Driver() { return " --driver '" FLOPLEDGER_TEST_FAKE_CUDA "' "; }
  static std::string Double() { return "'" FLOPLEDGER_TEST_FAKE_CUPTI "'"; }

  fs::path folder_;
};

TEST_F(CuptiProcessTest, CountsWithTheDouble) {
  const Outcome outcome =
      Client(Driver() + "--library " + Double() + " --run 'kernels 1000; drop 5'");
  EXPECT_EQ(outcome.status, 0) << outcome["other"];
  EXPECT_EQ(outcome["start"], "counting ok") << outcome["start_text"];
  EXPECT_EQ(outcome["kernels"], "1000");
  EXPECT_EQ(outcome["busy_ns"], "1000000");
  EXPECT_EQ(outcome["fences"], "1");
  EXPECT_EQ(outcome["lost"], "5");
  EXPECT_EQ(outcome["mapped"], "1");
  EXPECT_EQ(outcome["end"], "disabled stopped");
}

TEST_F(CuptiProcessTest, TheRealLibraryWithoutADriverAnswers999) {
  if (!fs::exists(FLOPLEDGER_TEST_CUPTI_LIBRARY)) GTEST_SKIP() << "no libcupti beside the headers";
  if (FLOPLEDGER_TEST_CUPTI_API_VERSION != 130001) GTEST_SKIP() << "pinned to libcupti 13.0.85";
  // Any library stands for the driver, so that the client goes on to call libcupti, which looks for
  // the real one itself and finds none.
  const Outcome outcome =
      Client("--driver libm.so.6 --library '" FLOPLEDGER_TEST_CUPTI_LIBRARY "'");
  EXPECT_EQ(outcome.status, 0) << outcome["other"];
  EXPECT_EQ(outcome["start"], "unavailable not_initialized");
  EXPECT_THAT(outcome["start_text"], HasSubstr("answered 999"));
  EXPECT_EQ(outcome["kernels"], "0");
  EXPECT_EQ(outcome["mapped"], "1");
}

TEST_F(CuptiProcessTest, WithoutADriverNoLibcuptiIsEvenOpened) {
  const Outcome outcome = Client("--driver libcuda_is_not_here.so.1 --library " + Double());
  EXPECT_EQ(outcome.status, 0) << outcome["other"];
  EXPECT_EQ(outcome["start"], "waiting no_driver");
  EXPECT_THAT(outcome["start_text"], HasSubstr("libcuda_is_not_here.so.1"));
  EXPECT_EQ(outcome["mapped"], "0");
}

TEST_F(CuptiProcessTest, ADriverThatComesLaterIsFound) {
  // By its name alone the loader finds none; who loads it by its path makes it known.
  const Outcome outcome = Client("--driver libcuda.so.1 --library " + Double() +
                                 " --map-later '" FLOPLEDGER_TEST_FAKE_CUDA "' --run 'kernels 3'");
  if (outcome["start"] != "waiting no_driver") GTEST_SKIP() << "this machine has a driver";
  EXPECT_EQ(outcome["later"], "counting ok") << outcome["later_text"];
  EXPECT_EQ(outcome["kernels"], "3");
}

// C46: the copy that is mapped is used, whatever was configured; two copies are refused.
TEST_F(CuptiProcessTest, UsesTheCopyThatIsMapped) {
  const Outcome outcome = Client("--map " + Double() + Driver() +
                                 "--library /nowhere/libcupti.so.12 --run 'kernels 2'");
  EXPECT_EQ(outcome["start"], "counting ok") << outcome["start_text"];
  EXPECT_EQ(outcome["kernels"], "2");
  EXPECT_EQ(outcome["mapped"], "1");
}

TEST_F(CuptiProcessTest, RefusesTwoCopiesAndNamesThem) {
  const fs::path copy = folder_ / "libcupti.so.13";
  fs::copy_file(FLOPLEDGER_TEST_FAKE_CUPTI, copy);
  const Outcome outcome =
      Client("--map " + Double() + " --map '" + copy.string() + "' " + Driver());
  EXPECT_EQ(outcome.status, 0) << outcome["other"];
  EXPECT_EQ(outcome["start"], "unavailable two_libraries");
  EXPECT_THAT(outcome["start_text"], HasSubstr(copy.string()));
  EXPECT_THAT(outcome["start_text"], HasSubstr(FLOPLEDGER_TEST_FAKE_CUPTI));
}

TEST_F(CuptiProcessTest, TakesThePathFromTheEnvironment) {
  const Outcome outcome =
      Client(Driver() + "--run 'kernels 1'", "FLOPLEDGER_CUPTI_LIBRARY=" + Double());
  EXPECT_EQ(outcome["start"], "counting ok") << outcome["start_text"];
  EXPECT_EQ(outcome["kernels"], "1");
}

TEST_F(CuptiProcessTest, AConfiguredPathThatIsWrongIsNamed) {
  const Outcome outcome = Client(Driver() + "--library /nowhere/libcupti.so.13");
  EXPECT_EQ(outcome["start"], "unavailable no_library");
  EXPECT_THAT(outcome["start_text"], HasSubstr("'/nowhere/libcupti.so.13'"));
}

TEST_F(CuptiProcessTest, FindsTheWheelOfWhatIsLoaded) {
  const fs::path packages = folder_ / "lib/python3.11/site-packages";
  const fs::path wheel = packages / "nvidia/cu13/lib";
  fs::create_directories(wheel);
  fs::create_directories(packages / "torch/lib");
  fs::copy_file(FLOPLEDGER_TEST_FAKE_CUPTI, wheel / "libcupti.so.13");
  // Some library of a framework; what it is does not matter.
  fs::copy_file(FLOPLEDGER_TEST_FAKE_CUDA, packages / "torch/lib/libframework.so");
  const Outcome outcome = Client("--map '" + (packages / "torch/lib/libframework.so").string() +
                                 "' " + Driver() + "--run 'kernels 4'");
  EXPECT_EQ(outcome["start"], "counting ok") << outcome["start_text"];
  EXPECT_EQ(outcome["kernels"], "4");
}

TEST_F(CuptiProcessTest, FindsTheToolkitOfCudaHome) {
  const fs::path folder = folder_ / "cuda/extras/CUPTI/lib64";
  fs::create_directories(folder);
  fs::copy_file(FLOPLEDGER_TEST_FAKE_CUPTI, folder / "libcupti.so.13");
  const Outcome outcome =
      Client(Driver() + "--run 'kernels 4'", "CUDA_HOME='" + (folder_ / "cuda").string() + "'");
  EXPECT_EQ(outcome["start"], "counting ok") << outcome["start_text"];
  EXPECT_EQ(outcome["kernels"], "4");
}

TEST_F(CuptiProcessTest, TakesItsFaultsFromTheEnvironment) {
  const Outcome outcome = Client(Driver() + "--library " + Double(),
                                 "FAKECUPTI_SCRIPT='fail cuptiActivityEnable:10 35 -1'");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_EQ(outcome["start"], "unavailable permission");
  const Outcome old = Client(Driver() + "--library " + Double(), "FAKECUPTI_SCRIPT='version 12'");
  EXPECT_EQ(old["start"], "unavailable too_old");
}

}  // namespace
