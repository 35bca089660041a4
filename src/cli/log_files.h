#pragma once

#include <string>
#include <vector>

#include "flopledger/status.h"

namespace flopledger::cli {

/// A step log with its rotated parts, the oldest first.
struct LogFile {
  std::string path;  ///< of the part that was written last
  std::vector<std::string> parts;
};

/// Files, folders and patterns to logs, each once, in the order of their names. Fails:
/// kInvalidArgument with the word that names nothing.
Result<std::vector<LogFile>> FindLogFiles(const std::vector<std::string>& words);

/// Is it `*.jsonl`, or a rotated part of one?
bool IsLogName(const std::string& path);

/// All bytes of its parts. Fails: kUnavailable with the path and the system's reason.
Result<std::string> ReadLogFile(const LogFile& file);

/// All bytes of one file. Fails: as above.
Result<std::string> ReadWholeFile(const std::string& path);

/// The first bytes of a file, enough to know what it is. Fails: as above.
Result<std::string> ReadBeginning(const std::string& path);

}  // namespace flopledger::cli
