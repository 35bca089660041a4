#pragma once

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace flopledger::fakes {

/// A file in a folder of its own, gone with the object.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& content, const std::string& name = "trace.json") {
    static int count = 0;
    folder_ = std::filesystem::temp_directory_path() /
              ("flopledger_kineto_" + std::to_string(getpid()) + "_" + std::to_string(count++));
    std::filesystem::create_directories(folder_);
    path_ = (folder_ / name).string();
    std::ofstream(path_, std::ios::binary) << content;
  }
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::filesystem::path folder_;
  std::string path_;
};

/// Events of a Kineto document, written one by one. Times are text: dialects differ in them.
class KinetoEvents {
 public:
  KinetoEvents& Add(const std::string& category, const std::string& name, const std::string& tid,
                    const std::string& ts, const std::string& dur, const std::string& args = "") {
    events_.push_back(R"({"ph": "X", "cat": ")" + category + R"(", "name": ")" + name +
                      R"(", "pid": 100, "tid": )" + tid + R"(, "ts": )" + ts + R"(, "dur": )" +
                      dur + R"(, "args": {)" + args + "}}");
    return *this;
  }
  KinetoEvents& Op(const std::string& name, const std::string& ts, const std::string& dur,
                   const std::string& args = "", const std::string& tid = "7") {
    return Add("cpu_op", name, tid, ts, dur, args);
  }
  KinetoEvents& Call(const std::string& ts, const std::string& correlation,
                     const std::string& name = "cudaLaunchKernel", const std::string& tid = "7") {
    return Add("cuda_runtime", name, tid, ts, "2", R"("cbid": 211, "correlation": )" + correlation);
  }
  KinetoEvents& Kernel(const std::string& name, const std::string& ts, const std::string& dur,
                       const std::string& correlation, const std::string& stream = "7",
                       const std::string& device = "0") {
    return Add("kernel", name, stream, ts, dur,
               R"("device": )" + device + R"(, "stream": )" + stream + R"(, "correlation": )" +
                   correlation + R"(, "grid": [8, 1, 1], "block": [128, 1, 1])");
  }
  KinetoEvents& Step(const std::string& number, const std::string& ts, const std::string& dur) {
    return Add("user_annotation", "ProfilerStep#" + number, "7", ts, dur);
  }
  KinetoEvents& Raw(const std::string& event) {
    events_.push_back(event);
    return *this;
  }

  std::vector<std::string>& events() { return events_; }
  std::string Array() const {
    std::string text = "[\n";
    for (std::size_t i = 0; i < events_.size(); ++i) text += (i > 0 ? ",\n" : "") + events_[i];
    return text + "\n]";
  }
  std::string Document(const std::string& members = "") const {
    return R"({"schemaVersion": 1, )" + members + R"("traceEvents": )" + Array() + "}\n";
  }

 private:
  std::vector<std::string> events_;
};

}  // namespace flopledger::fakes
