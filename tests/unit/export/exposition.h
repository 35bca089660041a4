#pragma once

#include <map>
#include <string>
#include <vector>

namespace flopledger::testing_text {

/// One line of a page, as text: a second reading of the format, apart from the library that wrote
/// it.
struct Series {
  std::string name;
  std::map<std::string, std::string> labels;
  std::string value;
};

/// What was read, and everything that is not as the format or the house wants it.
struct Exposition {
  std::vector<Series> series;
  std::map<std::string, std::string> types;
  std::vector<std::string> faults;

  /// Value of the one series of this name with these labels (others may be there too), or empty.
  std::string Value(const std::string& name,
                    const std::map<std::string, std::string>& labels = {}) const;
  std::size_t Count(const std::string& name) const;
};

Exposition ReadExposition(const std::string& text);

}  // namespace flopledger::testing_text
