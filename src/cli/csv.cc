#include "csv.h"

#include <utility>

namespace flopledger::cli {
namespace {

/// Walks the text once, a field at a time.
class CsvReader {
 public:
  explicit CsvReader(std::string_view text) : text_(text) {
    constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
    if (text_.substr(0, 3) == kByteOrderMark) text_.remove_prefix(3);
  }

  Result<std::vector<CsvRecord>> Run() {
    std::vector<CsvRecord> records;
    while (at_ < text_.size()) {
      CsvRecord record{.line = line_, .fields = {}};
      bool more = true;
      while (more) {
        Result<std::string> field = ReadField();
        if (!field.has_value()) return tl::unexpected(field.error());
        record.fields.push_back(*std::move(field));
        more = at_ < text_.size() && text_[at_] == ',';
        if (more) ++at_;
      }
      TakeLineEnd();
      const bool empty = record.fields.size() == 1 && record.fields.front().empty();
      if (!empty) records.push_back(std::move(record));
    }
    return records;
  }

 private:
  bool AtLineEnd() const {
    return text_[at_] == '\n' || (text_[at_] == '\r' && text_.substr(at_, 2) == "\r\n");
  }
  void TakeLineEnd() {
    if (at_ >= text_.size()) return;
    at_ += text_[at_] == '\r' ? 2 : 1;
    ++line_;
  }

  Result<std::string> ReadField() {
    std::string field;
    if (at_ < text_.size() && text_[at_] == '"') return ReadQuoted();
    while (at_ < text_.size() && text_[at_] != ',' && !AtLineEnd()) {
      if (text_[at_] == '"') {
        return InvalidArgument("line " + std::to_string(line_) +
                               ": a quote inside of a field that is not quoted");
      }
      field.push_back(text_[at_++]);
    }
    return field;
  }

  Result<std::string> ReadQuoted() {
    const std::size_t first_line = line_;
    std::string field;
    ++at_;
    while (at_ < text_.size()) {
      const char c = text_[at_++];
      if (c == '\n') ++line_;
      if (c != '"') {
        field.push_back(c);
        continue;
      }
      if (at_ < text_.size() && text_[at_] == '"') {
        field.push_back('"');
        ++at_;
        continue;
      }
      if (at_ < text_.size() && text_[at_] != ',' && !AtLineEnd()) {
        return InvalidArgument("line " + std::to_string(line_) +
                               ": text after the closing quote of a field");
      }
      return field;
    }
    return InvalidArgument("line " + std::to_string(first_line) +
                           ": a quoted field has no closing quote");
  }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
};

}  // namespace

Result<std::vector<CsvRecord>> ReadCsv(std::string_view text) { return CsvReader(text).Run(); }

}  // namespace flopledger::cli
