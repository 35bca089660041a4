#include "cli/log_files.h"

#include <fmt/format.h>
#include <glob.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

namespace flopledger::cli {
namespace {

namespace fs = std::filesystem;

/// `run.jsonl.3`: the stem and 3; 0 for a file that is no rotated part.
std::pair<std::string, int> SplitPart(const std::string& path) {
  const std::size_t dot = path.rfind('.');
  if (dot == std::string::npos || dot + 1 == path.size() || path.size() - dot > 4) return {path, 0};
  int number = 0;
  for (std::size_t i = dot + 1; i < path.size(); ++i) {
    if (path[i] < '0' || path[i] > '9') return {path, 0};
    number = number * 10 + (path[i] - '0');
  }
  const bool log = path.compare(0, dot, "") != 0 && number > 0;
  return log ? std::pair{path.substr(0, dot), number} : std::pair{path, 0};
}

std::vector<std::string> FolderLogs(const std::string& folder) {
  std::vector<std::string> found;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    if (entry.is_regular_file(error) && IsLogName(entry.path().string())) {
      found.push_back(entry.path().string());
    }
  }
  return found;
}

tl::unexpected<Status> Unreadable(const std::string& path) {
  return Fail(StatusCode::kUnavailable,
              fmt::format("{}: cannot be read ({})", path,
                          errno != 0 ? std::strerror(errno) : "is it a file?"));
}

std::vector<std::string> PatternLogs(const std::string& pattern) {
  std::vector<std::string> found;
  glob_t matches{};
  if (glob(pattern.c_str(), 0, nullptr, &matches) == 0) {
    for (std::size_t i = 0; i < matches.gl_pathc; ++i) found.emplace_back(matches.gl_pathv[i]);
  }
  globfree(&matches);
  return found;
}

}  // namespace

bool IsLogName(const std::string& path) {
  return fs::path(SplitPart(path).first).extension() == ".jsonl";
}

Result<std::vector<LogFile>> FindLogFiles(const std::vector<std::string>& words) {
  std::map<std::string, std::set<int, std::greater<>>> stems;
  for (const std::string& word : words) {
    std::error_code error;
    std::vector<std::string> found;
    if (fs::is_directory(word, error)) {
      found = FolderLogs(word);
      if (found.empty()) {
        return InvalidArgument(fmt::format("{}: no *.jsonl in this folder", word));
      }
    } else if (fs::exists(word, error)) {
      found = {word};
    } else if (word.find_first_of("*?[") != std::string::npos) {
      found = PatternLogs(word);
      if (found.empty()) return InvalidArgument(fmt::format("{}: nothing matches", word));
    } else {
      return InvalidArgument(fmt::format(
          "{}: no such file; wanted are step logs, traces, a folder of logs or a quoted pattern",
          word));
    }
    for (const std::string& path : found) {
      const auto [stem, number] = SplitPart(path);
      stems[stem].insert(number);
      // A whole log was named: its older parts belong to it.
      for (int part = 1; number == 0 && fs::exists(fmt::format("{}.{}", stem, part), error);
           ++part) {
        stems[stem].insert(part);
      }
    }
  }
  std::vector<LogFile> files;
  for (const auto& [stem, numbers] : stems) {
    LogFile file;
    for (const int number : numbers) {
      file.parts.push_back(number == 0 ? stem : fmt::format("{}.{}", stem, number));
    }
    file.path = file.parts.back();
    files.push_back(std::move(file));
  }
  return files;
}

Result<std::string> ReadWholeFile(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  if (file && file.peek() != std::ifstream::traits_type::eof()) content << file.rdbuf();
  if (!file.is_open() || file.bad()) return Unreadable(path);
  return std::move(content).str();
}

Result<std::string> ReadBeginning(const std::string& path) {
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string text(64, '\0');
  if (file.is_open()) file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.is_open() || file.bad()) return Unreadable(path);
  text.resize(static_cast<std::size_t>(file.gcount()));
  return text;
}

Result<std::string> ReadLogFile(const LogFile& file) {
  std::string text;
  for (const std::string& part : file.parts) {
    Result<std::string> content = ReadWholeFile(part);
    if (!content.has_value()) return content;
    text += *content;
  }
  return text;
}

}  // namespace flopledger::cli
