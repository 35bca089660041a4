#include "unit/export/exposition.h"

#include <cctype>
#include <cmath>
#include <cstdlib>
#include <set>
#include <sstream>

namespace flopledger::testing_text {
namespace {

bool IsName(const std::string& name) {
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0) return false;
  for (char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') return false;
  }
  return true;
}

// Reads `{a="b",c="d"}` from `at`; false if it is not that.
bool ReadLabels(const std::string& line, std::size_t* at, std::map<std::string, std::string>* out) {
  while (*at < line.size() && line[*at] != '}') {
    const std::size_t equals = line.find('=', *at);
    if (equals == std::string::npos || equals + 1 >= line.size() || line[equals + 1] != '"') {
      return false;
    }
    const std::string name = line.substr(*at, equals - *at);
    std::string value;
    std::size_t i = equals + 2;
    for (; i < line.size() && line[i] != '"'; ++i) {
      if (line[i] != '\\') {
        value += line[i];
        continue;
      }
      if (++i >= line.size()) return false;
      if (line[i] == 'n') value += '\n';
      if (line[i] == '"' || line[i] == '\\') value += line[i];
    }
    if (i >= line.size() || !IsName(name) || !out->emplace(name, value).second) return false;
    *at = i + 1;
    if (*at < line.size() && line[*at] == ',') ++*at;
  }
  return *at < line.size();
}

void ReadSeries(const std::string& line, Exposition* page) {
  Series series;
  std::size_t at = line.find_first_of("{ ");
  if (at == std::string::npos) {
    page->faults.push_back("no value: " + line);
    return;
  }
  series.name = line.substr(0, at);
  if (line[at] == '{' && (!ReadLabels(line, &++at, &series.labels) || line[at++] != '}')) {
    page->faults.push_back("labels: " + line);
    return;
  }
  series.value = line.substr(at + 1);
  char* end = nullptr;
  const double value = std::strtod(series.value.c_str(), &end);
  if (series.value.empty() || *end != '\0') page->faults.push_back("value: " + line);
  if (!std::isfinite(value)) page->faults.push_back("not finite: " + line);
  if (value < 0) page->faults.push_back("negative: " + line);
  for (const auto& [name, unused] : series.labels) {
    if (name == "instance" || name == "job" || name.starts_with("exported_")) {
      page->faults.push_back("reserved label: " + line);
    }
  }
  if (series.labels.count("run_id") == 0 || series.labels.count("rank") == 0) {
    page->faults.push_back("no run_id or rank: " + line);
  }
  page->series.push_back(std::move(series));
}

}  // namespace

std::string Exposition::Value(const std::string& name,
                              const std::map<std::string, std::string>& labels) const {
  for (const Series& each : series) {
    if (each.name != name) continue;
    bool all = true;
    for (const auto& [key, value] : labels) {
      const auto found = each.labels.find(key);
      all = all && found != each.labels.end() && found->second == value;
    }
    if (all) return each.value;
  }
  return {};
}

std::size_t Exposition::Count(const std::string& name) const {
  std::size_t count = 0;
  for (const Series& each : series) count += each.name == name ? 1 : 0;
  return count;
}

Exposition ReadExposition(const std::string& text) {
  Exposition page;
  std::istringstream lines(text);
  std::string line;
  std::set<std::string> seen;
  while (std::getline(lines, line)) {
    if (line.starts_with("# TYPE ")) {
      const std::size_t space = line.find(' ', 7);
      if (!page.types.emplace(line.substr(7, space - 7), line.substr(space + 1)).second) {
        page.faults.push_back("type twice: " + line);
      }
    } else if (!line.starts_with("#")) {
      if (!seen.insert(line.substr(0, line.rfind(' '))).second) {
        page.faults.push_back("series twice: " + line);
      }
      ReadSeries(line, &page);
    }
  }
  if (!text.empty() && text.back() != '\n') page.faults.push_back("no newline at the end");
  return page;
}

}  // namespace flopledger::testing_text
